/**
 * `usage.db`: what the running appliance counts and may lose. Rows read by day, so that they outlive a restart: read
 * at the start, written by the thread for it.
 *
 * In no log and no backup. A file that cannot be used is worth no failed start: it is set aside, and a new one made.
 */
import { renameSync, rmSync } from 'node:fs';
import { Refused, reasonOf } from '../refused.ts';
import { type Database, emptied, isEmpty, writing } from '../store/database.ts';
import { DatabaseDamage, isDiskFull } from '../store/database-errors.ts';
import { isThere } from '../store/folder.ts';
import type { Schema } from '../store/schema.ts';
import { openWriter } from '../store/writer.ts';
import type { UsedRows } from './daily-rows.ts';

/** What one write stores. */
export interface Usage {
  /** Counts that are new or have grown. */
  readonly counts: readonly UsedRows[];
  /** The days to keep; all others are deleted. */
  readonly days: readonly number[];
}

const SQL = `
-- How many rows each account and each key has read on a UTC day.
CREATE TABLE row_usage (
  -- Days since 1970-01-01.
  day INTEGER NOT NULL,
  holder TEXT NOT NULL CHECK (holder IN ('account', 'key')),
  -- Of a key, or of an account with its created_at: an account that is added again has used nothing.
  id TEXT NOT NULL,
  rows INTEGER NOT NULL,
  PRIMARY KEY (day, holder, id)
) STRICT, WITHOUT ROWID;
`;

const USAGE_SCHEMA: Schema = { application_id: 0x77770013, sql: SQL };

const SELECT_USED_ROWS = 'SELECT day, holder, id, rows FROM row_usage';

const UPSERT_USED_ROWS = `
  INSERT INTO row_usage (day, holder, id, rows) VALUES (:day, :holder, :id, :rows)
  ON CONFLICT (day, holder, id) DO UPDATE SET rows = excluded.rows`;

const DELETE_DAYS = 'DELETE FROM row_usage WHERE day NOT IN (SELECT value FROM json_each(:days))';

/** Made where it is missing. A power cut may take the last writes: no commit waits for the disk. */
export function openUsage(path: string): Database {
  const db = openWriter(path, USAGE_SCHEMA);
  db.pragma('synchronous = NORMAL');
  return db;
}

/**
 * What was counted before this start.
 *
 * @param onAnew told why nothing is taken over; on a full disk the file stays where it is
 */
export function readUsageAtStart(path: string, onAnew: (reason: string) => void): UsedRows[] {
  try {
    if (isEmpty(path)) throw emptied(path);
    const db = openUsage(path);
    try {
      const found = db.pragma('quick_check(1)', { simple: true });
      if (found !== 'ok') throw new DatabaseDamage(String(found));
      return readUsedRows(db);
    } finally {
      db.close();
    }
  } catch (error) {
    // What these advise is meant for databases that must not be lost.
    onAnew(
      error instanceof Refused ? 'it is empty, of another program or of another schema' : reasonOf(error),
    );
    if (!isDiskFull(error)) setAside(path);
    return [];
  }
}

/** Not deleted: it may be another program's. SQLite would join a log left beside it to the new database. */
function setAside(path: string): void {
  for (const end of ['', '-wal', '-shm', '-journal']) {
    rmSync(`${path}.damaged${end}`, { recursive: true, force: true });
    if (isThere(`${path}${end}`)) renameSync(`${path}${end}`, `${path}.damaged${end}`);
  }
}

export function readUsedRows(db: Database): UsedRows[] {
  return db.prepare<[], UsedRows>(SELECT_USED_ROWS).all();
}

export function writeUsage(db: Database, { counts, days }: Usage): void {
  writing(db, () => {
    const upsert = db.prepare(UPSERT_USED_ROWS);
    for (const count of counts) upsert.run(count);
    db.prepare(DELETE_DAYS).run({ days: JSON.stringify(days) });
  });
}
