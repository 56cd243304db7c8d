/**
 * How far in the journal a database has come: one row in each, written in the very transaction that took it there.
 *
 * What stands in the journal behind the mark happened after this state of the database. So a database that was put
 * back knows by itself what it lacks.
 */
import type { Database } from './database.ts';
import type { JournalMark } from './journal-lines.ts';

/** Step 2 of both schemas. */
export const CREATE_JOURNAL_MARK = `
CREATE TABLE journal_mark (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  -- The journal's name; null for one that was begun before journals had names.
  journal TEXT,
  -- Where the line ends that was the last one of this state.
  bytes INTEGER NOT NULL,
  -- By which that line is known again.
  line TEXT NOT NULL
) STRICT;
`;

const SELECT_MARK = 'SELECT journal, bytes, line FROM journal_mark WHERE id = 1';

const UPSERT_MARK = `
  INSERT INTO journal_mark (id, journal, bytes, line) VALUES (1, :journal, :bytes, :line)
  ON CONFLICT (id) DO UPDATE SET journal = excluded.journal, bytes = excluded.bytes, line = excluded.line`;

/** @returns null where none was ever set: the database is new, or of a version that had none */
export function readMark(db: Database): JournalMark | null {
  return db.prepare<unknown[], JournalMark>(SELECT_MARK).get() ?? null;
}

/** Within the transaction that the mark is of. */
export function setMark(db: Database, mark: JournalMark): void {
  db.prepare(UPSERT_MARK).run(mark);
}
