/**
 * How commands and the appliance open `access.db` for writing: the one way in, with its plain-English refusals. It is a
 * projection of its log, and brought to the log's end, or made anew from it, before anything is read from it.
 *
 * | what is found | what is done |
 * |---|---|
 * | the database has applied an entry that the log has | the entries behind it are applied |
 * | no database, another schema, another history, a damaged one, and at a start one that differs from the log | it is made anew |
 * | the log ends before the database, or is damaged where it is needed | refused; nothing is changed |
 */

import { existsSync, renameSync } from 'node:fs';
import { now } from '../clock.ts';
import { isErrorCode, Refused, reasonOf } from '../refused.ts';
import { ACCESS_SCHEMA } from '../store/access-schema.ts';
import {
  type Database,
  isEmpty,
  openDatabase,
  removeBeside,
  removeDatabase,
  sizeOf,
} from '../store/database.ts';
import { isDamage, isDiskFull } from '../store/database-errors.ts';
import { checkpoint } from '../store/file-identity.ts';
import { type DataFolder, dataFolder, ensureFolder, syncFile, syncFolder } from '../store/folder.ts';
import { refuseHalfRestored } from '../store/incoming.ts';
import { ensureInstallation, type InstallationKind, installationKind } from '../store/installation.ts';
import { isLocked, takeLock } from '../store/locks.ts';
import { readLogMark } from '../store/log-mark.ts';
import { UnknownSchema } from '../store/schema.ts';
import {
  applyEntries,
  catchUp,
  differingTables,
  logTransactions,
  relyingOnLog,
  standingOf,
} from './access-log.ts';
import type { Operation } from './format.ts';
import { LogDamage } from './log-error.ts';
import { findTail, trustTail } from './log-reader.ts';
import { swapInNewLog } from './new-log.ts';
import { listSegments } from './segment.ts';

export interface OpenAccessOptions {
  /** What the log says of the changes that are made: who makes them, and by what. No secret belongs into it. */
  readonly operation: Operation;
  /** Without it either kind is accepted, and a new folder becomes an appliance's. */
  readonly kind?: InstallationKind;
  /** Whether a missing folder or database is made. */
  readonly create?: boolean;
  /** For a start, which holds the locks of the appliance: all that it holds is compared with the log. */
  readonly compare?: boolean;
  /** Told what was wrong with it, and was put right. */
  readonly onRecovered?: (recovered: Recovered) => void;
}

export type Recovered =
  | { readonly kind: 'made anew'; readonly reason: string }
  | { readonly kind: 'brought up'; readonly entries: number }
  /** It is not needed now: the database has all of it. */
  | { readonly kind: 'log damaged'; readonly reason: string };

/** How long another process may take to make it anew. */
const RECOVERY_MS = 5_000;

/**
 * Opens `access.db` in a data folder; the caller closes it. What is changed with {@link writing} is logged.
 *
 * Safe beside a running appliance: what is committed here holds for the next request.
 *
 * @throws Refused `configuration` when there is no database (unless `create`), it cannot be opened, is not ours, its log
 *   cannot be relied on, or the folder is of another kind; `failed` when another process keeps it busy
 */
export function openAccess(root: string, options: OpenAccessOptions): Database {
  const folder = dataFolder(root);
  refuseHalfRestored(folder);
  if (options.create === true) ensureFolder(folder);
  else if (!isThere(folder.access) && listSegments(folder.accessLog).length === 0) {
    throw new Refused(
      'configuration',
      `there is no installation in ${root}. Name its data folder with --data, or start a new installation with: wirewatch account add ID --name NAME`,
    );
  }
  const db = openOrRefuse(folder, options);
  try {
    if (options.kind !== undefined) ensureInstallation(db, options.kind);
    else if (installationKind(db) === null) ensureInstallation(db, 'appliance');
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function openOrRefuse(folder: DataFolder, options: OpenAccessOptions): Database {
  const { access: path } = folder;
  try {
    const db = relyingOnLog(folder, () => openRecovered(folder, options));
    logTransactions(db, folder, options.operation);
    return db;
  } catch (error) {
    if (error instanceof Refused) throw error;
    const cause = { cause: error };
    if (isErrorCode(error, 'SQLITE_BUSY')) {
      throw new Refused('failed', `${path} is in use by another process. Try again in a moment.`, cause);
    }
    if (isDiskFull(error)) {
      throw new Refused('failed', `cannot open ${path}: the disk is full. Free space and try again.`, cause);
    }
    if (isDamage(error)) {
      throw new Refused(
        'configuration',
        `${path} is damaged or not a database. Restore a backup: wirewatch restore BACKUP --replace`,
        cause,
      );
    }
    const reason = reasonOf(error);
    throw new Refused(
      'configuration',
      `cannot open ${path}: ${reason}. Check that this user can read and write the data folder.`,
      cause,
    );
  }
}

function openRecovered(folder: DataFolder, options: OpenAccessOptions): Database {
  const found = openSound(folder, options);
  if (found.kind === 'sound') return found.db;
  found.held?.close();
  // Its threads have the old one open, and would go on with that.
  if (options.compare !== true && isLocked(folder.serveLock))
    throw new Refused(
      'configuration',
      `${folder.access} cannot be used: ${found.reason}. Restart Wirewatch: it rebuilds the file from its log, and no data is lost.`,
    );
  const release = takeLock(`${folder.access}-lock`, RECOVERY_MS);
  if (release === null)
    throw new Refused('failed', `another process is rebuilding ${folder.access}. Try again in a moment.`);
  try {
    // It may have been made anew meanwhile.
    const again = openSound(folder, options);
    if (again.kind === 'sound') return again.db;
    makeAnew(folder);
    again.held?.close();
    options.onRecovered?.({ kind: 'made anew', reason: again.reason });
  } finally {
    release();
  }
  const made = openSound(folder, options);
  if (made.kind === 'sound') return made.db;
  made.held?.close();
  throw new Error(`${folder.access} was rebuilt from its log, but still cannot be used: ${made.reason}`);
}

type Found =
  | { readonly kind: 'sound'; readonly db: Database }
  /** `held`: its write lock is held, so that nobody changes it until another is in its place. */
  | { readonly kind: 'unsound'; readonly reason: string; readonly held: Database | null };

function openSound(folder: DataFolder, options: OpenAccessOptions): Found {
  const { access: path, accessLog } = folder;
  // One that was begun anew, and not put in its place before a crash.
  swapInNewLog(accessLog, now());
  const hasLog = listSegments(accessLog).length > 0;
  if (hasLog && !isThere(path)) return { kind: 'unsound', reason: 'it is missing or empty', held: null };
  const hadWal = sizeOf(`${path}-wal`) > 0;
  let db: Database | null = null;
  try {
    db = openDatabase(path, 'write', ACCESS_SCHEMA);
    const said = String(db.pragma('integrity_check(1)', { simple: true }));
    const reason = said === 'ok' ? bringToEnd(db, folder, options, hadWal) : `it is damaged: ${said}`;
    if (reason === null) return { kind: 'sound', db };
    if (hasLog) return { kind: 'unsound', reason, held: db };
    throw new Refused(
      'configuration',
      `${path} is damaged: ${said}. Restore a backup: wirewatch restore BACKUP --replace`,
    );
  } catch (error) {
    db?.close();
    if (!hasLog) throw error;
    if (error instanceof UnknownSchema)
      return { kind: 'unsound', reason: 'it was created by another version of Wirewatch', held: null };
    if (!isDamage(error)) throw error;
    return { kind: 'unsound', reason: `it is damaged: ${reasonOf(error)}`, held: null };
  }
}

/** @returns why the database cannot be used, with its write lock held; null where it is at the log's end */
function bringToEnd(
  db: Database,
  { accessLog }: DataFolder,
  { compare = false, onRecovered }: OpenAccessOptions,
  hadWal: boolean,
): string | null {
  if (!compare && isEven(db, accessLog)) return null;
  db.exec('BEGIN IMMEDIATE');
  const tail = findTail(accessLog, 'access');
  if (standingOf(accessLog, tail, readLogMark(db)) === 'foreign') return 'it belongs to another log';
  const { applied } = catchUp(db, accessLog);
  try {
    const [table] = compare ? differingTables(db, accessLog) : [];
    if (table !== undefined) return `its table ${table} differs from the log`;
  } catch (error) {
    // SQLite joins what was left in a -wal to whatever file is there: then only the log can tell.
    if (!(error instanceof LogDamage) || hadWal) throw error;
    onRecovered?.({ kind: 'log damaged', reason: error.message });
  }
  db.exec('COMMIT');
  if (applied > 0) onRecovered?.({ kind: 'brought up', entries: applied });
  return null;
}

/** Whether the database is at the log's end, seen without a lock: where another process writes, it may not seem so. */
function isEven(db: Database, accessLog: string): boolean {
  try {
    return findTail(accessLog, 'access').last?.id === readLogMark(db)?.id;
  } catch (error) {
    if (error instanceof LogDamage) return false;
    throw error;
  }
}

/** Makes the database beside its place, and puts it there when it is whole. */
function makeAnew({ root, access, accessLog }: DataFolder): void {
  // What a killed command wrote last may not be on the disk: a power cut would leave a database ahead of its log.
  trustTail(accessLog, findTail(accessLog, 'access'));
  const draft = `${access}-draft`;
  removeDatabase(draft);
  const db = openDatabase(draft, 'write', ACCESS_SCHEMA);
  try {
    db.transaction(() => applyEntries(db, accessLog, null)).immediate();
    checkpoint(db, 'TRUNCATE');
  } finally {
    db.close();
  }
  syncFile(draft);
  removeBeside(access);
  renameSync(draft, access);
  syncFolder(root);
}

function isThere(path: string): boolean {
  return existsSync(path) && !isEmpty(path);
}
