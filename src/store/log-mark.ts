/** The last log entry that a database has applied, written in the same transaction. */
import { type Database, inspected } from './database.ts';

/** Part of a schema. */
export const CREATE_LOG_MARK = `
-- The last entry of the log that is applied; no row: none.
CREATE TABLE log_mark (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  entry INTEGER NOT NULL,
  id TEXT NOT NULL
) STRICT;
`;

const SELECT_MARK = 'SELECT entry, id FROM log_mark';
const UPSERT_MARK = `
  INSERT INTO log_mark (one, entry, id) VALUES (1, :entry, :id)
  ON CONFLICT (one) DO UPDATE SET entry = excluded.entry, id = excluded.id`;

/** An entry of the log: its number and its random id. */
export interface LogMark {
  readonly entry: number;
  readonly id: string;
}

export function readLogMark(db: Database): LogMark | null {
  return db.prepare<unknown[], LogMark>(SELECT_MARK).get() ?? null;
}

/** The mark of a database that may be damaged; null also if it cannot be read. */
export function readLogMarkOf(path: string): LogMark | null {
  return inspected(path, null, readLogMark);
}

export function setLogMark(db: Database, { entry, id }: LogMark): void {
  db.prepare(UPSERT_MARK).run({ entry, id });
}
