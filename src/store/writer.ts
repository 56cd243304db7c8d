/**
 * How a database is opened for writing: made where it is missing, brought up to date where it is older, refused
 * where it is newer or not ours.
 */
import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { Refused } from '../refused.ts';
import { type Database, emptied, isEmpty, open, sizeOf } from './database.ts';
import { appearAs, isThere, syncFile } from './folder.ts';
import { bringUpToDate, type Migrated, type Migrations, migrate, schemaVersion } from './migrate.ts';

/** How long a writer waits for another process's write. */
const BUSY_MS = 5_000;

/** Large pages: rows are about a kilobyte, and a page of the stream should touch few of them. */
const PAGE_BYTES = 16_384;
const CACHE_KIB = 128 * 1024;

/** After a checkpoint the log is cut to this size. */
const WAL_BYTES_MAX = 64 * 1024 * 1024;

/**
 * Opens a database for writing, creates it or brings its schema up to date.
 *
 * @param onMigrated told when the schema was an older one
 * @throws Refused `configuration` when it is newer or not ours, with nothing touched
 */
export function openWriter(
  path: string,
  migrations: Migrations,
  onMigrated: (migrated: Migrated) => void = () => {},
): Database {
  refuseForeign(path, migrations);
  if (!isThere(path) && !isThere(`${path}-wal`)) create(path, migrations);
  const db = openFile(path);
  const migrated = migrate(db, path, migrations);
  if (migrated !== null) onMigrated(migrated);
  return db;
}

/**
 * Looks whether a database can be opened by this program, without touching it: even to open it for writing can
 * move what stands in its log.
 *
 * @throws Refused `configuration` when it is newer or not ours
 */
export function refuseForeign(path: string, migrations: Migrations): void {
  if (isEmpty(path) && sizeOf(`${path}-wal`) > 0) throw emptied(path);
  if (sizeOf(path) === 0) return;
  const db = open(path, { timeout: BUSY_MS, readonly: true });
  try {
    schemaVersion(db, path, migrations);
  } finally {
    db.close();
  }
}

/**
 * A copy in memory, with the schema of this program, to try something on; the caller closes it.
 *
 * @param db null: of a database that is new
 */
export function openRehearsal(db: Database | null, migrations: Migrations): Database {
  const content = db?.serialize() ?? null;
  // Marked as one without a write-ahead log, which memory cannot have: https://sqlite.org/c3ref/deserialize.html
  content?.fill(1, 18, 20);
  const copy = open(content ?? ':memory:', {});
  copy.pragma('foreign_keys = ON');
  bringUpToDate(copy, db?.name ?? ':memory:', migrations);
  return copy;
}

/**
 * A database appears under its name only when it is whole: several processes may begin one at the same moment, and
 * none sees the half of another, nor does the next start after a crash.
 */
function create(path: string, migrations: Migrations): void {
  const draft = `${path}.new-${randomUUID()}`;
  try {
    const db = openFile(draft);
    try {
      bringUpToDate(db, path, migrations);
    } finally {
      db.close();
    }
    syncFile(draft);
    appearAs(path, draft);
  } finally {
    removeDraft(draft);
  }
}

function removeDraft(draft: string): void {
  for (const end of ['', '-wal', '-shm', '-journal']) rmSync(`${draft}${end}`, { force: true });
}

/** `synchronous=FULL`: without it a commit that was acknowledged can be lost with the power. */
function openFile(path: string): Database {
  const db = open(path, { timeout: BUSY_MS });
  db.pragma(`page_size = ${PAGE_BYTES}`);
  if (db.pragma('journal_mode = WAL', { simple: true }) !== 'wal') {
    throw new Refused(
      'configuration',
      `${path}: the file system does not support SQLite's write-ahead log. Use a local disk for the data folder.`,
    );
  }
  db.pragma('synchronous = FULL');
  db.pragma('foreign_keys = ON');
  db.pragma(`cache_size = -${CACHE_KIB}`);
  db.pragma(`journal_size_limit = ${WAL_BYTES_MAX}`);
  return db;
}
