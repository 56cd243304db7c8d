/** The contents of a usable data folder: whether both databases open, and whether their logs and the secret are there. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { counted } from '../counted.ts';
import { listSegments } from '../history/segment.ts';
import { Refused, reasonOf } from '../refused.ts';
import { type Database, openDatabase } from '../store/database.ts';
import type { DataFolder } from '../store/folder.ts';
import { readLogMark } from '../store/log-mark.ts';
import { requireSchema, type Schema, UnknownSchema } from '../store/schema.ts';
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
    return { outcome: unusable(path, error), db: null };
  }
}

function unusable(path: string, error: unknown): Outcome {
  if (error instanceof UnknownSchema)
    return warn('from another version of Wirewatch', 'The next start rebuilds it from the log.');
  return error instanceof Refused
    ? bad(error.message, 'Name the right data folder with --data, or restore a backup.')
    : bad(
        `${path}: ${reasonOf(error, path)}`,
        'Restart Wirewatch: it rebuilds a damaged database from its log. To find all damage, run: wirewatch verify',
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
