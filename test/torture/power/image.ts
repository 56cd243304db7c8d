/** Writes a disk as a power cut may leave it into a folder. */
import { linkSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Prng } from '../../../src/tools/generate/prng.ts';
import type { Truncated, Written } from '../io/record.ts';
import { type Disk, DiskFile, type DiskFolder, type Node, setName, withEarlier } from './disk.ts';

/** Which part of the unsynced data survives: of the files' content, and of their names. */
export const SURVIVALS = ['nothing', 'everything', 'the beginning', 'some', 'torn'] as const;
export type Survival = (typeof SURVIVALS)[number];

export interface Survivors {
  readonly content: Survival;
  readonly names: Exclude<Survival, 'torn'>;
}

const SECTORS = [512, 4096] as const;
/** The probability that a change survives; picked for each file, and once for all names. */
const PROBABILITIES = [0.05, 0.3, 0.5, 0.7, 0.95] as const;

export function pickSurvivors(prng: Prng): Survivors {
  return {
    content: prng.pick(SURVIVALS),
    names: prng.pick(['nothing', 'everything', 'the beginning', 'some']),
  };
}

/** Replaces a folder's content by a disk image. */
export function writeImage(disk: Disk, { content, names }: Survivors, prng: Prng, root: string): void {
  rmSync(root, { recursive: true, force: true });
  mkdirSync(root);
  const folders = survivingFolders(disk, names, prng);
  const written = new Map<DiskFile, string>();
  const write = (folder: DiskFolder, path: string) => {
    for (const [name, node] of folders.get(folder) ?? folder.durable) {
      const below = join(path, name);
      if (!(node instanceof DiskFile)) {
        mkdirSync(below, { mode: 0o700 });
        write(node, below);
        continue;
      }
      const same = written.get(node);
      if (same !== undefined) {
        linkSync(same, below);
        continue;
      }
      written.set(node, below);
      writeFileSync(below, survivingContent(node, content, prng), { mode: 0o600 });
    }
  };
  write(disk.top, root);
}

function survivingFolders(
  disk: Disk,
  names: Survivors['names'],
  prng: Prng,
): Map<DiskFolder, Map<string, Node>> {
  const { pending } = disk;
  const probability = prng.pick(PROBABILITIES);
  const end = prng.below(pending.length + 1);
  const kept = withEarlier(pending, (_, index) => {
    if (names === 'nothing') return false;
    if (names === 'everything') return true;
    return names === 'the beginning' ? index < end : prng.chance(probability);
  });
  const folders = new Map<DiskFolder, Map<string, Node>>();
  for (const change of pending) {
    if (!kept.has(change)) continue;
    for (const { folder, name, node } of change.entries) {
      const entries = folders.get(folder) ?? new Map(folder.durable);
      setName(entries, name, node);
      folders.set(folder, entries);
    }
  }
  return folders;
}

function survivingContent(file: DiskFile, left: Survival, prng: Prng): Buffer {
  const { durable, pending } = file;
  if (pending.length === 0 || left === 'nothing') return durable;
  const end = prng.below(pending.length + 1);
  const probability = prng.pick(PROBABILITIES);
  const sector = prng.pick(SECTORS);
  // A file's new length may be durable before its content.
  const isLengthThere = prng.chance(0.2);
  const kept = pending.flatMap((change, index): (Written | Truncated)[] => {
    if (left === 'everything') return [change];
    if (left === 'the beginning') return index < end ? [change] : [];
    if (left === 'some' || 'size' in change) return prng.chance(probability) ? [change] : [];
    const pieces = torn(change, sector).filter(() => prng.chance(probability));
    const length = change.at + change.data.length;
    return isLengthThere && length > durable.length
      ? [{ at: length, data: Buffer.alloc(0) }, ...pieces]
      : pieces;
  });
  return file.with(kept);
}

/** Splits a write into sectors, which a disk writes atomically. */
function torn({ at, data }: Written, sector: number): Written[] {
  const pieces: Written[] = [];
  for (let from = 0; from < data.length; ) {
    const to = Math.min(data.length, from + sector - ((at + from) % sector));
    pieces.push({ at: at + from, data: data.subarray(from, to) });
    from = to;
  }
  return pieces;
}
