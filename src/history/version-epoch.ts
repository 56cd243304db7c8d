/**
 * If the end of a log is lost, clients may have seen changes that it does not have: after a restore on another machine
 * or to an earlier moment, or if somebody copied an older data folder back. Then a *version epoch* begins: versions are
 * raised once, and positions continue far beyond any that clients may have.
 *
 * An older folder that was copied back looks intact. It is recognized by a cursor that is authentic, but has a position
 * that this log never issued.
 */
import type { Database, Statement } from '../store/database.ts';

/** How far positions move ahead: a year of microseconds. */
const EPOCH_POSITIONS = 3.2e13;
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
  SELECT last_position AS position FROM delivery WHERE first_position <= @position
  ORDER BY first_position DESC LIMIT 1`;
const SELECT_EPOCH = `
  SELECT at, position FROM version_epoch WHERE position >= @position ORDER BY position DESC LIMIT 1`;

interface Statements {
  readonly before: Statement<{ position: number }>;
  readonly epoch: Statement<{ at: number; position: number }>;
}

const statementsOf = new WeakMap<Database, Statements>();

/**
 * Whether a cursor proves that the log has lost its end.
 *
 * A cursor has the position of a row, and every row is covered by a delivery. So a cursor between two deliveries was
 * issued by a history that is lost. An epoch in that gap means that the loss is known, unless the cursor is half a year
 * or more beyond what was known then: it was issued in another epoch, which is lost too.
 *
 * @param position of an authentic cursor
 * @returns the last position before the lost part; null if nothing is lost, or the loss is known
 */
export function lostEndBehind(db: Database, position: number): number | null {
  const { before, epoch } = prepared(db);
  const known = before.get({ position })?.position ?? 0;
  if (known >= position) return null;
  const answer = epoch.get({ position });
  if (answer === undefined) return known;
  const then = before.get({ position: answer.position })?.position ?? 0;
  const isOfAnother = position > Math.max(then, positionOfClock(answer.at)) + EPOCH_POSITIONS / 2;
  return isOfAnother ? then : null;
}

function prepared(db: Database): Statements {
  let statements = statementsOf.get(db);
  if (statements === undefined) {
    statements = {
      before: db.prepare<unknown[], { position: number }>(SELECT_BEFORE),
      epoch: db.prepare<unknown[], { at: number; position: number }>(SELECT_EPOCH),
    };
    statementsOf.set(db, statements);
  }
  return statements;
}
