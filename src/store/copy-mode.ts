/**
 * Whether transactions wait for the copy. It is in the log, so that a standby that is promoted knows whether the writer may
 * have shown something that the copy lacks. A change of it is itself a transaction that waits.
 */
import { type Database, inspected } from './database.ts';

const SELECT_WAITS = 'SELECT waits FROM copy_mode';
const PUT_WAITS = `
  INSERT INTO copy_mode (id, waits) VALUES (1, :waits) ON CONFLICT (id) DO UPDATE SET waits = excluded.waits`;

export function waitsForCopy(db: Database): boolean {
  return db.prepare<[], number>(SELECT_WAITS).pluck().get() === 1;
}

/** What a database says that may be damaged; false also if it cannot be read. */
export function waitsForCopyIn(path: string): boolean {
  return inspected(path, false, waitsForCopy);
}

/** Call it within a transaction. */
export function setWaitsForCopy(db: Database, waits: boolean): void {
  db.prepare(PUT_WAITS).run({ waits: waits ? 1 : 0 });
}
