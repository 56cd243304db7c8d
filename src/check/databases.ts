/** The contents of the data folder: both databases, page by page, the logs and the secret. */

import { existsSync, readFileSync, type Stats } from 'node:fs';
import { basename } from 'node:path';
import { counted } from '../counted.ts';
import { listSegments } from '../history/segment.ts';
import { reasonOf } from '../refused.ts';
import { type Database, openDatabase, sizeOf } from '../store/database.ts';
import { isForbidden } from '../store/database-errors.ts';
import type { DataFolder } from '../store/folder.ts';
import { type Schema, schemaVersion } from '../store/schema.ts';
import { SECRET_BYTES } from '../store/secret.ts';
import { bad, type Outcome, ok, warn } from './finding.ts';
import { statOf } from './folders.ts';

const RESTART = 'Restart Wirewatch: it rebuilds a damaged database from its log.';
/** A file that cannot be read because of its owner is not lost; a restored backup would lose the latest changes. */
const CHOWN =
  'Give the file and its folder to the user that Wirewatch runs as (chown -R), and run this command as that user.';
const PROBLEMS_MAX = 3;

const SELECT_TABLES = `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`;

export interface CheckedDatabase {
  readonly outcome: Outcome;
  /** Null if nothing can be read from it. */
  readonly db: Database | null;
}

/** @param onTable called with the table that is being checked; the caller closes the database */
export function checkDatabase(
  path: string,
  schema: Schema,
  onTable: (name: string) => void,
): CheckedDatabase {
  if (!existsSync(path)) return { outcome: ok('does not exist yet: the first start creates it'), db: null };
  let db: Database | null = null;
  try {
    db = openDatabase(path, 'inspect');
    const outcome = checkSchema(db, schema) ?? checkPages(db, (name) => onTable(`${basename(path)} ${name}`));
    if (outcome.status !== 'bad') return { outcome, db };
    db.close();
    return { outcome, db: null };
  } catch (error) {
    db?.close();
    return {
      outcome: bad(`${path}: ${reasonOf(error, path)}`, isForbidden(error) ? CHOWN : RESTART),
      db: null,
    };
  }
}

/** Null if this program can use the database as it is. */
function checkSchema(db: Database, schema: Schema): Outcome | null {
  if (Number(db.pragma('application_id', { simple: true })) !== schema.application_id)
    return bad('not a database of Wirewatch', 'Name the right data folder with --data.');
  return Number(db.pragma('user_version', { simple: true })) === schemaVersion(schema)
    ? null
    : warn('from another version of Wirewatch', 'The next start rebuilds it from the log.');
}

/** Table by table: a long snapshot would let the write-ahead log of a running appliance grow. */
function checkPages(db: Database, onTable: (name: string) => void): Outcome {
  const tables = db.prepare<[], { name: string }>(SELECT_TABLES).all();
  for (const { name } of tables) {
    onTable(name);
    const said = db.prepare<[], string>(`PRAGMA quick_check('${name}')`).pluck().all();
    if (said.length === 1 && said[0] === 'ok') continue;
    return bad(`${name} is damaged: ${said.slice(0, PROBLEMS_MAX).join('; ')}`, RESTART);
  }
  return ok(`intact, ${counted(tables.length, 'table')}`);
}

/** @param isNeeded whether a database has applied entries of the log */
export function checkLog(folder: string, isNeeded: boolean): Outcome {
  try {
    const segments = listSegments(folder);
    if (segments.length > 0) {
      const bytes = segments.reduce((sum, { path }) => sum + sizeOf(path), 0);
      return ok(`${counted(segments.length, 'segment')}, ${counted(bytes, 'byte')}`);
    }
    return isNeeded
      ? bad('missing, although its database exists', 'Restore a backup: wirewatch restore BACKUP --replace')
      : ok('does not exist yet: the first change creates it');
  } catch (error) {
    return bad(reasonOf(error), CHOWN);
  }
}

export function checkSecret({ secret }: DataFolder, isNeeded: boolean): Outcome {
  const found = statOf(secret);
  const todo = 'Restore it from a backup: without it, Wirewatch refuses all cursors that clients have.';
  if (found === null) {
    return isNeeded
      ? bad('missing, although the databases are in use', todo)
      : ok('does not exist yet: the first start creates it');
  }
  if (typeof found === 'string') return bad(found, CHOWN);
  try {
    const { length } = readFileSync(secret);
    if (length !== SECRET_BYTES) return bad(`has ${counted(length, 'byte')}, expected ${SECRET_BYTES}`, todo);
  } catch (error) {
    return bad(reasonOf(error), isForbidden(error) ? CHOWN : todo);
  }
  return checkSecretMode(secret, found);
}

function checkSecretMode(path: string, { mode }: Stats): Outcome {
  return (mode & 0o077) === 0
    ? ok('present, and private to its user')
    : warn('other users can read it, and so forge cursors and photo addresses', `chmod 0600 ${path}`);
}
