/** Used rows in `access.db`, so that they outlive a restart: read at the start, written by the thread for it. */
import { type Database, writing } from '../store/database.ts';
import type { UsedRows } from './daily-rows.ts';

/** What the file is to hold. */
export interface Usage {
  /** Counts that are new or have grown. */
  readonly counts: readonly UsedRows[];
  /** The days to keep; all others are deleted. */
  readonly days: readonly number[];
}

const SELECT_USAGE = 'SELECT day, holder, id, rows FROM row_usage';

const UPSERT_USAGE = `
  INSERT INTO row_usage (day, holder, id, rows) VALUES (:day, :holder, :id, :rows)
  ON CONFLICT (day, holder, id) DO UPDATE SET rows = excluded.rows`;

const DELETE_DAYS = 'DELETE FROM row_usage WHERE day NOT IN (SELECT value FROM json_each(:days))';

export function readUsage(db: Database): UsedRows[] {
  return db.prepare<[], UsedRows>(SELECT_USAGE).all();
}

export function writeUsage(db: Database, { counts, days }: Usage): void {
  writing(db, () => {
    const upsert = db.prepare(UPSERT_USAGE);
    for (const count of counts) upsert.run(count);
    db.prepare(DELETE_DAYS).run({ days: JSON.stringify(days) });
  });
}
