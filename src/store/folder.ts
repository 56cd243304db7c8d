/**
 * The data folder: what lies where in it, and whether this user can work in it.
 */
import { randomBytes } from 'node:crypto';
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { isErrorCode, Refused, reasonOf } from '../refused.ts';

const ROOM_BYTES = 64 * 1024;

export interface DataFolder {
  readonly root: string;
  /** Detections, stream, windows, ingest: written by the appliance's worker alone. */
  readonly detections: string;
  /** Accounts, subscriptions, keys, requests to the appliance: written by commands too. */
  readonly access: string;
  /** The history of detections.db, from which that is made. */
  readonly log: string;
  /** The history of access.db. */
  readonly accessLog: string;
  /** There while detections.db is known to be damaged: the next start makes it anew. */
  readonly damage: string;
  /** What the appliance counts and may lose; in no backup. */
  readonly usage: string;
  readonly secret: string;
  /** Locks: see locks.ts. */
  readonly lock: string;
  readonly serveLock: string;
  readonly stateLock: string;
  /** The alerts that the running appliance has open. */
  readonly alerts: string;
  /** What was found when detections.db was last compared with its log. */
  readonly verified: string;
  /** Where the running appliance listens: see noted-address.ts. */
  readonly address: string;
  /** Where the console of the running appliance is; not there while it is off. */
  readonly consoleAddress: string;
}

export function dataFolder(root: string): DataFolder {
  return {
    root,
    detections: join(root, 'detections.db'),
    access: join(root, 'access.db'),
    log: join(root, 'log'),
    accessLog: join(root, 'access-log'),
    damage: join(root, 'detections.db-damage'),
    usage: join(root, 'usage.db'),
    secret: join(root, 'secret'),
    lock: join(root, 'lock'),
    serveLock: join(root, 'lock-serve'),
    stateLock: join(root, 'lock-state'),
    alerts: join(root, 'alerts.json'),
    verified: join(root, 'verified.json'),
    address: join(root, 'address'),
    consoleAddress: join(root, 'console-address'),
  };
}

/**
 * Creates the folder (0700) where it is missing; it may be a link to one, as systemd makes it for a dynamic user.
 *
 * @returns whether it was missing
 * @throws Refused `configuration` when this user cannot write to it, or to what lies in it
 */
export function ensureFolder(folder: DataFolder): boolean {
  const { root, detections, access, log, accessLog, lock, serveLock, stateLock, secret } = folder;
  let first: string | undefined;
  try {
    first = mkdirSync(root, { recursive: true, mode: 0o700 });
    for (let path = resolve(root); ; path = dirname(path)) {
      syncName(path);
      if (first === undefined || path === resolve(first) || path === dirname(path)) break;
    }
    accessSync(root, constants.R_OK | constants.W_OK | constants.X_OK);
    for (const path of [detections, access, log, accessLog, lock, serveLock, stateLock])
      if (existsSync(path)) accessSync(path, constants.R_OK | constants.W_OK);
    if (existsSync(secret)) accessSync(secret, constants.R_OK);
  } catch (error) {
    refuseFile(root);
    const reason =
      isErrorCode(error, 'EACCES') && isMissing(root)
        ? `it does not exist, and this user has no permission to create it in ${dirname(root)}`
        : reasonOf(error);
    throw new Refused(
      'configuration',
      `cannot use the data folder ${root}: ${reason}. Run as the owner of the folder, change its owner to this user (chown -R), or name another folder with --data.`,
    );
  }
  refuseLinks(folder);
  return first !== undefined;
}

/** @throws Refused `configuration` where the path is that of a file */
export function refuseFile(root: string): void {
  if (isFile(root))
    throw new Refused('configuration', `${root} is a file, not a folder. Name another folder with --data.`);
}

/**
 * Whoever can write to the folder could otherwise have the appliance, or root's commands, write to files elsewhere.
 *
 * @throws Refused `configuration` when something that is kept in the folder is a link. The folder itself may be one
 */
export function refuseLinks({ root, log, accessLog, ...files }: DataFolder): void {
  const databases = [files.detections, files.access, files.usage];
  const beside = databases.flatMap((path) => ['-wal', '-shm', '-journal'].map((ending) => path + ending));
  const inLogs = [log, accessLog].flatMap((path) => linksIn(path));
  const link = [log, accessLog, ...Object.values(files), ...beside].find(isLink) ?? inLogs[0];
  if (link === undefined) return;
  throw new Refused(
    'configuration',
    `${link} is a link. Files in the data folder ${root} must not be links: replace the link with its target. The data folder itself can be a link.`,
  );
}

function isFile(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() === false;
  } catch {
    // What cannot be looked at is told by whoever needs it.
    return false;
  }
}

function isLink(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
  } catch {
    // What cannot be looked at is told by whoever needs it.
    return false;
  }
}

/** What may not be looked at is taken to be there. */
function isMissing(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) === undefined;
  } catch {
    return false;
  }
}

function linksIn(folder: string): string[] {
  try {
    const entries = readdirSync(folder, { withFileTypes: true });
    return entries.filter((entry) => entry.isSymbolicLink()).map(({ name }) => join(folder, name));
  } catch {
    return [];
  }
}

/** Whether there is something of that name. @throws the file system's error where that cannot be told */
export function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    if (isErrorCode(error, 'ENOTDIR')) return false;
    throw error;
  }
}

/**
 * Gives a file that is whole and on disk its name, unless there is one of that name already; its former name is gone.
 *
 * Of several processes that do so at the same moment, one prevails. Where the file system has no hard links, the last
 * of those that saw none: there they must not begin at the same moment.
 *
 * @returns whether it is this one that has the name
 */
export function appearAs(path: string, draft: string): boolean {
  let isOurs = true;
  try {
    linkSync(draft, path);
  } catch (error) {
    if (isErrorCode(error, 'EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EXDEV')) {
      isOurs = !isThere(path);
      if (isOurs) renameSync(draft, path);
    } else if (isErrorCode(error, 'EEXIST')) isOurs = false;
    else throw error;
  }
  rmSync(draft, { force: true });
  syncFolder(dirname(path));
  return isOurs;
}

/** @throws ENOSPC or its like when there is no room for a few pages of a database */
export function requireRoom({ root }: DataFolder): void {
  const path = join(root, '.room');
  try {
    // Random, for file systems that would store zeros in no room at all.
    writeFileSync(path, randomBytes(ROOM_BYTES), { mode: 0o600 });
  } finally {
    rmSync(path, { force: true });
  }
}

/** How much this user can still write on the disk of a file or folder. */
export function freeBytes(path: string): number {
  const { bavail, bsize } = statfsSync(path);
  return bavail * bsize;
}

/**
 * Writes a small file, which appears under its name when it is on the disk.
 *
 * @param mode of what only this user may read, unless it is meant for others
 * @returns its bytes
 */
export function writeWhole(path: string, content: string | Buffer, mode = 0o600): number {
  const draft = join(dirname(path), `.${basename(path)}.tmp`);
  const file = openSync(draft, 'w', mode);
  try {
    writeFileSync(file, content);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(draft, path);
  syncFolder(dirname(path));
  return Buffer.byteLength(content);
}

/** Makes a file's content durable. A link or a pipe in its place is not followed, and holds nothing up. */
export function syncFile(path: string): void {
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/**
 * Makes durable that a folder is there: what is synced in it does not cover its own name. One whose parent this user
 * cannot sync was made by somebody else, or is a mount point.
 */
export function syncName(path: string): void {
  try {
    syncFolder(dirname(resolve(path)));
  } catch (error) {
    if (!isErrorCode(error, 'EACCES', 'EPERM', 'EINVAL', 'ENOTSUP', 'ENOSYS', 'EROFS')) throw error;
  }
}

/** Makes the names in a folder durable: a rename is on disk only when its folder is. */
export function syncFolder(path: string): void {
  const handle = openSync(path, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
