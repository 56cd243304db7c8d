/**
 * If the end of a log is lost, clients may have seen changes that it does not have: after a restore on another machine
 * or to an earlier moment, or if somebody copied an older data folder back. Then a *version epoch* begins: versions are
 * raised once, and positions continue far beyond any that clients may have.
 *
 * An older folder that was copied back looks intact. It is recognized by a cursor that is authentic, but has a position
 * that this log never issued. So is a state that was restored in place of another restored one.
 */
import type { Database, Statement } from '../store/database.ts';

/** How far positions move ahead: a year of microseconds. */
const EPOCH_POSITIONS = 3.2e13;
/** Far more rows than are lost with the end of a log, and far fewer than there are between two epochs. */
const LOST_ROWS_MAX = 2 ** 24;
/** A later clock is wrong, and positions can never go back. */
const CLOCK_MAX_MS = Date.UTC(2200);

/** The position that belongs to a time; 0 if the clock is wrong. */
export function positionOfClock(nowMs: number): number {
  return nowMs > CLOCK_MAX_MS ? 0 : nowMs * 1000;
}

/** The position after which a new epoch continues. @param known positions that were certainly issued */
export function positionBeyond(known: readonly number[], nowMs: number): number {
  return Math.max(...known, positionOfClock(nowMs)) + EPOCH_POSITIONS;
}

const SELECT_BEFORE = `
  SELECT last_position AS position, delivered_at FROM delivery WHERE first_position <= @position
  ORDER BY first_position DESC LIMIT 1`;
const SELECT_LAST_EPOCH = 'SELECT coalesce(max(position), 0) AS position FROM version_epoch';

interface Delivered {
  readonly position: number;
  readonly delivered_at: number | null;
}

interface Statements {
  readonly before: Statement<Delivered>;
  readonly lastEpoch: Statement<{ position: number }>;
}

/** A history that was abandoned. */
export interface LostHistory {
  /** The last position that it certainly has in common with this one; 0: none is certain. */
  readonly parted: number;
  /** How many version epochs it may have that this one does not. */
  readonly epochs: number;
}

const statementsOf = new WeakMap<Database, Statements>();

/**
 * Whether a cursor proves that a part of the history is lost.
 *
 * A cursor has the position of a row, and every row is covered by a delivery. So a cursor between two deliveries was
 * issued by a history that was abandoned. Positions up to half a year before the newest epoch are those that were known
 * when it began, and everything they may have missed was announced again.
 *
 * @param position of an authentic cursor
 */
export function isOfLostHistory(db: Database, position: number): boolean {
  const { before, lastEpoch } = prepared(db);
  if ((before.get({ position })?.position ?? 0) >= position) return false;
  return position > (lastEpoch.get()?.position ?? 0) - EPOCH_POSITIONS / 2;
}

/**
 * What such a cursor says about the history that issued it.
 *
 * A position soon after the last known one is of the end that was lost. Any other is of another epoch, which began when
 * another state was restored: that may have been older than this one, so nothing is certain. Each epoch begins a year
 * after the positions before it, so that the distance shows how many there can be.
 *
 * @param position of which {@link isOfLostHistory} is true
 */
export function lostHistoryOf(db: Database, position: number, nowMs: number): LostHistory {
  const { before, lastEpoch } = prepared(db);
  const last = before.get({ position });
  const known = last?.position ?? 0;
  const endMax = Math.max(known + LOST_ROWS_MAX, positionOfClock(nowMs) + EPOCH_POSITIONS / 2);
  if (position > (lastEpoch.get()?.position ?? 0) && position <= endMax) return { parted: known, epochs: 0 };
  const since = positionOfClock(last?.delivered_at ?? nowMs);
  return { parted: 0, epochs: Math.max(1, Math.round((position - since) / EPOCH_POSITIONS)) };
}

function prepared(db: Database): Statements {
  let statements = statementsOf.get(db);
  if (statements === undefined) {
    statements = {
      before: db.prepare<unknown[], Delivered>(SELECT_BEFORE),
      lastEpoch: db.prepare<unknown[], { position: number }>(SELECT_LAST_EPOCH),
    };
    statementsOf.set(db, statements);
  }
  return statements;
}
