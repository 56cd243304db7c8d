/** The disks that must not fill, and when one counts as getting full. */
import type { StatsFs } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { placeFolder } from '../copy/place.ts';
import { grouped } from '../counted.ts';

const GIB = 1024 ** 3;
const LITTLE_SHARE = 0.05;
const LITTLE_BYTES = 10 * GIB;
const LEAST_BYTES = GIB / 2;

export interface Disk {
  readonly of: 'data' | 'drop' | 'copy';
  readonly folder: string;
  readonly free_bytes: number;
  readonly bytes: number;
  readonly low: boolean;
}

export type DiskFolders = Readonly<Partial<Record<Disk['of'], string>>>;

export function isGettingFull(freeBytes: number, bytes: number): boolean {
  return freeBytes < LEAST_BYTES || (freeBytes < LITTLE_BYTES && freeBytes < bytes * LITTLE_SHARE);
}

/** The folders whose disks must not fill: that of the copy only if it is a folder. */
export function diskFolders({
  dataFolder,
  ingest,
  copy,
}: {
  readonly dataFolder: string;
  readonly ingest: { readonly drop: string };
  readonly copy: { readonly to: string };
}): DiskFolders {
  const kept = placeFolder(copy.to);
  return { data: dataFolder, drop: ingest.drop, ...(kept !== null && { copy: kept }) };
}

/** What was not answered yet: a network share that hangs would otherwise block one of Node's four threads each time. */
const unanswered = new Map<string, Promise<StatsFs | null>>();

function spaceOf(folder: string, ask: (folder: string) => Promise<StatsFs>): Promise<StatsFs | null> {
  const asked = ask(folder)
    .catch(() => null)
    .finally(() => unanswered.delete(folder));
  unanswered.set(folder, asked);
  return asked;
}

/** The space on the disks of folders, without those that cannot be read, which have alerts of their own. */
export async function disksOf(
  folders: DiskFolders,
  ask: (folder: string) => Promise<StatsFs> = statfs,
): Promise<Disk[]> {
  const kinds = ['data', 'drop', 'copy'] as const;
  const disks = kinds.map(async (kind) => {
    const folder = folders[kind];
    const disk = folder === undefined ? null : await (unanswered.get(folder) ?? spaceOf(folder, ask));
    if (folder === undefined || disk === null) return [];
    const [free_bytes, bytes] = [disk.bavail * disk.bsize, disk.blocks * disk.bsize];
    return [{ of: kind, folder, free_bytes, bytes, low: isGettingFull(free_bytes, bytes) }];
  });
  return (await Promise.all(disks)).flat();
}

/** The free space of the first disk that is getting full, in words; null if none is. */
export function fillingDisk(disks: readonly Disk[]): string | null {
  const full = disks.find(({ low }) => low);
  return full === undefined
    ? null
    : `${full.folder}: only ${grouped(Math.floor(full.free_bytes / 1024 ** 2))} MiB free`;
}
