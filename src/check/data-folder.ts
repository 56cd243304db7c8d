/** The data folder: whether this user, and no other, can use it; both databases, the log and the secret. */
import { accessSync, constants, existsSync, readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { findSpare } from '../auth/spare-copy.ts';
import { counted } from '../counted.ts';
import { listSegments } from '../log/segment.ts';
import { Refused, reasonOf } from '../refused.ts';
import { ACCESS_SCHEMA } from '../store/access-schema.ts';
import { type Database, openDatabase, requireSchema } from '../store/database.ts';
import { type DataFolder, refuseLinks, requireUsable } from '../store/folder.ts';
import { readLogMark } from '../store/log-mark.ts';
import { type Schema, UnknownSchema } from '../store/schema.ts';
import { SECRET_BYTES } from '../store/secret.ts';
import { bad, type Outcome, ok, tried, warn } from './finding.ts';

const OTHERS = 0o077;
const FIRST_START = 'does not exist yet: the first start creates it';
const RESTORE = 'Restore a backup: wirewatch restore BACKUP --replace';

export function checkDataFolder(folder: DataFolder): Outcome {
  const { root } = folder;
  const todo =
    'Give the folder and its files to the user that Wirewatch runs as (chown -R), and run this command as that user.';
  return tried(root, todo, () => {
    const found = statSync(root, { throwIfNoEntry: false });
    if (found === undefined) {
      let parent = dirname(root);
      while (!existsSync(parent)) parent = dirname(parent);
      accessSync(parent, constants.W_OK | constants.X_OK);
      return warn(
        `${root} does not exist yet`,
        'The first start or command creates it. If it is not the right folder, name another with --data.',
      );
    }
    requireUsable(folder);
    refuseLinks(folder);
    const detail = `${root}, mode ${(found.mode & 0o7777).toString(8).padStart(4, '0')}`;
    if (process.getuid !== undefined && process.getuid() !== found.uid)
      return warn(
        `${detail}, owned by user id ${found.uid}, but this command runs as ${process.getuid()}`,
        'Run this command as the user that Wirewatch runs as: only then does it test what that user can read and write.',
      );
    return (found.mode & OTHERS) === 0
      ? ok(detail)
      : warn(
          `${detail}: other users of this machine have access to it, and it contains the secret and the hashes of keys`,
          `chmod 0700 ${root}`,
        );
  });
}

export interface CheckedDatabase {
  readonly outcome: Outcome;
  /** Null if it cannot be used; the caller closes it. */
  readonly db: Database | null;
}

export function checkDatabase(path: string, schema: Schema): CheckedDatabase {
  if (!existsSync(path)) return { outcome: ok(FIRST_START), db: null };
  let db: Database | null = null;
  try {
    db = openDatabase(path, 'inspect');
    requireSchema(db, path, schema);
    return { outcome: ok('can be opened'), db };
  } catch (error) {
    db?.close();
    return { outcome: unusable(path, error, schema === ACCESS_SCHEMA), db: null };
  }
}

export function checkAccess(folder: DataFolder): CheckedDatabase {
  if (existsSync(folder.access) || !existsSync(folder.detections))
    return checkDatabase(folder.access, ACCESS_SCHEMA);
  const outcome =
    findSpare(folder).kind === 'sound'
      ? warn('missing, but its spare copy is sound', 'Restart Wirewatch: it puts the spare copy in place.')
      : bad('missing, although detections.db exists, and so is its spare copy', RESTORE);
  return { outcome, db: null };
}

function unusable(path: string, error: unknown, isAccess: boolean): Outcome {
  if (error instanceof UnknownSchema)
    return isAccess
      ? bad('from another version of Wirewatch', 'Use that version, or restore a backup of this one.')
      : warn('from another version of Wirewatch', 'The next start rebuilds it from the log.');
  if (error instanceof Refused)
    return bad(error.message, 'Name the right data folder with --data, or restore a backup.');
  const next = isAccess
    ? 'the spare copy of access.db takes its place'
    : 'it rebuilds a damaged database from its log';
  return bad(
    `${path}: ${reasonOf(error, path)}`,
    `Restart Wirewatch: ${next}. To find all damage, run: wirewatch verify`,
  );
}

/** @param db of the log; null if nothing can be read from it */
export function checkLog(folder: string, db: Database | null): Outcome {
  const segments = listSegments(folder);
  if (segments.length > 0) return ok(counted(segments.length, 'segment'));
  return db !== null && readLogMark(db) !== null
    ? bad('missing, although its database exists', RESTORE)
    : ok('does not exist yet: the first change creates it');
}

export function checkSecret({ secret, detections }: DataFolder): Outcome {
  const todo = 'Restore it from a backup: without it, Wirewatch refuses all cursors that clients have.';
  if (!existsSync(secret))
    return existsSync(detections) ? bad('missing, although the databases are in use', todo) : ok(FIRST_START);
  const { length } = readFileSync(secret);
  if (length !== SECRET_BYTES) return bad(`has ${counted(length, 'byte')}, expected ${SECRET_BYTES}`, todo);
  return (statSync(secret).mode & OTHERS) === 0
    ? ok('present, and private to its user')
    : warn('other users can read it, and so forge cursors and photo addresses', `chmod 0600 ${secret}`);
}
