/** The disks that must not fill, and when one counts as getting full. */
import type { StatsFs } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { placeFolder } from '../copy/place.ts';
import { grouped } from '../counted.ts';
import { HangingCalls } from '../hanging-calls.ts';
import { SECOND_MS } from '../time.ts';

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

export const isGettingFull = (freeBytes: number, bytes: number): boolean =>
  freeBytes < LEAST_BYTES || (freeBytes < LITTLE_BYTES && freeBytes < bytes * LITTLE_SHARE);

type Configured = Readonly<{ dataFolder: string; ingest: { drop: string }; copy: { to: string } }>;

/** The folders whose disks must not fill: that of the copy only if it is a folder. */
export function diskFolders({ dataFolder, ingest, copy }: Configured): DiskFolders {
  const kept = placeFolder(copy.to);
  return { data: dataFolder, drop: ingest.drop, ...(kept !== null && { copy: kept }) };
}

/** How long a disk may take to answer: a network share that hangs never does. */
const ANSWER_MS = SECOND_MS;

/** What was not answered yet: it would otherwise block another one of Node's threads for files each time. */
const unanswered = new HangingCalls<StatsFs | null>();

/** @returns null if it cannot be read; undefined without an answer */
function spaceOf(folder: string): Promise<StatsFs | null | undefined> {
  let newest = unanswered.newest(folder);
  if (newest === undefined || unanswered.mayTryAgain(folder)) {
    newest = statfs(folder).catch(() => null);
    unanswered.add(folder, newest);
  }
  return Promise.race([newest, sleep(ANSWER_MS, undefined, { ref: false })]);
}

/** Whether a folder can be read now without waiting for ever: one that is not there can. */
export const isAnswering = async (folder: string): Promise<boolean> => (await spaceOf(folder)) !== undefined;

/** Null: it cannot be read, for which there are other alerts, or no folder is given; undefined: it has not answered yet. */
export type AskedDisk = Disk | null | undefined;

/** The space on the disks of folders, always in the same order. */
export function askDisks(folders: DiskFolders): Promise<AskedDisk[]> {
  const kinds = ['data', 'drop', 'copy'] as const;
  const disks = kinds.map(async (kind) => {
    const folder = folders[kind];
    if (folder === undefined) return null;
    const disk = await spaceOf(folder);
    if (disk == null) return disk;
    const [free_bytes, bytes] = [disk.bavail * disk.bsize, disk.blocks * disk.bsize];
    return { of: kind, folder, free_bytes, bytes, low: isGettingFull(free_bytes, bytes) };
  });
  return Promise.all(disks);
}

/** Those that can be read and have answered. */
export const disksOf = async (folders: DiskFolders): Promise<Disk[]> =>
  (await askDisks(folders)).filter((disk) => disk != null);

/** The free space of the first disk that is getting full, in words; null if none is. */
export function fillingDisk(disks: readonly AskedDisk[]): string | null {
  const full = disks.find((disk) => disk?.low);
  return full == null
    ? null
    : `${full.folder}: only ${grouped(Math.floor(full.free_bytes / 1024 ** 2))} MiB free`;
}
