/** What `detections.db` says of the log: the last entry that it has applied, and whether transactions wait for the copy. */
import { type Database, inspected } from './database.ts';

const UPSERT_MARK = `
  INSERT INTO log_mark (one, entry, id) VALUES (1, :entry, :id)
  ON CONFLICT (one) DO UPDATE SET entry = excluded.entry, id = excluded.id`;

/** An entry of the log: its number and its random id. */
export type LogMark = Readonly<{ entry: number; id: string }>;

export const readLogMark = (db: Database): LogMark | null =>
  db.prepare<unknown[], LogMark>('SELECT entry, id FROM log_mark').get() ?? null;

/** The mark of a database that may be damaged; null also if it cannot be read. */
export const readLogMarkOf = (path: string): LogMark | null => inspected(path, null, readLogMark);

/** In the transaction that applies the entry. */
export const setLogMark = (db: Database, { entry, id }: LogMark) =>
  void db.prepare(UPSERT_MARK).run({ entry, id });

const PUT_WAITS = `
  INSERT INTO copy_mode (id, waits) VALUES (1, :waits) ON CONFLICT (id) DO UPDATE SET waits = excluded.waits`;

/**
 * It is in the log, so that a standby that is promoted knows whether the writer may have shown something that the copy lacks.
 * A change of it is itself a transaction that waits.
 */
export const waitsForCopy = (db: Database): boolean =>
  db.prepare<[], number>('SELECT waits FROM copy_mode').pluck().get() === 1;

/** What a database says that may be damaged; false also if it cannot be read. */
export const waitsForCopyIn = (path: string): boolean => inspected(path, false, waitsForCopy);

/** Call it within a transaction. */
export const setWaitsForCopy = (db: Database, waits: boolean) =>
  void db.prepare(PUT_WAITS).run({ waits: waits ? 1 : 0 });
