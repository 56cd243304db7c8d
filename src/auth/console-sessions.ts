/**
 * Links and sessions of the console that were ended early. They are in `access.db` and its log, so they stay ended after
 * a restart. Times are epoch milliseconds.
 */
import { type Database, writing } from '../store/database.ts';
import { DAY_MS } from '../time.ts';

/** A session lasts hours; a clock that was days ahead must not make an ended one valid again. */
const KEPT_MS = 30 * DAY_MS;

const SELECT_EPOCH = 'SELECT epoch FROM console WHERE id = 1';
const RAISE_EPOCH = `
  INSERT INTO console (id, epoch) VALUES (1, :nowMs) ON CONFLICT (id) DO UPDATE SET epoch = max(epoch + 1, :nowMs)`;
const SELECT_ENDED = 'SELECT 1 FROM ended_session WHERE id = ?';
const INSERT_ENDED = `
  INSERT INTO ended_session (id, ended_at) VALUES (:id, :nowMs) ON CONFLICT (id) DO NOTHING`;
const DELETE_OLD = 'DELETE FROM ended_session WHERE ended_at < :nowMs - :keptMs';

/** Links and sessions contain the epoch in which they were created, and end with it. */
export function readConsoleEpoch(db: Database): number {
  return db.prepare<[], { epoch: number }>(SELECT_EPOCH).get()?.epoch ?? 0;
}

/**
 * Ends all existing links and sessions. The new epoch is a time, not the next number: if the end of the log is lost, no
 * epoch of the lost part is used again.
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
