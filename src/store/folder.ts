/** The data folder: the paths in it, whether this user can work in it, and durable writes. */
import { randomUUID } from 'node:crypto';
import * as fs from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isErrorCode, misconfigured, type Refused, reasonOf, unlessCode, unlessError } from '../refused.ts';
import { SECOND_MS } from '../time.ts';

export type DataFolder = Readonly<ReturnType<typeof dataFolder>>;

export function dataFolder(root: string) {
  return {
    root,
    /** Detections, stream, windows, files: written by the ingest thread alone. */
    detections: join(root, 'detections.db'),
    access: join(root, 'access.db'),
    /** The copy that takes its place when it is damaged. */
    spare: join(root, 'access.db-spare'),
    /** The log of detections.db, from which the database can be rebuilt. */
    log: join(root, 'log'),
    /** Exists while detections.db is known to be damaged: the next start rebuilds it. */
    damage: join(root, 'detections.db-damage'),
    /** Counts that may be lost, as JSON; in no backup. */
    usage: join(root, 'usage'),
    secret: join(root, 'secret'),
    lock: join(root, 'lock'),
    serveLock: join(root, 'lock-serve'),
    stateLock: join(root, 'lock-state'),
    /** The socket through which commands operate the running appliance. */
    control: join(root, 'control.sock'),
    /** The result of the last scrub. */
    verified: join(root, 'verified.json'),
    /** Whether this machine writes the copy: see role.ts. */
    role: join(root, 'role.json'),
    /** What was written to copies: see role.ts. */
    copied: join(root, 'copied'),
    /** The address of the running appliance: see noted-address.ts. */
    address: join(root, 'address'),
  };
}

/** The folders in which an installation has files that are no export files. */
export const usedFolders = ({ root, log, copied }: DataFolder, photos: string) => [root, log, copied, photos];

/** How long a folder may take to answer: one on a share that hangs never does. */
const ANSWER_MS = 5 * SECOND_MS;

/**
 * One that is not there, or on a share that hangs, is no other.
 * @param used absolute
 * @throws Refused `configuration` if the drop folder is one of them, by whatever path: a link or a bind mount
 */
export async function requireSeparate(drop: string, used: readonly string[]): Promise<void> {
  const [own, ...others] = await Promise.all(
    [drop, ...used].map((path) =>
      Promise.race([stat(path, { bigint: true }), sleep(ANSWER_MS, null, { ref: false })]).catch(() => null),
    ),
  );
  const same = used.find((_, at) => own && own.ino === others[at]?.ino && own.dev === others[at].dev);
  if (same === undefined) return;
  throw misconfigured(
    `cannot use the drop folder ${drop}: it is ${same}, which has files of Wirewatch. Name another folder with --drop.`,
  );
}

/**
 * Creates the folder (0700) if it is missing. It may be a link to a folder: systemd makes one for a dynamic user.
 * @returns whether it was missing
 * @throws Refused `configuration` if this user cannot write to it, or to the files in it
 */
export function ensureFolder(folder: DataFolder): boolean {
  const { root } = folder;
  let first: string | undefined;
  try {
    first = fs.mkdirSync(root, { recursive: true, mode: 0o700 });
    for (let path = resolve(root); ; path = dirname(path)) {
      syncName(path);
      if (first === undefined || path === resolve(first) || path === dirname(path)) break;
    }
  } catch (error) {
    throw unusable(root, error);
  }
  requireUsable(folder);
  refuseLinks(folder);
  return first !== undefined;
}

/** @throws Refused `configuration` if this user cannot write to the folder, or to the files in it */
export function requireUsable(folder: DataFolder): void {
  const { root, detections, access, log, lock, serveLock, stateLock, secret } = folder;
  try {
    fs.accessSync(root, fs.constants.R_OK | fs.constants.W_OK | fs.constants.X_OK);
    for (const path of [detections, access, log, lock, serveLock, stateLock])
      if (fs.existsSync(path)) fs.accessSync(path, fs.constants.R_OK | fs.constants.W_OK);
    if (fs.existsSync(secret)) fs.accessSync(secret, fs.constants.R_OK);
  } catch (error) {
    throw unusable(root, error);
  }
}

function unusable(root: string, error: unknown): Refused {
  refuseFile(root);
  const reason =
    isErrorCode(error, 'EACCES') && !unlessError(true, () => isThere(root))
      ? `it does not exist, and this user has no permission to create it in ${dirname(root)}`
      : reasonOf(error);
  return misconfigured(
    `cannot use the data folder ${root}: ${reason}. Run as the owner of the folder, change its owner to this user (chown -R), or name another folder with --data.`,
  );
}

/** @throws Refused `configuration` if the path is a file */
export function refuseFile(root: string): void {
  if (statsOf(root, fs.statSync)?.isDirectory() === false)
    throw misconfigured(`${root} is a file, not a folder. Name another folder with --data.`);
}

/**
 * Refuses links in the folder: with one, who can write to the folder could make the appliance, or a command of root,
 * write to files elsewhere. The folder itself may be a link.
 * @throws Refused `configuration`
 */
export function refuseLinks({ root, log, ...files }: DataFolder): void {
  const databases = [files.detections, files.access];
  const beside = databases.flatMap((path) => ['-wal', '-shm', '-journal'].map((ending) => path + ending));
  const inLog = unlessError([], () => fs.readdirSync(log)).map((name) => join(log, name));
  const all = [log, ...Object.values(files), ...beside, ...inLog];
  const link = all.find((path) => statsOf(path, fs.lstatSync)?.isSymbolicLink());
  if (link === undefined) return;
  throw misconfigured(
    `${link} is a link. Files in the data folder ${root} must not be links: replace the link with its target. The data folder itself can be a link.`,
  );
}

/** Undefined where there is nothing, or this user cannot find out: whoever opens it reports the error. */
export const statsOf = (path: string, stat: typeof fs.statSync | typeof fs.lstatSync): fs.Stats | undefined =>
  unlessError(undefined, () => stat(path, { throwIfNoEntry: false }));

/** Whether something has this name. @throws the file system's error if that cannot be found out */
export const isThere = (path: string): boolean =>
  unlessCode(undefined, () => fs.lstatSync(path, { throwIfNoEntry: false }), 'ENOTDIR') !== undefined;

/**
 * Renames a complete and durable file, unless a file with the new name exists: of several processes exactly one succeeds
 * (without hard links, the last one replaces the others' file). @returns whether this file has the name
 */
export function appearAs(path: string, draft: string): boolean {
  let isOurs = true;
  try {
    fs.linkSync(draft, path);
  } catch (error) {
    if (isErrorCode(error, 'EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EXDEV')) {
      isOurs = !isThere(path);
      if (isOurs) fs.renameSync(draft, path);
    } else if (isErrorCode(error, 'EEXIST')) isOurs = false;
    else throw error;
  }
  fs.rmSync(draft, { force: true });
  syncFolder(dirname(path));
  return isOurs;
}

/** Creates a small file, whole and durable, unless it exists. @returns whether it did: of several processes, one does */
export function createOnce(path: string, content: string | Buffer, mode = 0o600): boolean {
  const draft = `${path}.${randomUUID()}`;
  try {
    fs.writeFileSync(draft, content, { flag: 'wx', mode, flush: true });
    return appearAs(path, draft);
  } finally {
    fs.rmSync(draft, { force: true });
  }
}

/** What work that takes room for a while leaves to others. */
export const ROOM_LEFT_BYTES = 512 * 1024 * 1024;

/** The free space for this user. */
export function freeBytes(path: string): number {
  const { bavail, bsize } = fs.statfsSync(path);
  return bavail * bsize;
}

/** Opens a file, which only this user may read if it is new. */
export function openFile(path: string, flags: string | number): { readonly fd: number } & Disposable {
  const fd = fs.openSync(path, flags, 0o600);
  return { fd, [Symbol.dispose]: () => fs.closeSync(fd) };
}

/** A full disk may take only the first bytes: then the next call fails. */
export function writeAt(file: number, bytes: Uint8Array, offset: number): void {
  for (let written = 0; written < bytes.length; )
    written += fs.writeSync(file, bytes, written, bytes.length - written, offset + written);
}

/** Writes a small file that gets its name once its content is on the disk. @param draft one for each process that may do so */
export function writeWhole(path: string, content: string | Uint8Array, ownDraft?: string): void {
  const draft = ownDraft ?? join(dirname(path), `.${basename(path)}.tmp`);
  try {
    fs.writeFileSync(draft, content, { mode: 0o600, flush: true });
    fs.renameSync(draft, path);
  } catch (error) {
    // On a full disk, each attempt would leave one.
    unlessError(undefined, () => fs.rmSync(draft, { force: true }));
    throw error;
  }
  syncFolder(dirname(path));
}

/** Makes a file's content durable. Never follows a link, never waits for a pipe. */
export function syncFile(path: string): void {
  using file = openFile(path, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK);
  fs.fsyncSync(file.fd);
}

/**
 * Makes the name of a folder durable: syncing its contents does not. If this user cannot sync its parent, somebody else
 * created the folder, or it is a mount point.
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
  using folder = openFile(path, 'r');
  fs.fsyncSync(folder.fd);
}

export const noInstallation = (root: string): Refused =>
  misconfigured(
    `there is no installation in ${root}. Name its data folder with --data, or start a new installation with: wirewatch account add ID --name NAME`,
  );

/** Removes a file at a stop. What a disk that cannot be written leaves is removed by the next start. */
export const removeAtStop = (path: string) => unlessError(undefined, () => fs.rmSync(path, { force: true }));

/** The next start rebuilds detections.db from its log. */
export function noteDamage({ damage }: Pick<DataFolder, 'damage'>, detail: string): void {
  // The disk may be full. The damage will be found again.
  unlessError(undefined, () => fs.writeFileSync(damage, `${detail}\n`, { mode: 0o600 }));
}
