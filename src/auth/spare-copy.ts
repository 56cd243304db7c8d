/**
 * `access.db-spare`: a copy of `access.db`, made after each change, that takes its place when it is damaged or missing.
 * A counter in both tells which one is later. One that cannot be brought up to date is deleted, so that it never revives
 * a key that was revoked since. Its last 32 bytes are the SHA-256 of the others.
 */
import { hash } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { Refused, reasonOf } from '../refused.ts';
import { ACCESS_SCHEMA } from '../store/access-schema.ts';
import {
  type Database,
  integrityError,
  openContent,
  openDatabase,
  requireSchema,
  sizeOf,
} from '../store/database.ts';
import { type DataFolder, writeWhole } from '../store/folder.ts';

const SELECT_STATE = 'SELECT uid AS installation, number AS change FROM installation, change';
const SELECT_UNUSED = 'SELECT 1 FROM change WHERE number = 0';

export type AccessState = Readonly<{ installation: string; change: number }>;

export type FoundCopy =
  /** `content`: the whole database as a file that needs no write-ahead log. */
  | { readonly kind: 'sound'; readonly state: AccessState; readonly content: Buffer }
  | { readonly kind: 'missing' }
  | { readonly kind: 'damaged'; readonly reason: string };

const HASH_BYTES = 32;
const FORMAT_VERSIONS = 18;
const CHANGE_COUNTER = 24;
const SCHEMA_COOKIE = 40;
/** And behind it the version of SQLite that wrote it. */
const VERSION_VALID_FOR = 92;

/** Checks `access.db`, or the copy in a backup, to its last page; one without a row is missing. @throws UnknownSchema */
export const findCopy = (path: string) => checked(path, () => openDatabase(path, 'inspect'));

/** Checks the spare copy. @throws UnknownSchema */
export const findSpare = ({ spare }: Pick<DataFolder, 'spare'>) =>
  checked(spare, () => {
    const bytes = readFileSync(spare);
    const content = bytes.subarray(0, -HASH_BYTES);
    if (!hashOf(content).equals(bytes.subarray(-HASH_BYTES))) throw new Error('its checksum is wrong');
    return openContent(content);
  });

export type FoundAccess = FoundCopy & {
  /** Why the spare copy is preferred; undefined: `access.db` itself is, which is sound and as late, or nothing is. */
  readonly spared?: string;
  /** Whether the spare copy has this state. */
  readonly isKept: boolean;
};

/** The later of `access.db` and its spare copy, of those that are sound. @throws UnknownSchema */
export function findAccess(folder: DataFolder): FoundAccess {
  const found = findCopy(folder.access);
  const kept = findSpare(folder);
  if (kept.kind !== 'sound') return { ...found, isKept: false };
  const spared = (reason: string) => ({ ...kept, spared: reason, isKept: true });
  if (found.kind !== 'sound') return spared(found.kind === 'missing' ? 'it is missing' : found.reason);
  if (kept.state.installation !== found.state.installation) return { ...found, isKept: false };
  if (kept.state.change > found.state.change) return spared('it is older than its spare copy');
  if (kept.state.change < found.state.change) return { ...found, isKept: false };
  // A write-ahead log that is not its own can change what it says, and so can a flipped bit.
  if (!kept.content.equals(found.content)) return spared('it differs from its spare copy');
  return { ...found, isKept: true };
}

/** Brings the spare copy up to date, under the lock of a writer. @throws where it cannot; it is deleted then */
export function refreshSpare(db: Database, folder: DataFolder): void {
  db.exec('BEGIN IMMEDIATE');
  try {
    const content = contentOf(db);
    writeWhole(folder.spare, Buffer.concat([content, hashOf(content)]));
  } catch (error) {
    rmSync(folder.spare, { force: true });
    throw error;
  } finally {
    db.exec('ROLLBACK');
  }
}

function checked(path: string, open: () => Database): FoundCopy {
  if (sizeOf(path) === 0) return { kind: 'missing' };
  try {
    using db = open();
    requireSchema(db, path, ACCESS_SCHEMA);
    const damage = integrityError(db);
    if (damage !== null) return { kind: 'damaged', reason: damage };
    const state = readAccessState(db);
    if (state !== null) return { kind: 'sound', state, content: contentOf(db) };
    // A crash came between the creation of the tables and the first transaction.
    if (db.prepare(SELECT_UNUSED).get() !== undefined) return { kind: 'missing' };
    return { kind: 'damaged', reason: 'it is not complete' };
  } catch (error) {
    if (error instanceof Refused) throw error;
    return { kind: 'damaged', reason: reasonOf(error) };
  }
}

/** @param db access.db, or a copy of it; null: it is not complete */
export const readAccessState = (db: Database) => db.prepare<[], AccessState>(SELECT_STATE).get() ?? null;

/** Two copies with the same rows, of which the one was made from the other, have the same content. */
export function contentOf(db: Database): Buffer {
  const content = db.serialize();
  // What opening a database changes: https://sqlite.org/fileformat2.html#the_database_header
  content.fill(1, FORMAT_VERSIONS, FORMAT_VERSIONS + 2);
  content.fill(0, CHANGE_COUNTER, CHANGE_COUNTER + 4);
  content.fill(0, SCHEMA_COOKIE, SCHEMA_COOKIE + 4);
  content.fill(0, VERSION_VALID_FOR, VERSION_VALID_FOR + 8);
  return content;
}

const hashOf = (content: Buffer) => hash('sha256', content, 'buffer');
