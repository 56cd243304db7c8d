/**
 * A file that reserves disk space for what must work on a full disk: revoking a key, suspending an account. Whoever
 * needs the space deletes the file; it is created again once there is room.
 */
import { randomBytes } from 'node:crypto';
import { rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDiskFull } from './database-errors.ts';
import { type DataFolder, isThere } from './folder.ts';

/** More than a transaction of access.db needs, with its log. */
const RESERVE_BYTES = 2 * 1024 * 1024;
/** With less free space, it is left to the appliance. */
const FREE_TIMES = 4;

function reservePath({ root }: DataFolder): string {
  return join(root, 'reserve');
}

/** Creates the reserve if it is missing and there is room. What prevents that has an alert of its own. */
export function keepReserve(folder: DataFolder): void {
  const path = reservePath(folder);
  try {
    if (isThere(path)) return;
    const { bavail, bsize } = statfsSync(folder.root);
    if (bavail * bsize >= FREE_TIMES * RESERVE_BYTES) createReserve(path);
  } catch {
    // The next check of the disks tries again.
  }
}

function createReserve(path: string): void {
  try {
    // Random, for file systems that would store zeros in no room at all.
    writeFileSync(path, randomBytes(RESERVE_BYTES), { mode: 0o600, flag: 'wx' });
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  }
}

/** Does work that must be possible on a full disk: if it fails for lack of space, deletes the reserve and retries. */
export function withReserve<Result>(folder: DataFolder, work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    const cause = error instanceof Error ? error.cause : undefined;
    if (!(isDiskFull(error) || isDiskFull(cause)) || !isThere(reservePath(folder))) throw error;
    rmSync(reservePath(folder));
    return work();
  }
}
