/** Room on a disk, for what is to be written there whole. */
import { statfsSync } from 'node:fs';

/** What this user can still write there. */
export function freeBytes(folder: string): number {
  const disk = statfsSync(folder);
  return disk.bavail * disk.bsize;
}

/** For people: whole MiB, rounded up. */
export function inMib(bytes: number): string {
  return Math.ceil(bytes / 1024 ** 2).toLocaleString('en-US');
}
