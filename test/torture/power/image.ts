/** What a power cut may leave of a disk, written out as a folder. */
import { linkSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Prng } from '../../../src/generate/prng.ts';
import type { Truncated, Written } from '../io/record.ts';
import { type Disk, DiskFile, type DiskFolder, type Node, setName, withEarlier } from './disk.ts';

/** How much of what was not synced is there: of the files' content, and of their names. */
export const LEFTS = ['nothing', 'everything', 'the beginning', 'some', 'torn'] as const;
export type Left = (typeof LEFTS)[number];

export interface Leaving {
  readonly content: Left;
  readonly names: Exclude<Left, 'torn'>;
}

const SECTORS = [512, 4096] as const;
/** Of a file or of all names together, how likely each change is to be there. */
const LIKELY = [0.05, 0.3, 0.5, 0.7, 0.95] as const;

export function pickLeaving(prng: Prng): Leaving {
  return { content: prng.pick(LEFTS), names: prng.pick(['nothing', 'everything', 'the beginning', 'some']) };
}

/** Writes what is left into a folder, in place of what is in it. */
export function writeImage(disk: Disk, { content, names }: Leaving, prng: Prng, root: string): void {
  rmSync(root, { recursive: true, force: true });
  mkdirSync(root);
  const folders = foldersLeft(disk, names, prng);
  const written = new Map<DiskFile, { path: string; modifiedNs: bigint }>();
  const notes: (() => void)[] = [];
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
        linkSync(same.path, below);
        continue;
      }
      const left = contentLeft(node, content, prng);
      written.set(node, { path: below, modifiedNs: left.modifiedNs });
      writeFileSync(below, left.content, { mode: 0o600 });
      if (name.includes('-identity')) notes.push(() => renumber(below, left.content, written));
    }
  };
  write(disk.top, root);
  for (const each of notes) each();
}

function foldersLeft(disk: Disk, names: Leaving['names'], prng: Prng): Map<DiskFolder, Map<string, Node>> {
  const { pending } = disk;
  const likely = prng.pick(LIKELY);
  const end = prng.below(pending.length + 1);
  const kept = withEarlier(pending, (_, index) => {
    if (names === 'nothing') return false;
    if (names === 'everything') return true;
    return names === 'the beginning' ? index < end : prng.chance(likely);
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

function contentLeft(file: DiskFile, left: Left, prng: Prng): { content: Buffer; modifiedNs: bigint } {
  const { durable, pending } = file;
  if (pending.length === 0 || left === 'nothing') return { content: durable, modifiedNs: file.modifiedNs };
  const end = prng.below(pending.length + 1);
  const likely = prng.pick(LIKELY);
  const sector = prng.pick(SECTORS);
  // The length may be there before the content is.
  const isLengthThere = prng.chance(0.2);
  const kept = pending.flatMap((change, index): (Written | Truncated)[] => {
    if (left === 'everything') return [change];
    if (left === 'the beginning') return index < end ? [change] : [];
    if (left === 'some' || 'size' in change) return prng.chance(likely) ? [change] : [];
    const pieces = torn(change, sector).filter(() => prng.chance(likely));
    const { modifiedNs } = change;
    const length = change.at + change.data.length;
    return isLengthThere && length > durable.length
      ? [{ at: length, data: Buffer.alloc(0), modifiedNs }, ...pieces]
      : pieces;
  });
  // When it was changed may be written down without the change, or not with it.
  const times = [file, ...pending].map(({ modifiedNs }) => modifiedNs);
  const isTimeRight = prng.chance(0.8);
  const modifiedNs = isTimeRight ? (kept.at(-1)?.modifiedNs ?? file.modifiedNs) : prng.pick(times);
  return { content: file.with(kept), modifiedNs };
}

/** A write in pieces that a disk writes whole. */
function torn({ at, data, modifiedNs }: Written, sector: number): Written[] {
  const pieces: Written[] = [];
  for (let from = 0; from < data.length; ) {
    const to = Math.min(data.length, from + sector - ((at + from) % sector));
    pieces.push({ at: at + from, data: data.subarray(from, to), modifiedNs });
    from = to;
  }
  return pieces;
}

/**
 * A note of which file a database is names its inode and time (src/store/file-identity.ts), which a power cut leaves as
 * they are; in an image they are others.
 */
function renumber(
  path: string,
  content: Buffer,
  written: ReadonlyMap<DiskFile, { path: string; modifiedNs: bigint }>,
): void {
  const noted = parse(content);
  if (noted === null) return;
  for (const [file, { path: image, modifiedNs }] of written) {
    if (`${file.inode}` !== noted.inode || image.includes('-identity')) continue;
    const { dev, ino, mtimeNs } = statSync(image, { bigint: true });
    const modified_ns = noted.modified_ns === `${modifiedNs}` ? `${mtimeNs}` : noted.modified_ns;
    const now = { ...noted, device: `${dev}`, inode: `${ino}`, modified_ns };
    writeFileSync(path, `${JSON.stringify(now)}\n`);
    return;
  }
}

function parse(content: Buffer): Record<string, unknown> | null {
  try {
    const found: unknown = JSON.parse(content.toString());
    return typeof found === 'object' && found !== null ? { ...found } : null;
  } catch {
    return null;
  }
}
