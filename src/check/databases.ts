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
import { bad, type Finding, ok, warn } from './finding.ts';
import { statOf } from './folders.ts';

const RESTART = 'Restart Wirewatch: it rebuilds a damaged database from its log.';
/** A file that cannot be read because of its owner is not lost; a restored backup would lose the latest changes. */
const CHOWN =
  'Give the file and its folder to the user that Wirewatch runs as (chown -R), and run this command as that user.';
const PROBLEMS_MAX = 3;

const SELECT_TABLES = `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`;

export interface CheckedDatabase {
  readonly finding: Finding;
  /** Null if nothing can be read from it. */
  readonly db: Database | null;
}

/** @param onTable called with the table that is being checked; the caller closes the database */
export function checkDatabase(
  path: string,
  schema: Schema,
  onTable: (name: string) => void,
): CheckedDatabase {
  const check = basename(path);
  if (!existsSync(path))
    return { finding: ok(check, 'does not exist yet: the first start creates it'), db: null };
  let db: Database | null = null;
  try {
    db = openDatabase(path, 'inspect');
    const foreign = checkSchema(check, db, schema);
    const finding = foreign ?? checkPages(check, db, onTable);
    if (finding.status !== 'bad') return { finding, db };
    db.close();
    return { finding, db: null };
  } catch (error) {
    db?.close();
    return {
      finding: bad(check, `${path}: ${reasonOf(error, path)}`, isForbidden(error) ? CHOWN : RESTART),
      db: null,
    };
  }
}

/** Null if this program can use the database as it is. */
function checkSchema(check: string, db: Database, schema: Schema): Finding | null {
  if (Number(db.pragma('application_id', { simple: true })) !== schema.application_id)
    return bad(check, 'not a database of Wirewatch', 'Name the right data folder with --data.');
  return Number(db.pragma('user_version', { simple: true })) === schemaVersion(schema)
    ? null
    : warn(check, 'from another version of Wirewatch', 'The next start rebuilds it from the log.');
}

/** Table by table: a long snapshot would let the write-ahead log of a running appliance grow. */
function checkPages(check: string, db: Database, onTable: (name: string) => void): Finding {
  const tables = db.prepare<[], { name: string }>(SELECT_TABLES).all();
  for (const { name } of tables) {
    onTable(`${check} ${name}`);
    const said = db.prepare<[], string>(`PRAGMA quick_check('${name}')`).pluck().all();
    if (said.length === 1 && said[0] === 'ok') continue;
    return bad(check, `${name} is damaged: ${said.slice(0, PROBLEMS_MAX).join('; ')}`, RESTART);
  }
  return ok(check, `intact, ${counted(tables.length, 'table')}`);
}

/** @param isNeeded whether a database has applied entries of the log */
export function checkLog(folder: string, isNeeded: boolean): Finding {
  const check = basename(folder);
  try {
    const segments = listSegments(folder);
    if (segments.length > 0) {
      const bytes = segments.reduce((sum, { path }) => sum + sizeOf(path), 0);
      return ok(check, `${counted(segments.length, 'segment')}, ${counted(bytes, 'byte')}`);
    }
    return isNeeded
      ? bad(
          check,
          'missing, although its database exists',
          'Restore a backup: wirewatch restore BACKUP --replace',
        )
      : ok(check, 'does not exist yet: the first change creates it');
  } catch (error) {
    return bad(check, reasonOf(error), CHOWN);
  }
}

export function checkSecret({ secret }: DataFolder, isNeeded: boolean): Finding {
  const check = 'secret';
  const found = statOf(secret);
  const todo = 'Restore it from a backup: without it, Wirewatch refuses all cursors that clients have.';
  if (found === null) {
    return isNeeded
      ? bad(check, 'missing, although the databases are in use', todo)
      : ok(check, 'does not exist yet: the first start creates it');
  }
  if (typeof found === 'string') return bad(check, found, CHOWN);
  try {
    const { length } = readFileSync(secret);
    if (length !== SECRET_BYTES)
      return bad(check, `has ${counted(length, 'byte')}, expected ${SECRET_BYTES}`, todo);
  } catch (error) {
    return bad(check, reasonOf(error), isForbidden(error) ? CHOWN : todo);
  }
  return checkSecretMode(check, secret, found);
}

function checkSecretMode(check: string, path: string, { mode }: Stats): Finding {
  return (mode & 0o077) === 0
    ? ok(check, 'present, and private to its user')
    : warn(check, 'other users can read it, and so forge cursors and photo addresses', `chmod 0600 ${path}`);
}
