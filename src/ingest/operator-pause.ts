/** The pause of ingest, in `access.db`. */
import { type Database, writing } from '../store/database.ts';

const INSERT_PAUSE = 'INSERT INTO ingest_pause (id, paused_at) VALUES (1, :paused_at) ON CONFLICT DO NOTHING';
const DELETE_PAUSE = 'DELETE FROM ingest_pause RETURNING paused_at';
const SELECT_PAUSE = 'SELECT paused_at FROM ingest_pause WHERE id = 1';

/** Since when ingest is paused, epoch milliseconds; null while it is not. */
export const readPause = (access: Database): number | null =>
  access.prepare<[], number>(SELECT_PAUSE).pluck().get() ?? null;

/** Pauses ingest, or leaves it paused; @returns since when it is, epoch milliseconds */
export function pauseIngest(access: Database, nowMs: number): number {
  return writing(access, () => {
    access.prepare(INSERT_PAUSE).run({ paused_at: nowMs });
    return readPause(access) ?? nowMs;
  });
}

/** Ends a pause; @returns since when it was, null when there was none */
export const resumeIngest = (access: Database): number | null =>
  writing(access, () => access.prepare<[], number>(DELETE_PAUSE).pluck().get() ?? null);
