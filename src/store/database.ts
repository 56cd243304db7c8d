/** Opens SQLite databases: the only place that does. https://sqlite.org/wal.html, https://sqlite.org/pragma.html */
import { randomUUID } from 'node:crypto';
import { closeSync, existsSync, openSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { crc32 } from 'node:zlib';
import Driver from 'better-sqlite3';
import { getOrMake } from '../get-or-make.ts';
import { isErrorCode, misconfigured, Refused, unlessError } from '../refused.ts';
import { nativeBinding } from './addon.ts';
import { appearAs, isThere, syncFile } from './folder.ts';

/** A `using` declaration closes it. */
export type Database = Driver.Database & Disposable;
export type Statement<Row = unknown> = Driver.Statement<unknown[], Row>;

/**
 * The tables of a database, and the numbers by which its file is recognized. There are no migrations: a database with a
 * log is rebuilt from it with the tables of this program; others start empty, or are refused.
 */
export interface Schema {
  /** Identifies the program and the kind of database: https://sqlite.org/pragma.html#pragma_application_id */
  readonly application_id: number;
  readonly sql: string;
  /** NORMAL if a commit need not survive a power cut, for example because a log has it already. */
  readonly synchronous: 'FULL' | 'NORMAL';
}

export class UnknownSchema extends Refused {}

/** The `user_version` of a schema: any change to its text gives another one. */
const schemaVersion = ({ sql }: Schema): number => crc32(sql) % 0x7fffffff;

/** How long a reader waits for a schema change, and a writer for the write of another process. */
const READER_BUSY_MS = 250;
const WRITER_BUSY_MS = 5_000;
/** A page of the stream reads neighbouring pages of the file: the system caches those that are read again. */
const READER_CACHE_KIB = 16 * 1024;
/** New ids and times are put in all over their indexes. */
const WRITER_CACHE_KIB = 64 * 1024;
const SCRATCH_CACHE_KIB = 32 * 1024;
/** Large pages: rows are about a kilobyte, and a page of the stream should touch few of them. */
const PAGE_BYTES = 16_384;
/** A checkpoint truncates the write-ahead log to this size. */
const WAL_BYTES_MAX = 64 * 1024 * 1024;

type ModeOptions = Readonly<{ driver: Driver.Options; pragmas: readonly string[] }>;

const MODES = {
  /** Reads beside a writer: waits only briefly, never writes. */
  read: {
    driver: { readonly: true, fileMustExist: true, timeout: READER_BUSY_MS },
    pragmas: [`cache_size = -${READER_CACHE_KIB}`],
  },
  /** Reads a database whether or not an appliance has it open, and leaves no file beside it. */
  inspect: { driver: { fileMustExist: true, timeout: READER_BUSY_MS }, pragmas: ['query_only = ON'] },
  /** Writes. The file is created if it is missing, and refused if its tables are not those of the schema. */
  write: {
    driver: { timeout: WRITER_BUSY_MS },
    pragmas: [
      // First: it has an effect only on a file that is still empty.
      `page_size = ${PAGE_BYTES}`,
      'foreign_keys = ON',
      `cache_size = -${WRITER_CACHE_KIB}`,
      `journal_size_limit = ${WAL_BYTES_MAX}`,
      // What SQLite keeps for a savepoint takes no room: a revocation succeeds on a full disk.
      'temp_store = MEMORY',
      // Always: what an earlier change left in the free part of a page, no later removal would find.
      'secure_delete = ON',
    ],
  },
  /** In the file's own journal mode: for locks, and to roll back a journal. */
  plain: { driver: {}, pragmas: [] },
  'plain, read-only': { driver: { readonly: true }, pragmas: [] },
} as const satisfies Record<string, ModeOptions>;

type Mode = keyof typeof MODES;

/**
 * Opens a database; the caller closes it.
 *
 * A read-only connection to a database that nobody has open would leave an empty write-ahead log beside it. So `inspect`
 * opens such a one for writing and forbids writes: SQLite then removes its files when the connection closes.
 * @param schema the tables: to create them, or to check that they are there
 * @throws UnknownSchema if the tables are others; Refused `configuration` if the file is empty, not a Wirewatch
 *   database, or on a file system without shared memory. Nothing is changed then
 */
export function openDatabase(path: string, mode: Exclude<Mode, 'write'>): Database;
export function openDatabase(path: string, mode: 'write', schema: Schema): Database;
export function openDatabase(path: string, mode: Mode, schema?: Schema): Database {
  if (mode === 'read' || mode === 'inspect') {
    if (isEmpty(path)) throw emptied(path);
    return connect(path, mode === 'read' || existsSync(`${path}-wal`) ? MODES.read : MODES.inspect);
  }
  if (schema === undefined) return connect(path, MODES[mode]);
  refuseForeign(path, schema);
  if (!isThere(path) && !isThere(`${path}-wal`)) create(path, schema);
  return openForWriting(path, schema);
}

/** Checks that a database can be opened, without touching it: opening it to write may checkpoint it. @throws as openDatabase */
export function refuseForeign(path: string, schema: Schema) {
  if (isEmpty(path) && sizeOf(`${path}-wal`) > 0) throw emptied(path);
  // SQLite would turn it into a database without tables.
  if (sizeOf(path) === 0) return rmSync(path, { force: true });
  using db = connect(path, { driver: { readonly: true, timeout: WRITER_BUSY_MS }, pragmas: [] });
  requireSchema(db, path, schema);
}

/** A database gets its name only when it is complete: another process, or a start after a crash, must not find half of it. */
function create(path: string, schema: Schema): void {
  const draft = `${path}.new-${randomUUID()}`;
  try {
    {
      using db = openForWriting(draft, schema);
      makeSchema(db, schema);
      // To close it would do so, too, but not say that it failed: then only its write-ahead log would have the tables.
      db.pragma('wal_checkpoint(TRUNCATE)');
    }
    syncFile(draft);
    appearAs(path, draft);
  } finally {
    removeDatabase(draft);
  }
}

export function makeSchema(db: Database, schema: Schema): void {
  db.transaction(() => {
    db.exec(schema.sql);
    db.pragma(`application_id = ${schema.application_id}`);
    db.pragma(`user_version = ${schemaVersion(schema)}`);
  }).immediate();
}

/** @throws UnknownSchema if the tables are others; Refused `configuration` if it is not a database of this kind */
export function requireSchema(db: Database, path: string, schema: Schema): void {
  if (Number(db.pragma('application_id', { simple: true })) !== schema.application_id)
    throw misconfigured(
      `${path} is not a Wirewatch database, or was created by a version before the first release. Name another data folder with --data.`,
    );
  if (Number(db.pragma('user_version', { simple: true })) !== schemaVersion(schema))
    throw new UnknownSchema('configuration', `${path} was created by another version of Wirewatch.`);
}

function openForWriting(path: string, { synchronous }: Schema): Database {
  const db = connect(path, MODES.write);
  return prepared(db, () => {
    if (db.pragma('journal_mode = WAL', { simple: true }) !== 'wal')
      throw misconfigured(
        `${path}: the file system does not support the write-ahead log of SQLite. Put the data folder on a local disk.`,
      );
    db.pragma(`synchronous = ${synchronous}`);
    // It begins a write, and has nothing to do. Where SQLite could open the file or its `-shm` only to read, that fails, and each
    // later one would.
    db.pragma('incremental_vacuum');
  });
}

/** Opens the content of a database file in memory; the caller closes it. @param content is changed */
export function openContent(content: Buffer | ':memory:'): Database {
  // Clears the marks of a write-ahead log, which memory cannot have: https://sqlite.org/c3ref/deserialize.html
  if (content !== ':memory:') content.fill(1, 18, 20);
  return connect(content, { driver: {}, pragmas: ['foreign_keys = ON'] });
}

/** Opens a new temporary database on the disk, without a name, so that a crash leaves nothing. @param root where the room is */
export function openScratch(root: string, schema: Schema): Database {
  writeTemporaryTo(root);
  const db = connect('', { driver: {}, pragmas: [`cache_size = -${SCRATCH_CACHE_KIB}`] });
  return prepared(db, () => {
    // The driver's defensive mode ignores this pragma, and SQLite would write each page twice.
    db.unsafeMode(true).pragma('journal_mode = OFF');
    db.unsafeMode(false);
    makeSchema(db, schema);
  });
}

/**
 * Has SQLite write its temporary files where the room is; its own choice is /var/tmp. It reads the variable once, when it
 * opens the first database, which the main thread does: a lock. https://sqlite.org/tempfiles.html
 */
function writeTemporaryTo(folder: string): void {
  process.env.SQLITE_TMPDIR ??= folder;
}

/** @param from a path, or the content of a database in memory; empty: a temporary one on the disk (https://sqlite.org/inmemorydb.html) */
function connect(from: string | Buffer, { driver, pragmas }: ModeOptions): Database {
  const mayCreate = driver.readonly !== true && driver.fileMustExist !== true;
  if (typeof from === 'string' && from !== '' && from !== ':memory:' && mayCreate) {
    writeTemporaryTo(dirname(from));
    makePrivate(from);
  }
  // The published types do not know yet that the addon can be an object.
  const options: Driver.Options = Object.assign({}, driver, { nativeBinding: nativeBinding() });
  const db: Database = Object.assign(new Driver(from, options), { [Symbol.dispose]: () => void db.close() });
  return prepared(db, () => {
    for (const pragma of ['trusted_schema = OFF', 'cell_size_check = ON', ...pragmas]) db.pragma(pragma);
  });
}

/**
 * Closes a connection that cannot be prepared. Left open, it would share the index of its write-ahead log with later
 * connections to the same file, also under another name. @throws what `prepare` throws
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
 * SQLite would make the file readable by all. An existing file is not opened: closing it would end every lock that this
 * process has on it (https://sqlite.org/howtocorrupt.html, section 2.2).
 */
function makePrivate(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    // SQLite reports every other error itself; for a missing folder it gives no code.
    if (isErrorCode(error, 'ENOENT')) throw error;
  }
}

/** Runs a write transaction, with everything that belongs around the work. */
export type Transact = <Result>(work: () => Result) => Result;

const transactByDatabase = new WeakMap<Database, Transact>();

/** Makes {@link writing} run all transactions of a connection this way, so that no writer can forget a step. */
export const writeThrough = (db: Database, transact: Transact) => void transactByDatabase.set(db, transact);

/** Runs `work` in a write transaction, or in the open one. It locks at once: a reader that begins to write could be refused. */
export function writing<Result>(db: Database, work: () => Result): Result {
  const transact = db.inTransaction ? undefined : transactByDatabase.get(db);
  return transact === undefined ? db.transaction(work).immediate() : transact(work);
}

/** A statement that is prepared once for each connection: preparing takes longer than reading a few rows. */
export function preparedOnce<Row = unknown>(sql: string): (db: Database) => Statement<Row> {
  const byDatabase = new WeakMap<Database, Statement<Row>>();
  return (db) => getOrMake(byDatabase, db, () => db.prepare<unknown[], Row>(sql));
}

/** For `json_object`: members that are named like their columns. */
export const jsonMembers = (...columns: string[]): string =>
  columns.map((name) => `'${name}', ${name}`).join(', ');

/** What a statement selects, one JSON document a row. */
export function documents<One>(db: Database, sql: string, values: object = {}): One[] {
  const texts = db.prepare<object, string>(sql).pluck().all(values);
  return texts.map((text): One => JSON.parse(text));
}

const begin = preparedOnce('BEGIN');
const commit = preparedOnce('COMMIT');

/** Runs `work` on one snapshot of the database. */
export function reading<Result>(db: Database, work: () => Result): Result {
  // Not db.transaction(): it makes four functions for each call, and this is called for every page.
  if (db.inTransaction) return work();
  begin(db).run();
  try {
    return work();
  } finally {
    if (db.inTransaction) commit(db).run();
  }
}

/** What is read from a database that may be damaged; `otherwise` if that cannot be read. */
export const inspected = <Result>(path: string, otherwise: Result, read: (db: Database) => Result): Result =>
  unlessError(otherwise, () => {
    using db = openDatabase(path, 'inspect');
    return read(db);
  });

/** The first thing that SQLite finds wrong with a database; null: nothing. */
export function integrityError(db: Database): string | null {
  const found = String(db.pragma('integrity_check(1)', { simple: true }));
  return found === 'ok' ? null : found;
}

export const isEmpty = (path: string): boolean => existsSync(path) && sizeOf(path) === 0;

/** If SQLite opened an empty file, it would delete the write-ahead log beside it, which may hold the last changes. */
export const emptied = (path: string): Refused =>
  misconfigured(
    `${path} is empty. The log next to it was not changed. Restore a backup: wirewatch restore BACKUP --replace`,
  );

/** Removes the files beside a database: SQLite would join them to whatever takes its place. */
export function removeBeside(path: string): void {
  removeWal(path);
  for (const end of ['-journal', '-checkpoint']) rmSync(`${path}${end}`, { force: true });
}

/** Removes the write-ahead log and its index, but not what says which one the database needs (checkpoint.ts). */
export function removeWal(path: string): void {
  for (const end of ['-wal', '-shm']) rmSync(`${path}${end}`, { force: true });
}

export function removeDatabase(path: string): void {
  removeBeside(path);
  rmSync(path, { force: true });
}

export const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
