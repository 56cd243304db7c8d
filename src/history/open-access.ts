/**
 * Opens `access.db` for writing, for commands and the appliance. The database is a projection of its log: before it is
 * read, it is brought up to date, or rebuilt.
 *
 * | state | action |
 * |---|---|
 * | the log has the last entry that the database has applied | later entries are applied |
 * | no database, another schema, another log, damage, or at a start a difference from the log | it is rebuilt |
 * | the log ends before the database, or a part of it that is needed is damaged | refused; nothing is changed |
 */

import { existsSync, renameSync } from 'node:fs';
import { now } from '../clock.ts';
import { Refused, reasonOf } from '../refused.ts';
import { ACCESS_SCHEMA } from '../store/access-schema.ts';
import { refuseHalfRestored } from '../store/complete-restore.ts';
import {
  type Database,
  integrityError,
  isEmpty,
  openDatabase,
  removeBeside,
  removeDatabase,
  sizeOf,
} from '../store/database.ts';
import { isDamage, isDiskFull } from '../store/database-errors.ts';
import { checkpoint } from '../store/file-identity.ts';
import { type DataFolder, dataFolder, ensureFolder, syncFile, syncFolder } from '../store/folder.ts';
import { ensureInstallation, type InstallationKind, installationKind } from '../store/installation.ts';
import { isLocked, takeLock } from '../store/locks.ts';
import { readLogMark } from '../store/log-mark.ts';
import { UnknownSchema } from '../store/schema.ts';
import {
  applyEntries,
  catchUp,
  differingTables,
  logStateOf,
  logTransactions,
  orRefused,
} from './access-log.ts';
import type { Operation } from './format.ts';
import { LogDamage } from './log-error.ts';
import { findTail, trustTail } from './log-reader.ts';
import { swapInNewLog } from './replace-log.ts';
import { listSegments } from './segment.ts';

export interface OpenAccessOptions {
  /** The actor and command that the log names for changes; without secrets. */
  readonly operation: Operation;
  /** Default: every kind is accepted, and a new folder becomes an appliance's. */
  readonly kind?: InstallationKind;
  /** Whether to create a missing folder or database. */
  readonly create?: boolean;
  /** Whether to compare all rows with the log: for a start, which holds the locks of the appliance. */
  readonly compare?: boolean;
  /** Called with what was wrong and has been repaired. */
  readonly onRecovered?: (recovered: Recovered) => void;
}

export type Recovered =
  | { readonly kind: 'rebuilt'; readonly reason: string }
  | { readonly kind: 'brought up'; readonly entries: number }
  /** The database has everything, so the damaged part is not needed now. */
  | { readonly kind: 'log damaged'; readonly reason: string };

/** How long another process may take to rebuild it. */
const REBUILD_MS = 5_000;

/**
 * Opens `access.db` in a data folder; the caller closes it. Changes made by {@link writing} are logged, and refused with
 * `failed` if another process keeps it busy. If an appliance is running, its next request sees them.
 *
 * @throws Refused `configuration` if there is no database (unless `create`), it cannot be opened, it belongs to another
 *   program, its log is damaged, or the folder is of another kind; `failed` if another process keeps it busy
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
    const db = orRefused(folder, () => openRecovered(folder, options));
    logTransactions(db, folder, options.operation);
    return db;
  } catch (error) {
    if (error instanceof Refused) throw error;
    const cause = { cause: error };
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
  // Its threads have the old file open, and would continue to use it.
  if (options.compare !== true && isLocked(folder.serveLock))
    throw new Refused(
      'configuration',
      `${folder.access} cannot be used: ${found.reason}. Restart Wirewatch: it rebuilds the file from its log, and no data is lost.`,
    );
  const release = takeLock(`${folder.access}-lock`, REBUILD_MS);
  if (release === null)
    throw new Refused('failed', `another process is rebuilding ${folder.access}. Try again in a moment.`);
  try {
    // Another process may have rebuilt it meanwhile.
    const again = openSound(folder, options);
    if (again.kind === 'sound') return again.db;
    rebuild(folder);
    again.held?.close();
    options.onRecovered?.({ kind: 'rebuilt', reason: again.reason });
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
  /** `held`: a connection with the write lock, so that nobody changes the database until it is replaced. */
  | { readonly kind: 'unsound'; readonly reason: string; readonly held: Database | null };

function openSound(folder: DataFolder, options: OpenAccessOptions): Found {
  const { access: path, accessLog } = folder;
  // A crash may have come before a new log was in place.
  swapInNewLog(accessLog, now());
  const hasLog = listSegments(accessLog).length > 0;
  if (hasLog && !isThere(path)) return { kind: 'unsound', reason: 'it is missing or empty', held: null };
  const hadWal = sizeOf(`${path}-wal`) > 0;
  let db: Database | null = null;
  try {
    db = openDatabase(path, 'write', ACCESS_SCHEMA);
    const found = integrityError(db);
    const reason = found === null ? bringUpToDate(db, folder, options, hadWal) : `it is damaged: ${found}`;
    if (reason === null) return { kind: 'sound', db };
    if (hasLog) return { kind: 'unsound', reason, held: db };
    throw new Refused(
      'configuration',
      `${path} is damaged: ${found}. Restore a backup: wirewatch restore BACKUP --replace`,
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

/** @returns why the database cannot be used, with its write lock held; null if it is up to date */
function bringUpToDate(
  db: Database,
  { accessLog }: DataFolder,
  { compare = false, onRecovered }: OpenAccessOptions,
  hadWal: boolean,
): string | null {
  if (!compare && isUpToDate(db, accessLog)) return null;
  db.exec('BEGIN IMMEDIATE');
  const tail = findTail(accessLog, 'access');
  if (logStateOf(accessLog, tail, readLogMark(db)) === 'foreign') return 'it belongs to another log';
  const { applied } = catchUp(db, accessLog);
  try {
    const [table] = compare ? differingTables(db, accessLog) : [];
    if (table !== undefined) return `its table ${table} differs from the log`;
  } catch (error) {
    // SQLite joins a left-over -wal to whatever file is there, so without the log the rows are not reliable.
    if (!(error instanceof LogDamage) || hadWal) throw error;
    onRecovered?.({ kind: 'log damaged', reason: error.message });
  }
  db.exec('COMMIT');
  if (applied > 0) onRecovered?.({ kind: 'brought up', entries: applied });
  return null;
}

/** Checked without a lock: while another process writes, it may wrongly be false. */
function isUpToDate(db: Database, accessLog: string): boolean {
  try {
    return findTail(accessLog, 'access').last?.id === readLogMark(db)?.id;
  } catch (error) {
    if (error instanceof LogDamage) return false;
    throw error;
  }
}

/** Builds the database beside its place, and puts it there when it is complete. */
function rebuild({ root, access, accessLog }: DataFolder): void {
  // The last write of a killed command may not be on the disk: a power cut would leave a database ahead of its log.
  trustTail(accessLog, findTail(accessLog, 'access'));
  const draft = `${access}-draft`;
  removeDatabase(draft);
  {
    using db = openDatabase(draft, 'write', ACCESS_SCHEMA);
    db.transaction(() => applyEntries(db, accessLog, null)).immediate();
    checkpoint(db, 'TRUNCATE');
  }
  syncFile(draft);
  removeBeside(access);
  renameSync(draft, access);
  syncFolder(root);
}

function isThere(path: string): boolean {
  return existsSync(path) && !isEmpty(path);
}
