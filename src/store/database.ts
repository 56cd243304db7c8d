/**
 * How a database file is opened: the one door to better-sqlite3. No rule of the service lives here.
 *
 * https://sqlite.org/wal.html, https://sqlite.org/pragma.html
 */
import { closeSync, existsSync, openSync, rmSync, statSync } from 'node:fs';
import Driver from 'better-sqlite3';
import { isErrorCode, Refused } from '../refused.ts';
import { withNativeBinding } from './addon.ts';

export type Database = Driver.Database;
export type Statement<Row = unknown> = Driver.Statement<unknown[], Row>;

/** How long a reader waits for a schema change. */
const READER_BUSY_MS = 250;

const PRIVATE_MODE = 0o600;

const READER_CACHE_KIB = 64 * 1024;

/** Opens a database that exists for reading; it waits only briefly, and never writes. */
export function openReader(path: string): Database {
  if (isEmpty(path)) throw emptied(path);
  const db = open(path, { timeout: READER_BUSY_MS, readonly: true, fileMustExist: true });
  return prepared(db, () => {
    db.pragma('synchronous = FULL');
    db.pragma(`cache_size = -${READER_CACHE_KIB}`);
  });
}

/**
 * A connection that cannot be prepared is closed. Left open, it would share the index of its write-ahead log with every
 * later connection of this process to the same file, also under another name, and these would not see their own log.
 *
 * @throws what `prepare` throws
 */
export function prepared(db: Database, prepare: () => void): Database {
  try {
    prepare();
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
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

/** Runs a write transaction from its beginning to its end, with what belongs around the work. */
export type Transact = <Result>(work: () => Result) => Result;

const transactByDatabase = new WeakMap<Database, Transact>();

/** Has {@link writing} run all transactions of a connection this way: no writer can forget what belongs to them. */
export function writeThrough(db: Database, transact: Transact): void {
  transactByDatabase.set(db, transact);
}

/**
 * Runs `work` in one write transaction, taken at once: a reader that turns writer could be refused half-way. Within
 * another one it is a part of that.
 */
export function writing<Result>(db: Database, work: () => Result): Result {
  const transact = db.inTransaction ? undefined : transactByDatabase.get(db);
  return transact === undefined ? db.transaction(work).immediate() : transact(work);
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

/** A database of no bytes is one that was emptied, or never one. */
export function isEmpty(path: string): boolean {
  return existsSync(path) && sizeOf(path) === 0;
}

/** To open it would make SQLite delete the log beside it, and with that what the file's content still needs. */
export function emptied(path: string): Refused {
  return new Refused(
    'configuration',
    `${path} is empty. The log next to it was not changed. Restore a backup: wirewatch restore BACKUP --replace`,
  );
}

/** Removes what lies beside a database: SQLite would join it to whatever takes its place. */
export function removeBeside(path: string): void {
  for (const end of ['-wal', '-shm', '-journal', '-identity']) rmSync(`${path}${end}`, { force: true });
}

export function removeDatabase(path: string): void {
  removeBeside(path);
  rmSync(path, { force: true });
}

export function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/**
 * SQLite would make the file readable for all, as far as the umask lets it, and gives its logs the mode of the file.
 *
 * One that is there is not opened: to close it again would end every lock that this process has on it
 * (https://sqlite.org/howtocorrupt.html, section 2.2).
 */
function makePrivate(path: string): void {
  try {
    closeSync(openSync(path, 'wx', PRIVATE_MODE));
  } catch (error) {
    // All else SQLite meets, too, and says it in its own way; of a folder that is not there it says no code.
    if (isErrorCode(error, 'ENOENT')) throw error;
  }
}

/** @param from a path, or the content of a database that is held in memory alone */
export function open(from: string | Buffer, options: Driver.Options): Database {
  const mayMake = options.readonly !== true && options.fileMustExist !== true;
  if (typeof from === 'string' && from !== ':memory:' && mayMake) makePrivate(from);
  const db = new Driver(from, withNativeBinding(options));
  return prepared(db, () => {
    db.pragma('trusted_schema = OFF');
    db.pragma('cell_size_check = ON');
  });
}
