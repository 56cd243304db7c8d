/**
 * How a database file is opened: the one door to better-sqlite3. No rule of the service lives here.
 *
 * https://sqlite.org/wal.html, https://sqlite.org/pragma.html
 */
import { existsSync, statSync } from 'node:fs';
import Driver from 'better-sqlite3';
import { Refused } from '../refused.ts';
import { withNativeBinding } from './addon.ts';
import { isErrorCode } from './folder.ts';
import { bringUpToDate, type Migrated, type Migrations, migrate, schemaVersion } from './migrate.ts';

export type Database = Driver.Database;
export type Statement<Row = unknown> = Driver.Statement<unknown[], Row>;

/** How long a writer waits for another process's write, and a reader for a schema change. */
const WRITER_BUSY_MS = 5_000;
const READER_BUSY_MS = 250;
/** A command that looks whether the lock is held has it for a moment itself. */
const LOCK_BUSY_MS = 500;

/** Large pages: rows are about a kilobyte, and a page of the stream should touch few of them. */
const PAGE_BYTES = 16_384;
const WRITER_CACHE_KIB = 128 * 1024;
const READER_CACHE_KIB = 64 * 1024;

/** After a checkpoint the log is cut to this size. */
const WAL_BYTES_MAX = 64 * 1024 * 1024;

/**
 * Opens a database for writing, creates it or brings its schema up to date.
 *
 * `synchronous=FULL`: without it a commit that was acknowledged can be lost with the power.
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
  const db = open(path, { timeout: WRITER_BUSY_MS });
  db.pragma(`page_size = ${PAGE_BYTES}`);
  if (db.pragma('journal_mode = WAL', { simple: true }) !== 'wal') {
    throw new Refused(
      'configuration',
      `${path}: the file system does not support SQLite's write-ahead log. Use a local disk for the data folder.`,
    );
  }
  db.pragma('synchronous = FULL');
  db.pragma('foreign_keys = ON');
  db.pragma(`cache_size = -${WRITER_CACHE_KIB}`);
  db.pragma(`journal_size_limit = ${WAL_BYTES_MAX}`);
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
  const db = open(path, { timeout: WRITER_BUSY_MS, readonly: true });
  try {
    schemaVersion(db, path, migrations);
  } finally {
    db.close();
  }
}

/** Opens a database that exists for reading; it waits only briefly, and never writes. */
export function openReader(path: string): Database {
  if (isEmpty(path)) throw emptied(path);
  const db = open(path, { timeout: READER_BUSY_MS, readonly: true, fileMustExist: true });
  db.pragma('synchronous = FULL');
  db.pragma(`cache_size = -${READER_CACHE_KIB}`);
  return db;
}

/**
 * Opens a database to look through it, beside a running appliance or not, and leaves nothing behind.
 *
 * A read-only connection to a database that is closed would leave an empty log beside it. So such a one is opened as
 * writers do, and forbidden to write: SQLite takes the log away as it is closed.
 */
export function openInspector(path: string): Database {
  if (isEmpty(path) || existsSync(`${path}-wal`)) return openReader(path);
  const db = open(path, { timeout: READER_BUSY_MS, fileMustExist: true });
  db.pragma('query_only = ON');
  return db;
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
 * Takes the lock that one process at a time can hold; it ends with the process, however that ends.
 *
 * @returns what gives the lock back; null when another process holds it
 */
export function takeLock(path: string): (() => void) | null {
  const db = open(path, { timeout: LOCK_BUSY_MS });
  try {
    db.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    db.close();
    if (isErrorCode(error, 'SQLITE_BUSY')) return null;
    throw error;
  }
  return () => db.close();
}

/** Whether a process holds the lock of {@link takeLock}. */
export function isLocked(path: string): boolean {
  const db = open(path, { timeout: 0, readonly: true });
  try {
    db.prepare('SELECT 1 FROM sqlite_schema').get();
    return false;
  } catch (error) {
    if (isErrorCode(error, 'SQLITE_BUSY')) return true;
    throw error;
  } finally {
    db.close();
  }
}

/** Runs `work` in one write transaction, taken at once: a reader that turns writer could be refused half-way. */
export function writing<Result>(db: Database, work: () => Result): Result {
  return db.transaction(work).immediate();
}

/** Runs `work` on one snapshot of the database. */
export function reading<Result>(db: Database, work: () => Result): Result {
  // Not db.transaction(): it makes four functions for each call, and this is called for every page.
  if (db.inTransaction) return work();
  const { begin, commit } = bounds(db);
  begin.run();
  try {
    return work();
  } finally {
    if (db.inTransaction) commit.run();
  }
}

interface Bounds {
  readonly begin: Statement;
  readonly commit: Statement;
}

const boundsByDatabase = new WeakMap<Database, Bounds>();

/** Prepared once: exec() would compile both again for every page. */
function bounds(db: Database): Bounds {
  let found = boundsByDatabase.get(db);
  if (found === undefined) {
    found = { begin: db.prepare('BEGIN'), commit: db.prepare('COMMIT') };
    boundsByDatabase.set(db, found);
  }
  return found;
}

/** Whether an error says that the disk is full. */
export function isDiskFull(error: unknown): boolean {
  return isErrorCode(error, 'SQLITE_FULL', 'ENOSPC', 'EDQUOT');
}

/** Whether an error says that a database's content is not what SQLite wrote. */
export function isDamage(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return code.startsWith('SQLITE_CORRUPT') || code === 'SQLITE_NOTADB';
}

/** Whether an error says that something that was written may not be on the disk. */
export function isWriteLost(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return code === 'EIO' || /^SQLITE_IOERR_(DIR_)?(FSYNC|WRITE|TRUNCATE)/.test(code);
}

/** Whether an error says that a file may not be opened, or not be written to, by this user. */
export function isForbidden(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return ['EACCES', 'EPERM'].includes(code) || /^SQLITE_(CANTOPEN|READONLY)/.test(code);
}

/** A database of no bytes is one that was emptied, or never one. */
export function isEmpty(path: string): boolean {
  return existsSync(path) && sizeOf(path) === 0;
}

/** To open it would make SQLite delete the log beside it, and with that what the file's content still needs. */
function emptied(path: string): Refused {
  return new Refused(
    'configuration',
    `${path} is empty, and its log beside it is not touched. Put a backup in its place: wirewatch restore FILE --replace`,
  );
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** @param from a path, or the content of a database that is held in memory alone */
function open(from: string | Buffer, options: Driver.Options): Database {
  const db = new Driver(from, withNativeBinding(options));
  db.pragma('trusted_schema = OFF');
  db.pragma('cell_size_check = ON');
  return db;
}
