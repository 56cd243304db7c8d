/** What lies in the data folder: both databases, page by page, and the logs and the secret beside them. */
import { existsSync, readFileSync, type Stats } from 'node:fs';
import { basename } from 'node:path';
import { listSegments } from '../history/segment.ts';
import { reasonOf } from '../refused.ts';
import { ACCESS_SCHEMA } from '../store/access-schema.ts';
import { type Database, openInspector, sizeOf } from '../store/database.ts';
import { isForbidden } from '../store/database-errors.ts';
import { DETECTIONS_SCHEMA } from '../store/detections-schema.ts';
import type { DataFolder } from '../store/folder.ts';
import { type Schema, schemaVersion } from '../store/schema.ts';
import { SECRET_BYTES } from '../store/secret.ts';
import { bad, type Finding, ok, warn } from './finding.ts';
import { statOf } from './folders.ts';

const PUT_BACK = 'Restart the appliance: it makes a damaged database anew from the log.';
/** What a wrong owner keeps from being read is not lost: a backup in its place would lose what came since. */
const GIVE =
  'Give it, with the folder that it is in, to the user of the appliance (chown -R), and run this as that user.';
const PROBLEMS_MAX = 3;

const SELECT_TABLES = `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`;

export interface LookedThrough {
  readonly finding: Finding;
  /** Null where nothing can be read from it. */
  readonly db: Database | null;
}

/** @param onTable told which table is being looked through; the caller closes the database */
export function checkAccessDatabase({ access }: DataFolder, onTable: (name: string) => void): LookedThrough {
  return lookThrough(access, ACCESS_SCHEMA, onTable);
}

export function checkDetectionsDatabase(
  { detections }: DataFolder,
  onTable: (name: string) => void,
): LookedThrough {
  return lookThrough(detections, DETECTIONS_SCHEMA, onTable);
}

function lookThrough(path: string, schema: Schema, onTable: (name: string) => void): LookedThrough {
  const check = basename(path);
  if (!existsSync(path)) return { finding: ok(check, 'not there yet: the first start makes it'), db: null };
  let db: Database | null = null;
  try {
    db = openInspector(path);
    const foreign = judgeSchema(check, db, schema);
    const finding = foreign ?? judgePages(check, db, onTable);
    if (finding.status !== 'bad') return { finding, db };
    db.close();
    return { finding, db: null };
  } catch (error) {
    db?.close();
    return {
      finding: bad(check, `${path}: ${reasonOf(error, path)}`, isForbidden(error) ? GIVE : PUT_BACK),
      db: null,
    };
  }
}

/** Null where this program can use it as it is. */
function judgeSchema(check: string, db: Database, schema: Schema): Finding | null {
  if (Number(db.pragma('application_id', { simple: true })) !== schema.application_id)
    return bad(check, 'it is not a database of this program', 'Name the right data folder with --data.');
  return Number(db.pragma('user_version', { simple: true })) === schemaVersion(schema)
    ? null
    : warn(check, 'it is of another version of this program', 'The next start makes it anew from the log.');
}

/** Table by table: a snapshot that is held for long would let the log of a running appliance grow. */
function judgePages(check: string, db: Database, onTable: (name: string) => void): Finding {
  const tables = db.prepare<[], { name: string }>(SELECT_TABLES).all();
  for (const { name } of tables) {
    onTable(`${check} ${name}`);
    const said = db.prepare<[], string>(`PRAGMA quick_check('${name}')`).pluck().all();
    if (said.length === 1 && said[0] === 'ok') continue;
    return bad(check, `${name} is damaged: ${said.slice(0, PROBLEMS_MAX).join('; ')}`, PUT_BACK);
  }
  return ok(check, `sound, ${tables.length} tables`);
}

/** @param isNeeded whether a database has applied something of it */
export function checkLog(folder: string, isNeeded: boolean): Finding {
  const check = basename(folder);
  try {
    const segments = listSegments(folder);
    if (segments.length > 0) {
      const bytes = segments.reduce((sum, { path }) => sum + sizeOf(path), 0);
      return ok(
        check,
        `${segments.length.toLocaleString('en-US')} segments, ${bytes.toLocaleString('en-US')} bytes`,
      );
    }
    return isNeeded
      ? bad(
          check,
          'it is missing beside a database that is made from it',
          'Restore a backup: wirewatch restore BACKUP --replace',
        )
      : ok(check, 'not there yet: the first change begins it');
  } catch (error) {
    return bad(check, reasonOf(error), GIVE);
  }
}

export function checkSecret({ secret }: DataFolder, isNeeded: boolean): Finding {
  const check = 'secret';
  const found = statOf(secret);
  const putBack = 'Put it back from a backup: without it every cursor that was given out is refused.';
  if (found === null) {
    return isNeeded
      ? bad(check, 'it is missing beside databases that are in use', putBack)
      : ok(check, 'not there yet: the first start makes it');
  }
  if (typeof found === 'string') return bad(check, found, GIVE);
  try {
    const { length } = readFileSync(secret);
    if (length !== SECRET_BYTES) return bad(check, `it has ${length} bytes, not ${SECRET_BYTES}`, putBack);
  } catch (error) {
    return bad(check, reasonOf(error), isForbidden(error) ? GIVE : putBack);
  }
  return judgeSecretMode(check, secret, found);
}

function judgeSecretMode(check: string, path: string, { mode }: Stats): Finding {
  return (mode & 0o077) === 0
    ? ok(check, 'there, for its user alone')
    : warn(
        check,
        'other users may read it, and could then forge cursors and photo addresses',
        `chmod 0600 ${path}`,
      );
}
