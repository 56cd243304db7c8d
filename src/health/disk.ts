/** When a disk counts as getting full. */
import { statfs } from 'node:fs/promises';
import { grouped } from '../counted.ts';

const GIB = 1024 ** 3;
const LITTLE_SHARE = 0.05;
const LITTLE_BYTES = 10 * GIB;
const LEAST_BYTES = GIB / 2;

/** @param freeBytes what this user can still write */
export function isGettingFull(freeBytes: number, allBytes: number): boolean {
  return freeBytes < LEAST_BYTES || (freeBytes < LITTLE_BYTES && freeBytes < allBytes * LITTLE_SHARE);
}

/** @returns the free space of the first folder whose disk is getting full, in words; null if none is */
export async function fillingDisk(folders: readonly string[]): Promise<string | null> {
  for (const folder of folders) {
    // A folder that cannot be read has an alert of its own.
    const disk = await statfs(folder).catch(() => null);
    if (disk === null) continue;
    const freeBytes = disk.bavail * disk.bsize;
    if (isGettingFull(freeBytes, disk.blocks * disk.bsize)) {
      return `${folder}: only ${grouped(Math.floor(freeBytes / 1024 ** 2))} MiB free`;
    }
  }
  return null;
}
