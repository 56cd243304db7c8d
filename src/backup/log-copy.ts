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
import type { Commit, Mark } from '../history/format.ts';
import { isLogError, LogDamage } from '../history/log-error.ts';
import { requireBeginning } from '../history/log-reader.ts';
import { EntryReader, findEntry, listSegments, type Segment, tidyLog } from '../history/segment.ts';
import { openFile, syncFolder, writeAt } from '../store/folder.ts';

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
  const copyOf = ({ path, firstEntry }: Segment) => ({ path: join(to, basename(path)), firstEntry });
  for (const [index, segment] of segments.entries()) {
    const copy = copyOf(segment);
    const stats = statSync(segment.path);
    const next = segments[index + 1];
    const isOpen = next === undefined;
    if (!isOpen && isSameFile(copy.path, stats)) continue;
    const previous = segments[index - 1];
    const before = lastBefore(previous === undefined ? undefined : copyOf(previous));
    const bytes = isOpen ? endOf(segment, end) : stats.size;
    const commit = bringUpToDate(options, { segment, copy, bytes, before, next });
    if (!isOpen) utimesSync(copy.path, stats.atime, stats.mtime);
    else if (commit?.id !== end.id) throw new LogDamage(`${from} does not contain entry ${end.entry}`);
  }
  syncFolder(dirname(to));
  // What a snapshot has replaced.
  tidyLog(to);
}

/** The last entry of a copy, which the next segment must follow; undefined if the copy is missing or damaged. */
function lastBefore(copy: Segment | undefined): Commit | null | undefined {
  if (copy === undefined) return null;
  try {
    return lastOf(copy);
  } catch (error) {
    if (!isLogError(error)) throw error;
    return undefined;
  }
}

interface CopyStep {
  readonly segment: Segment;
  readonly copy: Segment;
  readonly bytes: number;
  /** The entry before the segment's first; null: it is the first segment; undefined: not known. */
  readonly before: Commit | null | undefined;
  /** The segment that follows, which must join it; undefined: it is the last. */
  readonly next: Segment | undefined;
}

/** @returns its own last entry */
function bringUpToDate(options: LogCopyOptions, step: CopyStep): Commit | null {
  const { onBytes } = options;
  const { segment, copy, bytes, before, next } = step;
  const checkOf = (written: Segment) => () => {
    const end = checked(written, before);
    if (next !== undefined) requireJoin(next, end);
    return end;
  };
  const own = statSync(copy.path, { throwIfNoEntry: false })?.size ?? 0;
  if (own > 0 && own <= bytes && beginsAlike(copy.path, segment.path, own)) {
    if (own === bytes) return lastOf(copy);
    return append({
      from: segment.path,
      to: copy.path,
      begin: own,
      end: bytes,
      check: checkOf(copy),
      onBytes,
    });
  }
  const draft = { path: `${copy.path}.tmp`, firstEntry: copy.firstEntry };
  rmSync(draft.path, { force: true });
  try {
    const check = checkOf(draft);
    const end = append({ from: segment.path, to: draft.path, begin: 0, end: bytes, check, onBytes });
    renameSync(draft.path, copy.path);
    syncFolder(options.to);
    return end;
  } finally {
    rmSync(draft.path, { force: true });
  }
}

interface Appended<Result> {
  readonly from: string;
  readonly to: string;
  /** Bytes of `from`; `to` has those before them. */
  readonly begin: number;
  readonly end: number;
  /** Checks the result. */
  readonly check: () => Result;
  readonly onBytes: (bytes: number) => void;
}

/** Appends a part of a file to another, on disk; if that fails, or the result is not good, it is cut off again. */
function append<Result>(appended: Appended<Result>): Result {
  const { from, to, begin, end, check, onBytes } = appended;
  using source = openFile(from, 'r');
  using target = openFile(to, begin === 0 ? 'w' : 'r+');
  try {
    const buffer = Buffer.allocUnsafe(READ_BYTES);
    for (let at = begin; at < end; ) {
      const read = readSync(source.fd, buffer, 0, Math.min(buffer.length, end - at), at);
      if (read === 0) throw new LogDamage(`${from} has become shorter`);
      writeAt(target.fd, buffer.subarray(0, read), at);
      at += read;
      onBytes(read);
    }
    fsyncSync(target.fd);
    return check();
  } catch (error) {
    ftruncateSync(target.fd, begin);
    throw error;
  }
}

/**
 * Reads a segment to its end.
 *
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

function lastOf(segment: Segment): Commit | null {
  return checked(segment, undefined);
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
