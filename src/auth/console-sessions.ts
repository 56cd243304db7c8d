/**
 * Which of the console's links and sessions have ended before their time, in `access.db` and its log: one that has
 * ended stays so over a restart. Times are epoch milliseconds.
 */
import { type Database, writing } from '../store/database.ts';
import { DAY_MS } from '../time.ts';

/** A session lasts hours; a clock that was ahead for days must not bring one back to life. */
const KEPT_MS = 30 * DAY_MS;

const SELECT_EPOCH = 'SELECT epoch FROM console WHERE id = 1';
const RAISE_EPOCH = `
  INSERT INTO console (id, epoch) VALUES (1, :nowMs) ON CONFLICT (id) DO UPDATE SET epoch = max(epoch + 1, :nowMs)`;
const SELECT_ENDED = 'SELECT 1 FROM ended_session WHERE id = ?';
const INSERT_ENDED = `
  INSERT INTO ended_session (id, ended_at) VALUES (:id, :nowMs) ON CONFLICT (id) DO NOTHING`;
const DELETE_OLD = 'DELETE FROM ended_session WHERE ended_at < :nowMs - :keptMs';

/** Links and sessions carry the epoch in which they were made, and end with it. */
export function readConsoleEpoch(db: Database): number {
  return db.prepare<[], { epoch: number }>(SELECT_EPOCH).get()?.epoch ?? 0;
}

/**
 * Ends every link and session that was made before. The new epoch is a time, not the next number: where the end of the
 * log was lost, no epoch of the lost part comes back.
 */
export function endConsoleSessions(db: Database, nowMs: number): void {
  writing(db, () => db.prepare(RAISE_EPOCH).run({ nowMs }));
}

export function isConsoleSessionEnded(db: Database, id: string): boolean {
  return db.prepare<[string]>(SELECT_ENDED).get(id) !== undefined;
}

/** Ends one session. */
export function endConsoleSession(db: Database, id: string, nowMs: number): void {
  writing(db, () => {
    db.prepare(INSERT_ENDED).run({ id, nowMs });
    db.prepare(DELETE_OLD).run({ nowMs, keptMs: KEPT_MS });
  });
}
