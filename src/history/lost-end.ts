/**
 * Where the end of a log is lost, clients may have seen more than it tells: a restore on another machine or to an earlier
 * moment, an older data folder that somebody put back. A *version epoch* is the answer: versions are raised once, and
 * positions go on far beyond any that may have been given out.
 *
 * A folder that was put back looks sound. What gives it away is a cursor: authentic, but of a position that this log
 * never gave out.
 */
import type { Database, Statement } from '../store/database.ts';

/** A year of microseconds: what positions go on by. */
const EPOCH_POSITIONS = 3.2e13;
/** A clock beyond it is wrong, and positions that follow it could not be given up again. */
const CLOCK_MAX_MS = Date.UTC(2200);

/** The position that belongs to a time; 0 where the clock is not believed. */
export function positionOfClock(nowMs: number): number {
  return nowMs > CLOCK_MAX_MS ? 0 : nowMs * 1000;
}

/** Beyond which position they go on. @param known every position of which it is known that it was given out */
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
 * Whether a cursor tells of a part of the history that the log does not have.
 *
 * Cursors stand at positions of rows, all of which a delivery covers. One between two deliveries was given out by a
 * history that is lost; if that has no epoch yet, it is not known to be. So is one in the gap before an epoch that
 * stands half a year or more beyond what was known then: it comes from behind another epoch, which is lost too.
 *
 * @param position of an authentic cursor
 * @returns the last position before the lost part; null where nothing is lost, or is known to be
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
