/** Puts the `access.db` of the writer in place of that of a standby, under the connections that read it. */
import { rmSync } from 'node:fs';
import { refreshSpare } from '../auth/spare-copy.ts';
import { ACCESS_SCHEMA } from '../store/access-schema.ts';
import { openDatabase } from '../store/database.ts';
import { type DataFolder, writeWhole } from '../store/folder.ts';

const SELECT_TABLES = `
  SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`;

/**
 * Replaces every row in one transaction: a reader has the old state or the new one.
 * @param content a database of the same schema
 * @throws SQLite's and the file system's errors, with nothing changed
 */
export function replaceAccess(folder: DataFolder, content: Buffer): void {
  const incoming = `${folder.access}-incoming`;
  using db = openDatabase(folder.access, 'write', ACCESS_SCHEMA);
  writeWhole(incoming, content);
  try {
    db.prepare('ATTACH ? AS incoming').run(incoming);
    const tables = db.prepare<[], string>(SELECT_TABLES).pluck().all();
    db.transaction(() => {
      // Rows of one table refer to those of another.
      db.pragma('defer_foreign_keys = ON');
      for (const table of tables) db.exec(`DELETE FROM main.${table}`);
      for (const table of tables) db.exec(`INSERT INTO main.${table} SELECT * FROM incoming.${table}`);
    }).immediate();
    db.exec('DETACH incoming');
  } finally {
    rmSync(incoming, { force: true });
  }
  refreshSpare(db, folder);
}
