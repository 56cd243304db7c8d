/**
 * Makes of an installation one as the first version of the program left it: schema 1, and a journal that had no
 * name, no marks, and a file's line after its commit.
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { ACCESS_MIGRATIONS } from '../../src/store/access-schema.ts';
import { DETECTIONS_MIGRATIONS } from '../../src/store/detections-schema.ts';
import type { Migrations } from '../../src/store/migrate.ts';

export function asFirstVersionLeftIt(data: string): void {
  toSchema1(join(data, 'detections.db'), DETECTIONS_MIGRATIONS);
  toSchema1(join(data, 'access.db'), ACCESS_MIGRATIONS);
  const journal = join(data, 'journal');
  const entries = readFileSync(journal, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  const lines = entries.flatMap((entry): object[] => {
    const { position, applied, archived, sha256, at, key_revoked } = entry;
    if (key_revoked !== undefined) return [{ key_revoked, at }];
    if (applied === undefined) return [];
    return [{ position }, { applied, archived, sha256, position, at }];
  });
  writeFileSync(journal, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
}

/** A database with the tables and the columns of schema 1, and the rows of the one at `path`. */
export function toSchema1(path: string, migrations: Migrations): void {
  const draft = `${path}.first`;
  const db = new Database(draft);
  try {
    db.pragma('journal_mode = WAL');
    db.exec(migrations.steps[0] ?? '');
    db.pragma(`application_id = ${migrations.application_id}`);
    db.pragma('user_version = 1');
    db.pragma('foreign_keys = OFF');
    db.prepare('ATTACH ? AS newer').run(path);
    for (const table of db.prepare<[], string>(TABLES).pluck().all()) {
      const columns = db.prepare<[string], string>(COLUMNS).pluck().all(table).join(', ');
      db.exec(`INSERT INTO main.${table} (${columns}) SELECT ${columns} FROM newer.${table}`);
    }
    db.exec('DETACH newer');
  } finally {
    db.close();
  }
  for (const end of ['', '-wal', '-shm']) rmSync(`${path}${end}`, { force: true });
  renameSync(draft, path);
}

const TABLES =
  "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid";
const COLUMNS = 'SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0';
