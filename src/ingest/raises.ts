/** The raises on record: `version_raise` in detections.db, numbered from 1 on. */
import type { Database } from '../store/database.ts';

const SELECT_RAISES = 'SELECT at FROM version_raise ORDER BY number';
const INSERT_RAISE = `
  INSERT INTO version_raise (number, at, reason) VALUES (:number, :at, :reason) ON CONFLICT (number) DO NOTHING`;

export interface Raise {
  readonly number: number;
  /** Epoch milliseconds. */
  readonly at: number;
  /** In words. */
  readonly reason: string;
}

/** When there were raises, the first one first, epoch milliseconds. */
export function readRaises(db: Database): number[] {
  return db
    .prepare<unknown[], { at: number }>(SELECT_RAISES)
    .all()
    .map(({ at }) => at);
}

/** Notes a raise, and those before it that this state of the database does not know. */
export function saveRaise(db: Database, raise: Raise): void {
  for (let number = readRaises(db).length + 1; number <= raise.number; number += 1)
    db.prepare(INSERT_RAISE).run({ ...raise, number });
}
