/**
 * The locks of a data folder. Each is a lock of SQLite on an empty file: it ends with its process, however that ends.
 *
 * | file | held by |
 * |---|---|
 * | `lock` | the process that ingests or restores: an appliance, or a command if none runs |
 * | `lock-serve` | an appliance, which takes it first: a command that begins meanwhile asks that one |
 * | `lock-state` | commands, shared, while they use the files; a restore, alone, because it replaces them |
 */
import { existsSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { failed, isErrorCode } from '../refused.ts';
import { openDatabase } from './database.ts';
import { isForbidden } from './database-errors.ts';
import { type DataFolder, refuseFile, refuseLinks } from './folder.ts';

/** A process that checks a lock holds it for a moment. */
const CHECK_MS = 500;
/** How long a start waits for a command. */
const START_MS = 30_000;
/** How long a command waits for a restore, and a restore for commands. */
const OTHERS_MS = 5_000;

export type Release = () => void;

/**
 * Takes the locks of an appliance. It waits for a command.
 * @param onWaiting called once, if there is one
 * @throws Refused `failed` if another appliance runs there, or a command does not end in time
 */
export async function takeServeLocks({ root, lock, serveLock }: DataFolder, onWaiting: () => void) {
  const releaseServe = takeLock(serveLock);
  if (releaseServe === null)
    throw failed(
      `another process is already using the data folder ${root}. Stop it first, or name another folder with --data.`,
    );
  using held = new DisposableStack();
  held.defer(releaseServe);
  const untilMs = performance.now() + START_MS;
  for (let isTold = false; performance.now() <= untilMs; isTold = true) {
    const releaseLock = takeLock(lock);
    if (releaseLock !== null) {
      held.defer(releaseLock);
      const both = held.move();
      return () => both.dispose();
    }
    if (!isTold) onWaiting();
    await nextTurn();
  }
  throw failed(
    `another command, such as a restore, is using the data folder ${root}. Start again when it has finished.`,
  );
}

/** Takes the locks to create or replace a database. @throws Refused `failed` while an appliance or a command uses the folder */
export function takeStopped(folder: DataFolder): Release {
  const releaseLock = takeLock(folder.lock);
  if (releaseLock === null) {
    const who = isLocked(folder.serveLock) ? 'Wirewatch' : 'an ingest command';
    throw failed(`${who} is using the data folder ${folder.root}. Stop it first. Nothing was changed.`);
  }
  using held = new DisposableStack();
  held.defer(releaseLock);
  held.defer(takeStateAlone(folder));
  const both = held.move();
  return () => both.dispose();
}

/** Takes the lock to replace files of the data folder. @throws Refused `failed` while a command uses them */
export function takeStateAlone({ root, stateLock }: DataFolder): Release {
  const release = takeLock(stateLock, OTHERS_MS);
  if (release !== null) return release;
  throw failed(
    `another command, such as a backup, is using the data folder ${root}. Try again when it has finished. Nothing was changed.`,
  );
}

export function isLocked(path: string): boolean {
  if (!existsSync(path)) return false;
  const release = takeLock(path, 0, SHARED);
  release?.();
  return release === null;
}

/** Keeps a restore from replacing files. @throws Refused `failed` while one is running; `configuration` if a link is there */
export function keepInPlace(folder: DataFolder): Release {
  const { root, stateLock } = folder;
  refuseFile(root);
  refuseLinks(folder);
  if (!existsSync(root)) return () => {};
  try {
    const release = takeLock(stateLock, OTHERS_MS, SHARED);
    if (release !== null) return release;
  } catch (error) {
    // What the caller does next reports the missing permission.
    if (isForbidden(error)) return () => {};
    throw error;
  }
  throw failed(`a restore into ${root} is running. Try again when it has finished.`);
}

/** With a rollback journal in a file, an appliance could not start on a full disk. */
const EXCLUSIVE = 'PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE';
const SHARED = 'BEGIN; SELECT 1 FROM sqlite_schema';

/** @returns null if another process has the lock, or shares one that is wanted alone, for all of the wait */
export function takeLock(path: string, waitMs = CHECK_MS, lock = EXCLUSIVE): Release | null {
  const db = openDatabase(path, 'plain');
  try {
    db.exec(`PRAGMA busy_timeout = ${waitMs}; ${lock}`);
  } catch (error) {
    db.close();
    if (isErrorCode(error, 'SQLITE_BUSY')) return null;
    throw error;
  }
  return () => db.close();
}
