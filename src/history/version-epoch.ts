/**
 * If the end of a log is lost, clients may have seen changes that it does not have: after a restore on another machine
 * or to an earlier moment, or if somebody copied an older data folder back. Then a *version epoch* begins: versions are
 * raised once, and positions continue far beyond any that clients may have.
 *
 * An older folder that was copied back looks intact. It is recognized by a cursor that is authentic, but has a position
 * that this log never issued. A cursor also names the epoch in which its position was issued, so that one of another
 * restored state is recognized wherever it lies.
 */
import { grouped } from '../counted.ts';
import { Refused } from '../refused.ts';
import type { Database, Statement } from '../store/database.ts';

/** How far positions move ahead: a year of microseconds. */
const EPOCH_POSITIONS = 3.2e13;
/** Where no epoch may begin, and positions no longer follow the clock: beyond 2^53, two of them would be the same number. */
const POSITION_MAX = Number.MAX_SAFE_INTEGER - EPOCH_POSITIONS;
/** A later clock is wrong, and positions can never go back. */
const CLOCK_MAX_MS = Date.UTC(2200);
/** As much of an epoch's time as a cursor has room for: about a minute of milliseconds. */
const MARK_MS = 2 ** 16;
const NUMBER_MAX = 255;

/** What a cursor holds. */
export interface StreamPosition {
  readonly position: number;
  /** The name of the epoch in which the position was issued: {@link epochAt}. */
  readonly epoch: number;
}

/**
 * The position that belongs to a time; 0 if the clock is wrong, or there is none. It has every epoch's year, so that
 * positions follow the clock after an epoch, too, and a folder that is copied back does not issue them a second time.
 */
export function positionOfClock(nowMs: number, epochs = 0): number {
  const position = nowMs * 1000 + epochs * EPOCH_POSITIONS;
  return nowMs > CLOCK_MAX_MS || position > POSITION_MAX ? 0 : position;
}

/**
 * The position after which a new epoch continues.
 *
 * @param known the last one that was certainly issued; @param epochs with the new one
 * @throws Refused `failed` if there is none: a year for each epoch leaves room for about 200
 */
export function positionBeyond(known: number, nowMs: number, epochs: number): number {
  const ofClock = positionOfClock(nowMs, epochs);
  const position = Math.max(known + EPOCH_POSITIONS, ofClock);
  if (position <= POSITION_MAX && (ofClock > 0 || nowMs > CLOCK_MAX_MS)) return position;
  throw new Refused(
    'failed',
    `positions in the change stream have no room for version epoch ${grouped(epochs)}: each moves them a year ahead. Restore a backup into an empty data folder, or start a new installation. Clients must then start again without their cursors`,
  );
}

/** How many epochs the history had in which an epoch with this name had just begun. */
export function numberOfEpoch(epoch: number): number {
  return Math.floor(epoch / MARK_MS);
}

const SELECT_TIMES = 'SELECT at FROM version_epoch ORDER BY number';
/** Epochs of abandoned histories have position 0: only their names and their number count. */
const SELECT_AT = `
  SELECT number, at FROM version_epoch WHERE position BETWEEN 1 AND ? ORDER BY number DESC LIMIT 1`;
const SELECT_NAMED = `
  SELECT number, position FROM version_epoch WHERE at % ${MARK_MS} = ? ORDER BY number DESC LIMIT 1`;
const SELECT_NEXT = 'SELECT min(position) AS position FROM version_epoch WHERE number > ? AND position > 0';
const SELECT_ANNOUNCED = `
  SELECT 1 AS is_announced FROM version_epoch
  WHERE position >= @position AND announced_after <= @parted AND number > @number`;
const SELECT_BEFORE = `
  SELECT last_position AS position FROM delivery WHERE first_position <= ? ORDER BY first_position DESC LIMIT 1`;

interface Statements {
  readonly times: Statement<{ at: number }>;
  readonly at: Statement<{ number: number; at: number }>;
  readonly named: Statement<{ number: number; position: number }>;
  readonly next: Statement<{ position: number | null }>;
  readonly announced: Statement<{ is_announced: number }>;
  readonly before: Statement<{ position: number }>;
}

const statementsOf = new WeakMap<Database, Statements>();

/** When the epochs began, in order; epoch milliseconds. Versions are raised once for each. */
export function epochTimes(db: Database): number[] {
  return prepared(db)
    .times.all()
    .map(({ at }) => at);
}

/** The name of the epoch that issues a position: its number, and the last digits of its time. 0: there was none yet. */
export function epochAt(db: Database, position: number): number {
  const epoch = prepared(db).at.get(position);
  return epoch === undefined ? 0 : Math.min(epoch.number, NUMBER_MAX) * MARK_MS + (epoch.at % MARK_MS);
}

/**
 * Whether a cursor proves that a part of the history is lost. It was issued here if a delivery covers its position, and
 * its epoch is the one of that position. A cursor of an earlier epoch, or of an abandoned one that is known, is of a part
 * whose loss was known when the next epoch began. Others are made good once an epoch has announced again all that their
 * clients may have missed, in versions above theirs.
 *
 * @returns the last position that its history certainly has in common with this one, 0: none is certain; null if the
 *   cursor proves nothing
 */
export function partingOf(db: Database, { position, epoch }: StreamPosition): number | null {
  const { named, next, announced, before } = prepared(db);
  const lastBefore = (limit: number) => before.get(limit)?.position ?? 0;
  if (lastBefore(position) >= position && epochAt(db, position) === epoch) return null;
  const known = epoch === 0 ? null : named.get(epoch % MARK_MS);
  const end = known === undefined ? null : (next.get(known?.number ?? 0)?.position ?? null);
  if (end !== null && position <= end) return null;
  const parted =
    known === undefined || known?.position === 0 ? 0 : lastBefore(Math.min(position, end ?? position));
  return announced.get({ position, parted, number: numberOfEpoch(epoch) }) === undefined ? parted : null;
}

function prepared(db: Database): Statements {
  let statements = statementsOf.get(db);
  if (statements === undefined) {
    statements = {
      times: db.prepare<unknown[], { at: number }>(SELECT_TIMES),
      at: db.prepare<unknown[], { number: number; at: number }>(SELECT_AT),
      named: db.prepare<unknown[], { number: number; position: number }>(SELECT_NAMED),
      next: db.prepare<unknown[], { position: number | null }>(SELECT_NEXT),
      announced: db.prepare<unknown[], { is_announced: number }>(SELECT_ANNOUNCED),
      before: db.prepare<unknown[], { position: number }>(SELECT_BEFORE),
    };
    statementsOf.set(db, statements);
  }
  return statements;
}
