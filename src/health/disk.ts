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

/** The space on the disks of folders, without those that cannot be read, which have alerts of their own. */
export async function disksOf(folders: readonly string[]) {
  const disks = folders.map(async (folder) => {
    const disk = await statfs(folder).catch(() => null);
    if (disk === null) return [];
    return [{ folder, free_bytes: disk.bavail * disk.bsize, bytes: disk.blocks * disk.bsize }];
  });
  return (await Promise.all(disks)).flat();
}

/** @returns the free space of the first folder whose disk is getting full, in words; null if none is */
export async function fillingDisk(folders: readonly string[]): Promise<string | null> {
  const full = (await disksOf(folders)).find(({ free_bytes, bytes }) => isGettingFull(free_bytes, bytes));
  return full === undefined
    ? null
    : `${full.folder}: only ${grouped(Math.floor(full.free_bytes / 1024 ** 2))} MiB free`;
}
