/**
 * Updates a copy of a log: appends to segments, adds new ones, and copies damaged ones again. Every segment that is
 * written to is read again and checked: its frames, its entries, and that it follows the previous one.
 *
 * The copy keeps its earlier contents at any moment: an append ends with a torn entry at worst, which a reader ignores,
 * and any other segment appears by a rename.
 */
import {
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  readSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  utimesSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Commit, Mark } from '../log/format.ts';
import { requireBeginning } from '../log/log-reader.ts';
import { EntryReader, findEntry, listSegments, type Segment, tidyLog } from '../log/segment.ts';
import { sizeOf } from '../store/database.ts';
import { openFile, syncFolder, writeAt } from '../store/folder.ts';
import { isLogError, LogDamage } from '../store/log-errors.ts';

export interface LogCopyOptions {
  readonly from: string;
  readonly to: string;
  /** The last entry to copy; null: there is none. */
  readonly end: Mark | null;
  readonly onBytes: (bytes: number) => void;
}

const READ_BYTES = 1024 * 1024;
/** Of a copy that was made to have the time of its original; some file systems keep no finer ones. */
const SAME_TIME_MS = 2;

/** @throws LogDamage if the log is damaged; then the copy has what comes before */
export function copyLog(options: LogCopyOptions): void {
  const { from, to, end } = options;
  if (end === null) return;
  // Not its parents: where the disk of a backup is gone, they would be made on another one.
  if (!existsSync(to)) mkdirSync(to, { mode: 0o700 });
  const segments = listSegments(from).filter(({ firstEntry }) => firstEntry <= end.entry);
  const copies = segments.map(({ path, firstEntry }) => ({ path: join(to, basename(path)), firstEntry }));
  for (const [index, copy] of copies.entries()) {
    const [segment = copy, next] = segments.slice(index);
    const stats = statSync(segment.path);
    const isOpen = next === undefined;
    if (!isOpen && isSameFile(copy.path, stats)) continue;
    const before = lastBefore(copies[index - 1]);
    const bytes = isOpen ? endOf(segment, end) : stats.size;
    const last = bringUpToDate(options, segment, copy, bytes, (written) => {
      const found = checked(written, before);
      if (!isOpen) requireJoin(next, found);
      return found;
    });
    if (!isOpen) utimesSync(copy.path, stats.atime, stats.mtime);
    else if (last?.id !== end.id) throw new LogDamage(`${from} does not contain entry ${end.entry}`);
  }
  syncFolder(dirname(to));
  // What a snapshot has replaced.
  tidyLog(to);
}

/** The last entry of a copy, which the next segment must follow; undefined if the copy is missing or damaged. */
function lastBefore(copy: Segment | undefined): Commit | null | undefined {
  if (copy === undefined) return null;
  try {
    return checked(copy, undefined);
  } catch (error) {
    if (!isLogError(error)) throw error;
    return undefined;
  }
}

/**
 * Appends to the copy of a segment, or makes it anew beside its place; synced. What is not good is cut off again.
 * @param bytes to copy of the segment; @param check reads what was written; @returns its last entry
 */
function bringUpToDate(
  { to, onBytes }: LogCopyOptions,
  segment: Segment,
  copy: Segment,
  bytes: number,
  check: (written: Segment) => Commit | null,
): Commit | null {
  const own = sizeOf(copy.path);
  const begin = own <= bytes && beginsAlike(copy.path, segment.path, own) ? own : 0;
  const written = begin > 0 ? copy : { ...copy, path: `${copy.path}.tmp` };
  try {
    using source = openFile(segment.path, 'r');
    using target = openFile(written.path, begin > 0 ? 'r+' : 'w');
    try {
      const buffer = Buffer.allocUnsafe(READ_BYTES);
      for (let at = begin; at < bytes; ) {
        const read = readSync(source.fd, buffer, 0, Math.min(buffer.length, bytes - at), at);
        if (read === 0) throw new LogDamage(`${segment.path} has become shorter`);
        writeAt(target.fd, buffer.subarray(0, read), at);
        at += read;
        onBytes(read);
      }
      if (begin < bytes) fsyncSync(target.fd);
      const last = check(written);
      if (written !== copy) {
        renameSync(written.path, copy.path);
        syncFolder(to);
      }
      return last;
    } catch (error) {
      ftruncateSync(target.fd, begin);
      throw error;
    }
  } finally {
    if (written !== copy) rmSync(written.path, { force: true });
  }
}

/**
 * Reads a segment to its end.
 * @param before null: it is the first segment; undefined: not known
 * @throws LogDamage where it is not whole, or does not join the entry before
 */
function checked(segment: Segment, before: Commit | null | undefined): Commit | null {
  using reader = new EntryReader(segment);
  let last = before;
  for (let part = reader.next(last ?? undefined); part !== null; part = reader.next(last ?? undefined)) {
    if (part.kind !== 'commit') continue;
    if (last === null) requireBeginning(part.commit);
    last = part.commit;
  }
  if (!reader.isWhole) throw new LogDamage(`${segment.path} is damaged at byte ${reader.end}`);
  return last ?? null;
}

/** @throws LogDamage where the first entry of a segment does not follow on one */
function requireJoin(segment: Segment, before: Commit | null): void {
  using reader = new EntryReader(segment);
  for (let part = reader.next(before); part !== null && part.kind !== 'commit'; part = reader.next(before));
}

/** Where an entry ends in its segment. */
function endOf(segment: Segment, { entry, id }: Mark): number {
  const { commit, end } = findEntry(segment, entry);
  if (commit?.id === id) return end;
  throw new LogDamage(`${segment.path} does not contain entry ${entry}, ${id}`);
}

function isSameFile(copy: string, original: Stats): boolean {
  const own = statSync(copy, { throwIfNoEntry: false });
  return own?.size === original.size && Math.abs(own.mtimeMs - original.mtimeMs) < SAME_TIME_MS;
}

/** Whether two files begin with the same bytes. */
function beginsAlike(path: string, other: string, bytes: number): boolean {
  if (bytes === 0) return false;
  using one = openFile(path, 'r');
  using two = openFile(other, 'r');
  if (fstatSync(two.fd).size < bytes) return false;
  const [own, theirs] = [Buffer.allocUnsafe(READ_BYTES), Buffer.allocUnsafe(READ_BYTES)];
  for (let at = 0; at < bytes; ) {
    const length = Math.min(READ_BYTES, bytes - at);
    const read = readSync(one.fd, own, 0, length, at);
    if (read === 0 || readSync(two.fd, theirs, 0, read, at) !== read) return false;
    if (own.compare(theirs, 0, read, 0, read) !== 0) return false;
    at += read;
  }
  return true;
}
