/**
 * Writes a backup: a copy of `access.db`, the log up to the entry that the database has applied, then the secret. The
 * folder is updated, so only new data is written.
 *
 * It works while the appliance runs, because logs are only appended to. All data is verified as it is written, and is on
 * the disk before `backup.json` names it.
 */
import { closeSync, existsSync, lstatSync, mkdirSync, openSync, readFileSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve, sep } from 'node:path';
import { findAccess, findCopy } from '../auth/spare-copy.ts';
import type { Mark } from '../log/format.ts';
import { findTail, placeOf } from '../log/log-reader.ts';
import { listSegments } from '../log/segment.ts';
import { epochTimes } from '../log/version-epoch.ts';
import { failed, isErrorCode, misconfigured, Refused, reasonOf } from '../refused.ts';
import { refuseHalfRestored } from '../store/complete-restore.ts';
import { openDatabase } from '../store/database.ts';
import { isDiskFull } from '../store/database-errors.ts';
import { type DataFolder, dataFolder, syncFolder, writeWhole } from '../store/folder.ts';
import { keepInPlace, type Release, takeLock } from '../store/locks.ts';
import { LogDamage, LogFailure } from '../store/log-errors.ts';
import { readLogMarkOf } from '../store/log-mark.ts';
import { requireOwner } from '../store/owner.ts';
import { SECRET_BYTES } from '../store/secret.ts';
import { formatMs, type Now } from '../time.ts';
import { VERSION } from '../version.ts';
import {
  type BackupState,
  type CopiedAccess,
  newState,
  notAFolder,
  readState,
  STATE,
  sha256,
  writeState,
} from './backup-state.ts';
import { copyLog } from './log-copy.ts';
import { hasEntry } from './source.ts';

export interface BackupOptions {
  readonly data: string;
  /** The backup folder, absolute. */
  readonly target: string;
  /** The drop folder. */
  readonly drop: string;
  readonly now: Now;
  /** Called with the current step, in bytes. */
  readonly onProgress: (what: string, done: number, total: number) => void;
}

export interface WrittenBackup {
  readonly state: BackupState;
  /** Bytes that were written. */
  readonly written: number;
}

const LOCK = 'lock';
/** How long to wait for another backup into the same folder. */
const OTHER_BACKUP_MS = 5_000;

/**
 * @throws Refused `failed` if the target cannot be written, or the installation is damaged, and then the earlier backup
 *   stays valid; `configuration` if there is no installation to back up
 */
export function writeBackup(options: BackupOptions): WrittenBackup {
  const { target } = options;
  const folder = dataFolder(options.data);
  // The scheduled backup must be able to continue what this one writes.
  requireOwner(folder);
  const release = keepInPlace(folder, false);
  const stays = existsSync(join(target, STATE)) ? ' The earlier backup is still valid.' : '';
  try {
    requireInstallation(folder);
    requireOutside(folder, options);
    requireParent(target);
    const found = lstatSync(target, { throwIfNoEntry: false });
    if (found === undefined ? target.endsWith('.tar') : !found.isDirectory()) throw notAFolder(target);
    return writeFolder(folder, options);
  } catch (error) {
    throw explained(error, { target, stays, root: folder.root });
  } finally {
    release();
  }
}

function writeFolder(folder: DataFolder, options: BackupOptions): WrittenBackup {
  const { target } = options;
  if (!existsSync(target)) {
    // Not its parents: if a disk is not mounted, they would fill another one.
    mkdirSync(target, { mode: 0o700 });
    syncFolder(dirname(target));
  }
  const release = lockFolder(target);
  const begin = beginOf(folder);
  try {
    return update(folder, options);
  } catch (error) {
    if (beginOf(folder) === begin) throw error;
    throw failed('the log was rewritten while it was copied. Run the command again.');
  } finally {
    release();
  }
}

/** The first segment: a log that was rewritten has another one. */
function beginOf({ log }: DataFolder): string | undefined {
  return listSegments(log)[0]?.path;
}

/** @throws the file system's error, which names the path: SQLite's does not */
function lockFolder(target: string): Release {
  const lock = join(target, LOCK);
  closeSync(openSync(lock, 'a', 0o600));
  const release = takeLock(lock, OTHER_BACKUP_MS);
  if (release !== null) return release;
  throw failed(`another backup into ${target} is running. Try again later.`);
}

function update(folder: DataFolder, { target, now, onProgress }: BackupOptions): WrittenBackup {
  const at = formatMs(now());
  const copy = dataFolder(target);
  const secret = readFileSync(folder.secret);
  if (secret.length !== SECRET_BYTES)
    throw misconfigured(
      `the secret ${folder.secret} is damaged: expected ${SECRET_BYTES} bytes. Restore it from an older backup.`,
    );
  const before = stateOf(copy, secret);
  // In this order: a removal that access.db no longer has open is in the log.
  const { content, ...access } = readAccess(folder);
  const epoch = epochOf(folder);
  requireEarlier(folder, copy, { before, access, epoch });
  const log = endOf(folder, before?.log?.entry ?? 0);
  let written = existsSync(copy.secret) ? 0 : writeWhole(copy.secret, secret);
  const onBytes = (bytes: number) => {
    written += bytes;
    onProgress('copying the log', written, 0);
  };
  copyLog({ from: folder.log, to: copy.log, end: log, onBytes });
  if (!existsSync(copy.access) || sha256(readFileSync(copy.access)) !== access.sha256)
    written += writeWhole(copy.access, content);
  const state = newState({ program: VERSION, at, log, epoch, access, secret_sha256: sha256(secret) });
  if (JSON.stringify(before) !== JSON.stringify(state)) written += writeState(target, state);
  return { state, written };
}

/** @returns null if the backup is new; @throws Refused `failed` if the folder is not a backup of this installation */
function stateOf(copy: DataFolder, secret: Buffer): BackupState | null {
  if (existsSync(copy.detections)) throw alone(copy, 'it is a data folder');
  if (existsSync(copy.secret) && !readFileSync(copy.secret).equals(secret))
    throw alone(copy, 'it is a backup of another installation, or its secret is damaged');
  try {
    return readState(copy.root);
  } catch (error) {
    throw error instanceof Refused ? alone(copy, error.message) : error;
  }
}

/** Nothing of another history, or of a later state of this one, is overwritten. @throws Refused `failed` */
function requireEarlier(
  folder: DataFolder,
  copy: DataFolder,
  { before, access, epoch }: Pick<BackupState, 'access' | 'epoch'> & { before: BackupState | null },
): void {
  const later =
    'it is a backup of a later state of this installation, or of one that was discarded by a restore';
  const found = findCopy(copy.access);
  if (found.kind === 'sound' && found.state.change > access.change) throw alone(copy, later);
  // The first run may have been interrupted.
  const end = before === null ? findTail(copy.log).last : before.log;
  if (end === null) return;
  if (!hasEntry(folder.log, end)) {
    const mark = readLogMarkOf(folder.detections);
    if (mark === null || hasEntry(folder.log, mark)) throw alone(copy, later);
    throw new LogDamage(`it lacks entry ${mark.entry}, which the database has`);
  }
  // Where a snapshot has taken the place of that entry, only the epochs show whether it is of the same history.
  if (placeOf(folder.log, end) === 'before' && (epoch === null || before?.epoch !== epoch))
    throw alone(
      copy,
      'the log was rewritten since, and it cannot be seen whether this is an earlier state of it',
    );
}

function alone({ root }: DataFolder, reason: string): Refused {
  return failed(
    `${root} is left as it is: ${reason}. Name another folder for the backup, or move this one away.`,
  );
}

/** When the newest version epoch began; 0: there was none; null: the database cannot be read now. */
function epochOf({ detections }: DataFolder): number | null {
  try {
    using db = openDatabase(detections, 'inspect');
    return epochTimes(db).at(-1) ?? 0;
  } catch {
    return null;
  }
}

/** @throws Refused `failed` if neither it nor its spare copy is sound */
function readAccess(folder: DataFolder): CopiedAccess & { readonly content: Buffer } {
  const found = findAccess(folder);
  if (found.kind !== 'sound')
    throw failed(`${folder.access} and its spare copy are damaged or missing. To see more: wirewatch verify`);
  const { state, content } = found;
  return { ...state, sha256: sha256(content), content };
}

/**
 * The last entry that a database has applied; the last one of the log if the database is not reliable.
 * @param least the number of an entry that the backup has: a database that is being rebuilt may be behind it
 */
function endOf({ log, detections }: DataFolder, least: number): Mark | null {
  const mark = readLogMarkOf(detections);
  if (mark !== null && mark.entry >= least && placeOf(log, mark) === 'known') return mark;
  return findTail(log).last;
}

function requireInstallation(folder: DataFolder): void {
  refuseHalfRestored(folder);
  const { root, log, access, spare, secret } = folder;
  const hasAccess = existsSync(access) || existsSync(spare);
  if (existsSync(secret) && hasAccess) return;
  if (!hasAccess)
    throw misconfigured(`there is no installation in ${root}. Name its data folder with --data.`);
  throw misconfigured(
    existsSync(log)
      ? `${root} cannot be backed up: ${secret} is missing.`
      : `there is nothing to back up in ${root} yet: Wirewatch has never been started with this data folder. Start it with: wirewatch serve`,
  );
}

/** Not over a part of the installation, and not where ingest moves every file away. */
function requireOutside({ root, log }: DataFolder, { target, drop }: BackupOptions): void {
  const at = realPath(target);
  const within = (folder: string) => at === realPath(folder) || at.startsWith(realPath(folder) + sep);
  if (at !== realPath(root) && !within(log) && !within(drop)) return;
  throw failed(
    `${target} is part of the ${within(drop) ? 'drop' : 'data'} folder. Name another place, preferably on another disk.`,
  );
}

function requireParent(target: string): void {
  const parent = dirname(target);
  if (existsSync(parent)) return;
  throw failed(
    `cannot write ${target}: there is no folder ${parent}. Create it, or name another place for the backup. If it is on another disk, check that the disk is mounted.`,
  );
}

/** The real path of the part that exists, followed by the rest. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? resolve(path) : join(realPath(parent), basename(path));
  }
}

/** @param stays what to say of an earlier backup; empty if there is none */
function explained(
  error: unknown,
  { target, stays, root }: { readonly target: string; readonly stays: string; readonly root: string },
): unknown {
  if (error instanceof Refused) return error;
  const cause = { cause: error };
  if (error instanceof LogDamage)
    return failed(
      `the log is damaged: ${error.message}.${stays} To find out what is wrong: wirewatch verify`,
      cause,
    );
  const reason = error instanceof LogFailure ? error.message : reasonOf(error, target);
  if (isDiskFull(error))
    return failed(`the disk of ${target} is full.${stays} Free space and try again.`, cause);
  const path = error instanceof Error && 'path' in error ? String(error.path) : '';
  const isOfTarget = path === target || path.startsWith(target + sep);
  if (path.startsWith(root + sep) && !isOfTarget)
    return failed(`${reason}. Run the command as the user that Wirewatch runs as.`, cause);
  // If the folder is gone, SQLite's driver gives no code.
  const isGone = error instanceof TypeError && !existsSync(target);
  if (
    isGone ||
    isErrorCode(error, 'ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'EROFS', 'EIO', 'ESTALE', 'EEXIST')
  )
    return failed(`cannot write ${target}: ${reason}.${stays} ${adviceOn(error, target)}`, cause);
  return error;
}

function adviceOn(error: unknown, target: string): string {
  if (!isErrorCode(error, 'EACCES', 'EPERM')) return 'Check the disk and the permissions.';
  const [uid, gid] = [process.geteuid?.(), process.getegid?.()];
  return existsSync(target)
    ? `Give the backup folder to the user that Wirewatch runs as: chown -R ${uid}:${gid} ${target}`
    : `Create the backup folder for the user that Wirewatch runs as: install -d -m 0700 -o ${uid} -g ${gid} ${target}`;
}
