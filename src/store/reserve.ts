/**
 * A little room on the disk of the data folder, kept for what must be possible when there is no other: revoking a key,
 * suspending an account. Whoever needs it gives the file up; it is made again once there is room.
 */
import { randomBytes } from 'node:crypto';
import { rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDiskFull } from './database-errors.ts';
import { type DataFolder, isThere } from './folder.ts';

/** More than a transaction of access.db takes, with its log. */
const RESERVE_BYTES = 2 * 1024 * 1024;
/** Less is left to what the appliance itself has to write. */
const FREE_TIMES = 4;

function reservePath({ root }: DataFolder): string {
  return join(root, 'reserve');
}

/** Makes the reserve where it is not there and there is room; what else keeps it from being made has its own alert. */
export function keepReserve(folder: DataFolder): void {
  const path = reservePath(folder);
  if (isThere(path)) return;
  try {
    const { bavail, bsize } = statfsSync(folder.root);
    if (bavail * bsize < FREE_TIMES * RESERVE_BYTES) return;
    // Random, for file systems that would store zeros in no room at all.
    writeFileSync(path, randomBytes(RESERVE_BYTES), { mode: 0o600, flag: 'wx' });
  } catch {
    rmSync(path, { force: true });
  }
}

/** Does what must be possible on a full disk: gives the reserve up where it fails for want of room, and tries again. */
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
