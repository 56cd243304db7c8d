/** The contents of a usable data folder: whether both databases open, and whether the log and the secret are there. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { findSpare } from '../auth/spare-copy.ts';
import { counted } from '../counted.ts';
import { listSegments } from '../history/segment.ts';
import { Refused, reasonOf } from '../refused.ts';
import { ACCESS_SCHEMA } from '../store/access-schema.ts';
import { type Database, openDatabase, requireSchema } from '../store/database.ts';
import type { DataFolder } from '../store/folder.ts';
import { readLogMark } from '../store/log-mark.ts';
import { type Schema, UnknownSchema } from '../store/schema.ts';
import { SECRET_BYTES } from '../store/secret.ts';
import { bad, type Outcome, ok, warn } from './finding.ts';

const FIRST_START = 'does not exist yet: the first start creates it';

export interface CheckedDatabase {
  readonly outcome: Outcome;
  /** Null if it cannot be used. */
  readonly db: Database | null;
}

/** The caller closes the database. */
export function checkDatabase(path: string, schema: Schema): CheckedDatabase {
  if (!existsSync(path)) return { outcome: ok(FIRST_START), db: null };
  let db: Database | null = null;
  try {
    db = openDatabase(path, 'inspect');
    requireSchema(db, path, schema);
    return { outcome: ok('can be opened'), db };
  } catch (error) {
    db?.close();
    return { outcome: unusable(path, error, schema), db: null };
  }
}

/** The caller closes the database. */
export function checkAccess(folder: DataFolder): CheckedDatabase {
  if (existsSync(folder.access) || !existsSync(folder.detections))
    return checkDatabase(folder.access, ACCESS_SCHEMA);
  const outcome =
    findSpare(folder).kind === 'sound'
      ? warn('missing, but its spare copy is sound', 'Restart Wirewatch: it puts the spare copy in place.')
      : bad(
          'missing, although detections.db exists, and so is its spare copy',
          'Restore a backup: wirewatch restore BACKUP --replace',
        );
  return { outcome, db: null };
}

function unusable(path: string, error: unknown, schema: Schema): Outcome {
  if (error instanceof UnknownSchema) {
    const what = 'from another version of Wirewatch';
    return schema === ACCESS_SCHEMA
      ? bad(what, 'Use that version, or restore a backup of this one.')
      : warn(what, 'The next start rebuilds it from the log.');
  }
  return error instanceof Refused
    ? bad(error.message, 'Name the right data folder with --data, or restore a backup.')
    : bad(
        `${path}: ${reasonOf(error, path)}`,
        `Restart Wirewatch: ${schema === ACCESS_SCHEMA ? 'the spare copy of access.db takes its place' : 'it rebuilds a damaged database from its log'}. To find all damage, run: wirewatch verify`,
      );
}

/** @param db of the log; null if nothing can be read from it */
export function checkLog(folder: string, db: Database | null): Outcome {
  const segments = listSegments(folder);
  if (segments.length > 0) return ok(counted(segments.length, 'segment'));
  return db !== null && readLogMark(db) !== null
    ? bad('missing, although its database exists', 'Restore a backup: wirewatch restore BACKUP --replace')
    : ok('does not exist yet: the first change creates it');
}

export function checkSecret({ secret }: DataFolder, isNeeded: boolean): Outcome {
  const todo = 'Restore it from a backup: without it, Wirewatch refuses all cursors that clients have.';
  if (!existsSync(secret))
    return isNeeded ? bad('missing, although the databases are in use', todo) : ok(FIRST_START);
  const { length } = readFileSync(secret);
  if (length !== SECRET_BYTES) return bad(`has ${counted(length, 'byte')}, expected ${SECRET_BYTES}`, todo);
  return (statSync(secret).mode & 0o077) === 0
    ? ok('present, and private to its user')
    : warn('other users can read it, and so forge cursors and photo addresses', `chmod 0600 ${secret}`);
}
