/**
 * `access.db-spare`: a copy of `access.db`, made after each change, that takes its place when it is damaged or missing.
 * A counter in both tells which one is later. One that cannot be brought up to date is deleted, so that it never revives
 * a key that was revoked since; the next change or start makes a new one.
 */
import { rmSync } from 'node:fs';
import { Refused, reasonOf } from '../refused.ts';
import { ACCESS_SCHEMA } from '../store/access-schema.ts';
import { type Database, integrityError, openDatabase, sizeOf } from '../store/database.ts';
import { type DataFolder, writeWhole } from '../store/folder.ts';
import { requireSchema } from '../store/schema.ts';

const SELECT_STATE = `
  SELECT installation.uid AS installation, change.number AS change FROM installation, change`;

/** What tells two copies of `access.db` apart. */
export interface AccessState {
  /** Random, made with the installation. */
  readonly installation: string;
  /** How many transactions have changed it. */
  readonly change: number;
}

export type FoundCopy =
  | { readonly kind: 'sound'; readonly state: AccessState }
  | { readonly kind: 'missing' }
  /** `reason` follows the name of the file. */
  | { readonly kind: 'damaged'; readonly reason: string };

/** @param db access.db, or a copy of it; null: it is not complete */
export function readAccessState(db: Database): AccessState | null {
  return db.prepare<[], AccessState>(SELECT_STATE).get() ?? null;
}

/** Checks a copy of `access.db`, or the file itself, to its last page. @throws UnknownSchema */
export function findCopy(path: string): FoundCopy {
  if (sizeOf(path) === 0) return { kind: 'missing' };
  try {
    using db = openDatabase(path, 'inspect');
    requireSchema(db, path, ACCESS_SCHEMA);
    const damage = integrityError(db);
    const state = damage === null ? readAccessState(db) : null;
    if (state === null) return { kind: 'damaged', reason: damage ?? 'it is not complete' };
    return { kind: 'sound', state };
  } catch (error) {
    if (error instanceof Refused) throw error;
    return { kind: 'damaged', reason: reasonOf(error) };
  }
}

/** The content of a database as a file that needs no write-ahead log. */
export function contentOf(db: Database): Buffer {
  const content = db.serialize();
  // https://sqlite.org/fileformat2.html#file_format_version_numbers
  content.fill(1, 18, 20);
  return content;
}

/**
 * Brings the spare copy up to date; durable when it returns.
 *
 * @param db a writer without an open transaction: its lock keeps a slower writer from putting an older copy in place
 * @throws the file system's error, with the older copy deleted
 */
export function refreshSpare(db: Database, folder: DataFolder): void {
  db.exec('BEGIN IMMEDIATE');
  try {
    writeWhole(folder.spare, contentOf(db));
  } catch (error) {
    rmSync(folder.spare, { force: true });
    throw error;
  } finally {
    db.exec('ROLLBACK');
  }
}
