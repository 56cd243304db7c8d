/** What lies in the data folder: both databases, page by page, and the journal and the secret beside them. */
import { closeSync, existsSync, fstatSync, openSync, readFileSync, readSync, type Stats } from 'node:fs';
import { basename } from 'node:path';
import { reasonOf } from '../refused.ts';
import { ACCESS_MIGRATIONS } from '../store/access-schema.ts';
import { type Database, openInspector } from '../store/database.ts';
import { isForbidden } from '../store/database-errors.ts';
import { DETECTIONS_MIGRATIONS } from '../store/detections-schema.ts';
import type { DataFolder } from '../store/folder.ts';
import type { Migrations } from '../store/migrate.ts';
import { SECRET_BYTES } from '../store/secret.ts';
import { bad, type Finding, ok, warn } from './finding.ts';
import { statOf } from './folders.ts';

const PUT_BACK = 'Stop the appliance and put the file back from a backup. Keep the journal that is there.';
/** What a wrong owner keeps from being read is not lost: a backup in its place would lose what came since. */
const GIVE =
  'Give it, with the folder that it is in, to the user of the appliance (chown -R), and run this as that user.';
const PROBLEMS_MAX = 3;

const SELECT_TABLES = `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`;

const SELECT_ANY_DELIVERY = 'SELECT 1 FROM delivery LIMIT 1';

export interface LookedThrough {
  readonly finding: Finding;
  /** Null where nothing can be read from it. */
  readonly db: Database | null;
}

/** @param onTable told which table is being looked through; the caller closes the database */
export function checkAccessDatabase({ access }: DataFolder, onTable: (name: string) => void): LookedThrough {
  return lookThrough(access, ACCESS_MIGRATIONS, onTable);
}

export function checkDetectionsDatabase(
  { detections }: DataFolder,
  onTable: (name: string) => void,
): LookedThrough {
  return lookThrough(detections, DETECTIONS_MIGRATIONS, onTable);
}

function lookThrough(path: string, migrations: Migrations, onTable: (name: string) => void): LookedThrough {
  const check = basename(path);
  if (!existsSync(path)) return { finding: ok(check, 'not there yet: the first start makes it'), db: null };
  let db: Database | null = null;
  try {
    db = openInspector(path);
    const foreign = judgeSchema(check, db, migrations);
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

/** Null where this program can use it. */
function judgeSchema(check: string, db: Database, { application_id, steps }: Migrations): Finding | null {
  if (Number(db.pragma('application_id', { simple: true })) !== application_id)
    return bad(check, 'it is not a database of this program', 'Name the right data folder with --data.');
  const version = Number(db.pragma('user_version', { simple: true }));
  return version <= steps.length
    ? null
    : bad(
        check,
        `schema ${version}; this program knows ${steps.length}`,
        'Use the newer program that wrote it.',
      );
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

/** @param detections null where it cannot be read; what it has given out, the journal must witness */
export function checkJournal({ journal }: DataFolder, detections: Database | null): Finding {
  const check = 'journal';
  const found = statOf(journal);
  if (found === null) {
    return detections?.prepare(SELECT_ANY_DELIVERY).get() !== undefined
      ? warn(
          check,
          'it is missing beside a database that is in use: what was given out and revoked has no second witness',
          'Put it back where it survived, and never delete it.',
        )
      : ok(check, 'not there yet: the first file that is applied begins it');
  }
  if (typeof found === 'string') return bad(check, found, GIVE);
  const reading = readLastByte(journal);
  if (reading.kind === 'unreadable') return bad(check, reading.reason, GIVE);
  const size = `${found.size.toLocaleString('en-US')} bytes`;
  return reading.byte === 0x0a || found.size === 0
    ? ok(check, size)
    : ok(check, `${size}; its last line was cut off by a crash, which the next one makes up for`);
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

type LastByte =
  | { readonly kind: 'read'; readonly byte: number | undefined }
  | { readonly kind: 'unreadable'; readonly reason: string };

function readLastByte(path: string): LastByte {
  try {
    const file = openSync(path, 'r+');
    try {
      const byte = Buffer.alloc(1);
      const length = readSync(file, byte, 0, 1, Math.max(0, fstatSync(file).size - 1));
      return { kind: 'read', byte: length === 1 ? byte[0] : undefined };
    } finally {
      closeSync(file);
    }
  } catch (error) {
    return { kind: 'unreadable', reason: reasonOf(error) };
  }
}
