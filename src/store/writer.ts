/** How a database is opened for writing: made where it is missing, refused where it is not ours or has other tables. */
import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { Refused } from '../refused.ts';
import { ACCESS_SCHEMA } from './access-schema.ts';
import { type Database, emptied, isEmpty, open, prepared, removeDatabase, sizeOf } from './database.ts';
import { DETECTIONS_SCHEMA } from './detections-schema.ts';
import { appearAs, type DataFolder, isThere, syncFile } from './folder.ts';
import { makeSchema, requireSchema, type Schema, UnknownSchema } from './schema.ts';

/** How long a writer waits for another process's write. */
const BUSY_MS = 5_000;

/** Large pages: rows are about a kilobyte, and a page of the stream should touch few of them. */
const PAGE_BYTES = 16_384;
const CACHE_KIB = 64 * 1024;

/** After a checkpoint the log is cut to this size. */
const WAL_BYTES_MAX = 64 * 1024 * 1024;

/**
 * Opens a database for writing, and creates it where there is none.
 *
 * @throws UnknownSchema where its tables are other ones; Refused `configuration` where it is not ours; nothing is touched
 */
export function openWriter(path: string, schema: Schema): Database {
  refuseForeign(path, schema);
  if (!isThere(path) && !isThere(`${path}-wal`)) create(path, schema);
  return openFile(path);
}

/**
 * Looks whether a database can be opened by this program, without touching it: even to open it for writing can
 * move what stands in its log.
 *
 * @throws as {@link openWriter}
 */
export function refuseForeign(path: string, schema: Schema): void {
  if (isEmpty(path) && sizeOf(`${path}-wal`) > 0) throw emptied(path);
  if (sizeOf(path) === 0) {
    // SQLite would make one of no tables of it.
    rmSync(path, { force: true });
    return;
  }
  const db = open(path, { timeout: BUSY_MS, readonly: true });
  try {
    requireSchema(db, path, schema);
  } finally {
    db.close();
  }
}

/**
 * Whether what is in a data folder is this program's: looked at before anything in it is changed.
 *
 * @throws Refused `configuration` when a database is none of ours
 */
export function refuseNewer({ access, detections }: DataFolder): void {
  const databases = [
    { path: access, schema: ACCESS_SCHEMA },
    { path: detections, schema: DETECTIONS_SCHEMA },
  ];
  for (const { path, schema } of databases) {
    if (isEmpty(path)) continue;
    try {
      refuseForeign(path, schema);
    } catch (error) {
      // One with other tables is made anew from its log; what cannot be read is told by those who open it.
      if (error instanceof Refused && !(error instanceof UnknownSchema)) throw error;
    }
  }
}

/**
 * A copy in memory, to try something on; the caller closes it.
 *
 * @param db null: of a database that is new
 */
export function openRehearsal(db: Database | null, schema: Schema): Database {
  const content = db?.serialize() ?? null;
  // Marked as one without a write-ahead log, which memory cannot have: https://sqlite.org/c3ref/deserialize.html
  content?.fill(1, 18, 20);
  const copy = open(content ?? ':memory:', {});
  copy.pragma('foreign_keys = ON');
  if (content === null) makeSchema(copy, schema);
  return copy;
}

/**
 * A database appears under its name only when it is whole: several processes may begin one at the same moment, and
 * none sees the half of another, nor does the next start after a crash.
 */
function create(path: string, schema: Schema): void {
  const draft = `${path}.new-${randomUUID()}`;
  try {
    const db = openFile(draft);
    try {
      makeSchema(db, schema);
    } finally {
      db.close();
    }
    syncFile(draft);
    appearAs(path, draft);
  } finally {
    removeDatabase(draft);
  }
}

/** `synchronous=FULL`: without it a commit that was acknowledged can be lost with the power. */
function openFile(path: string): Database {
  const db = open(path, { timeout: BUSY_MS });
  return prepared(db, () => {
    db.pragma(`page_size = ${PAGE_BYTES}`);
    if (db.pragma('journal_mode = WAL', { simple: true }) !== 'wal') {
      throw new Refused(
        'configuration',
        `${path}: the file system does not support the write-ahead log of SQLite. Put the data folder on a local disk.`,
      );
    }
    db.pragma('synchronous = FULL');
    db.pragma('foreign_keys = ON');
    db.pragma(`cache_size = -${CACHE_KIB}`);
    db.pragma(`journal_size_limit = ${WAL_BYTES_MAX}`);
  });
}
