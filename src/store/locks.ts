/**
 * Who may do what in a data folder at the same time. Each lock is SQLite's own on an empty file: it ends with the
 * process that holds it, however that ends.
 *
 * | file | held by |
 * |---|---|
 * | `lock` | the one who ingests or restores: an appliance, or a command that does the work where none runs |
 * | `lock-serve` | an appliance, from before it has the first: a command that ingests gives way to it |
 * | `lock-state` | commands together, while they work on what is there; a restore alone, which puts something else there |
 */
import { closeSync, existsSync, openSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { isErrorCode, Refused } from '../refused.ts';
import { openDatabase } from './database.ts';
import { isForbidden } from './database-errors.ts';
import { type DataFolder, refuseFile, refuseLinks } from './folder.ts';

/** Whoever looks whether a lock is held has it for a moment itself. */
const LOOK_MS = 500;
/** How long a command may take to leave what it is at. */
const GIVE_WAY_MS = 30_000;
/** How long a command waits for a restore, and a restore for commands. */
const RESTORE_MS = 5_000;
const COMMANDS_MS = 5_000;

export type Release = () => void;

/** Takes a lock for one process alone. @returns null when another has it, or shares it */
export function takeLock(path: string, waitMs = LOOK_MS): Release | null {
  return hold(path, EXCLUSIVE, waitMs);
}

/**
 * Takes what an appliance holds while it runs. A command that ingests is waited for: it sees the second lock, and
 * gives way.
 *
 * @param onWaiting told once, where there is such a command
 * @throws Refused `failed` when an appliance runs there, or a command is at work that does not give way
 */
export async function takeServeLocks(
  { root, lock, serveLock }: DataFolder,
  onWaiting: () => void,
): Promise<Release> {
  const releaseServe = takeLock(serveLock);
  if (releaseServe === null) {
    throw new Refused(
      'failed',
      `another process is already using the data folder ${root}. Stop it first, or name another folder with --data.`,
    );
  }
  try {
    for (let untilMs = performance.now() + GIVE_WAY_MS, isTold = false; ; isTold = true) {
      const releaseLock = takeLock(lock);
      if (releaseLock !== null) {
        return () => {
          releaseLock();
          releaseServe();
        };
      }
      if (performance.now() > untilMs) break;
      if (!isTold) onWaiting();
      await nextTurn();
    }
    throw new Refused(
      'failed',
      `another command, such as a restore, is using the data folder ${root}. Start again when it has finished.`,
    );
  } catch (error) {
    releaseServe();
    throw error;
  }
}

/**
 * What makes or replaces a database with nobody at work on it begins with this.
 *
 * @throws Refused `failed` while an appliance runs, or a command is at work
 */
export function takeStopped(folder: DataFolder): Release {
  const releaseLock = takeLock(folder.lock);
  if (releaseLock === null) {
    const who = isLocked(folder.serveLock) ? 'Wirewatch' : 'an ingest command';
    throw new Refused(
      'failed',
      `${who} is using the data folder ${folder.root}. Stop it first. Nothing was changed.`,
    );
  }
  try {
    const releaseState = takeStateAlone(folder);
    return () => {
      releaseState();
      releaseLock();
    };
  } catch (error) {
    releaseLock();
    throw error;
  }
}

/**
 * What puts something else in the place of what is in the data folder begins with this.
 *
 * @throws Refused `failed` while a command works on what is there
 */
export function takeStateAlone({ root, stateLock }: DataFolder): Release {
  const release = takeLock(stateLock, COMMANDS_MS);
  if (release !== null) return release;
  throw new Refused(
    'failed',
    `another command, such as a backup, is using the data folder ${root}. Try again when it has finished. Nothing was changed.`,
  );
}

/** Whether a process has a lock for itself alone. */
export function isLocked(path: string): boolean {
  if (!existsSync(path)) return false;
  const release = hold(path, SHARED, 0, false);
  release?.();
  return release === null;
}

/** Makes the file that {@link keepInPlace} shares, for those who may not make it themselves. */
export function makeStateLock({ stateLock }: DataFolder): void {
  closeSync(openSync(stateLock, 'a', 0o600));
}

/**
 * Keeps a restore from putting something else in the place of what is in the data folder.
 *
 * @param create whether the caller may make the lock's file: it has to belong to the folder's owner
 * @throws Refused `failed` while one is under way; `configuration` where a link is in the folder
 */
export function keepInPlace(folder: DataFolder, create: boolean): Release {
  const { root, stateLock } = folder;
  refuseFile(root);
  refuseLinks(folder);
  if (!existsSync(create ? root : stateLock)) return () => {};
  let release: Release | null;
  try {
    release = hold(stateLock, SHARED, RESTORE_MS, create);
  } catch (error) {
    // Who may not write here is told so by what it does next.
    if (isForbidden(error)) return () => {};
    throw error;
  }
  if (release === null)
    throw new Refused('failed', `a restore into ${root} is running. Try again when it has finished.`);
  return release;
}

/** With a rollback journal in a file, an appliance could not start on a full disk. */
const EXCLUSIVE = 'PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE';
const SHARED = 'BEGIN; SELECT 1 FROM sqlite_schema';

/** @returns null if another process has the lock, or shares one that is wanted alone, for all of the wait */
function hold(
  path: string,
  lock: typeof EXCLUSIVE | typeof SHARED,
  waitMs: number,
  canWrite = true,
): Release | null {
  const db = openDatabase(path, canWrite ? 'plain' : 'plain, read-only');
  try {
    db.exec(`PRAGMA busy_timeout = ${waitMs}; ${lock}`);
  } catch (error) {
    db.close();
    if (isErrorCode(error, 'SQLITE_BUSY')) return null;
    throw error;
  }
  return () => db.close();
}
