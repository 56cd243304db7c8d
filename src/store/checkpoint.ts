/**
 * Checkpoints `detections.db`: copies its write-ahead log (`-wal`) into the file, so that SQLite never joins a `-wal` to
 * another file. It joins a left-over one to whatever has the database's name, such as an older copy.
 *
 * A start does without the `-wal`: a file without it is only older, and the log has the rest. But within a checkpoint, and
 * after one that a reader kept from its end, the file has pages of two states and needs its `-wal`. Then a marker names
 * both: the `-wal` by its salts, the file by a token in it, of which each checkpoint makes a new one.
 *
 * ```text
 *   1 a new token is committed and synced                  no marker: the -wal is dropped
 *   2 the marker is written: salts, old and new token      the -wal is kept, if marker, -wal and file belong together;
 *   3 the pages are copied into the file, and synced       otherwise the file is of no use: it is made again
 *   4 the marker is removed                                no marker: the -wal is dropped
 *   5 the -wal is emptied                                  nothing to drop
 * ```
 */
import { randomUUID } from 'node:crypto';
import { existsSync, linkSync, readFileSync, readSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { type Database, openDatabase, removeDatabase, removeWal, sizeOf } from './database.ts';
import { DETECTIONS_SCHEMA } from './detections-schema.ts';
import { freeBytes, openFile, ROOM_LEFT_BYTES, syncFolder, writeWhole } from './folder.ts';
import { type LogMark, readLogMark } from './log-mark.ts';

/** A write-ahead log of this size is copied between two transactions. */
export const CHECKPOINT_BYTES = 32 * 1024 * 1024;
const WAIT_MS = 250;
/** After a rewrite, which takes seconds anyway: a busy machine may give a request no turn for longer. */
const WAIT_REWRITTEN_MS = 3000;
/** https://sqlite.org/fileformat.html#the_write_ahead_log */
const SALTS_AT = 16;
const SALTS_BYTES = 8;

/** The token of a file whose marker could not be written: its write-ahead log has another one already. */
const unmarked = new WeakMap<Database, string>();

const markerPath = (path: string) => `${path}-checkpoint`;
const walPath = (path: string) => `${path}-wal`;

/**
 * Opens `detections.db` for writing; the file is created if it is missing. Only {@link checkpoint} copies its write-ahead
 * log, so {@link closeDetections} must close it, or {@link abandon}.
 * @throws as openDatabase
 */
export function openDetections(path: string): Database {
  const db = openDatabase(path, 'write', DETECTIONS_SCHEMA);
  db.pragma('wal_autocheckpoint = 0');
  // Nobody else writes, so only a checkpoint waits.
  db.pragma(`busy_timeout = ${WAIT_MS}`);
  return db;
}

/**
 * Copies the write-ahead log into the database file and empties it. Waits only briefly for a long reader, such as a
 * command: the next checkpoint copies the rest. Not within a transaction.
 * @throws SQLite's error, or that of the disk
 */
export function checkpoint(db: Database): void {
  if (walBytes(db) === 0) return;
  mark(db);
  if (!copyPages(db, 'FULL')) return;
  removeMarker(db.name);
  copyPages(db, 'TRUNCATE');
}

/**
 * Writes the file anew. SQLite overwrites what it frees (`secure_delete`), but not what the split of a page leaves in its
 * unused part: copies of rows that moved, which may be deleted since. Nobody else writes meanwhile: some seconds for each
 * gigabyte. Not within a transaction.
 * @returns why the file still has what it had: too little room, or a reader of that; null: it has not
 * @throws SQLite's error, or that of the disk
 */
export function rewrite(db: Database): string | null {
  checkpoint(db);
  const pragma = (name: string) => Number(db.pragma(name, { simple: true }));
  const bytes = (pragma('page_count') - pragma('freelist_count')) * pragma('page_size');
  // Once in a temporary file, once in the write-ahead log. If that filled the disk, ingest would stand still.
  if (freeBytes(dirname(db.name)) < 2 * bytes + ROOM_LEFT_BYTES)
    return 'the disk has too little free space to write detections.db anew: it needs twice its size, and 512 MiB more';
  {
    // On a connection of its own: what the writing one holds for a while is in memory (log/effects.ts). Its cache has 8 MiB,
    // since it passes each page once.
    using other = openDetections(db.name);
    other.pragma('cache_size = -8192');
    other.exec('VACUUM');
  }
  db.pragma(`busy_timeout = ${WAIT_REWRITTEN_MS}`);
  checkpoint(db);
  db.pragma(`busy_timeout = ${WAIT_MS}`);
  return walBytes(db) === 0
    ? null
    : 'a long read of detections.db, such as wirewatch verify, keeps the old content in its file until it ends';
}

/** Closes the writing connection after a checkpoint: no file is left beside the database. @throws as {@link checkpoint} */
export function closeDetections(db: Database): void {
  try {
    checkpoint(db);
  } catch (error) {
    abandon(db);
    throw error;
  }
  db.close();
  // A reader kept the checkpoint from its end, and has gone since: SQLite ended it.
  if (!existsSync(walPath(db.name))) removeMarker(db.name);
}

/** Closes the writing connection without a checkpoint: SQLite runs one, without a marker, unless another is open. */
export function abandon(db: Database): void {
  try {
    using other = openDatabase(db.name, 'read');
    tokenOf(other);
    db.close();
  } catch {
    // It is damaged, and will be rebuilt.
    db.close();
  }
}

/**
 * Drops a write-ahead log that the file does not need; before anything opens the database. What only that log had is in
 * the log of the service.
 * @returns whether the file can be used: false if it has pages of two states, and its write-ahead log is not there
 */
export function settleWal(path: string): boolean {
  if (existsSync(markerPath(path))) {
    const [salts, ...tokens] = readMarker(path);
    return salts === saltsOf(path) && tokens.includes(ownToken(path));
  }
  // An empty one may be that of an open reader.
  if (sizeOf(walPath(path)) > 0) removeWal(path);
  return true;
}

export const walBytes = ({ name }: Database): number => sizeOf(walPath(name));

/** Writes the marker, unless that of an incomplete checkpoint is there. */
function mark(db: Database): void {
  const path = db.name;
  if (readMarker(path)[0] === saltsOf(path)) return;
  const before = unmarked.get(db) ?? tokenOf(db);
  unmarked.set(db, before);
  const after = randomUUID();
  // Synced, so that a power cut cannot leave the marker without the write-ahead log that it names.
  db.pragma('synchronous = FULL');
  try {
    db.prepare('UPDATE file_state SET token = ?').run(after);
  } finally {
    db.pragma(`synchronous = ${DETECTIONS_SCHEMA.synchronous}`);
  }
  writeWhole(markerPath(path), `${saltsOf(path)} ${before} ${after}\n`);
  unmarked.delete(db);
}

function removeMarker(path: string): void {
  rmSync(markerPath(path), { force: true });
  syncFolder(dirname(path));
}

/** @returns the salts and both tokens, if the marker is sound; nothing if there is none */
const readMarker = (path: string): string[] =>
  existsSync(markerPath(path)) ? readFileSync(markerPath(path), 'utf8').trim().split(' ') : [];

/** @returns null if there is no write-ahead log; SQLite gives each new one other salts */
function saltsOf(path: string): string | null {
  if (sizeOf(walPath(path)) < SALTS_AT + SALTS_BYTES) return null;
  using file = openFile(walPath(path), 'r');
  const salts = Buffer.alloc(SALTS_BYTES);
  readSync(file.fd, salts, 0, SALTS_BYTES, SALTS_AT);
  return salts.toString('hex');
}

const tokenOf = (db: Database): string =>
  db.prepare<[], { token: string }>('SELECT token FROM file_state').get()?.token ?? '';

/** The log mark of a database without its `-wal`; null: none; undefined: {@link settleWal} drops no `-wal`, or unreadable. */
export const markWithoutWal = (path: string): LogMark | null | undefined =>
  existsSync(markerPath(path)) || sizeOf(walPath(path)) === 0 ? undefined : inFileAlone(path, readLogMark);

/** The token in a database file without its write-ahead log. `unreadable` if it cannot be read. */
const ownToken = (path: string) => inFileAlone(path, tokenOf) ?? 'unreadable';

/** Reads a database file under another name, without its write-ahead log. @returns undefined if it cannot be read */
function inFileAlone<Result>(path: string, read: (db: Database) => Result): Result | undefined {
  const peek = `${path}-peek`;
  try {
    removeDatabase(peek);
    linkSync(path, peek);
    using db = openDatabase(peek, 'plain, read-only');
    // A checkpoint writes the first page first: then the file is shorter than it says, which SQLite otherwise refuses.
    db.unsafeMode(true).pragma('writable_schema = ON');
    return read(db);
  } catch {
    return undefined;
  } finally {
    removeDatabase(peek);
  }
}

/** https://sqlite.org/pragma.html#pragma_wal_checkpoint @returns whether the database file now has everything */
function copyPages(db: Database, how: 'FULL' | 'TRUNCATE'): boolean {
  type Frames = { log: number; checkpointed: number };
  const [frames] = db.prepare<[], Frames>(`PRAGMA wal_checkpoint(${how})`).all();
  // Both are -1 while another connection copies.
  return frames !== undefined && frames.log >= 0 && frames.log === frames.checkpointed;
}
