/** Reads a log: its entries in order, across segments, and where it ends. */
import { fsyncSync, readSync, renameSync, rmSync } from 'node:fs';
import { grouped } from '../counted.ts';
import { openFile, syncFolder, writeAt } from '../store/folder.ts';
import { LogDamage, onLog } from '../store/log-errors.ts';
import type { Commit, Mark } from './format.ts';
import { commitsIn, listSegments, type Segment, SegmentReader } from './segment.ts';

const PIECE_BYTES = 4 * 1024 * 1024;

export interface Tail {
  /** The last whole entry; null: there is none. */
  readonly last: Commit | null;
  /** The newest segment, where the next entry may be appended; null: there is none. */
  readonly segment: (Segment & { readonly program: string; readonly bytes: number }) | null;
  /** Files without a complete header, left by a crash when a segment was started. */
  readonly stumps: readonly Segment[];
  /**
   * Whether one entry follows whose end is intact, but another part is not. A power cut before it was durable may cause
   * that, since a disk writes in any order; so may damage.
   */
  readonly isDoubtful: boolean;
}

/**
 * Finds the end of a log; changes nothing. Earlier entries are not checked here, but when they are applied.
 * @param mayBeDoubtful whether the caller can check a doubtful end by other means
 * @throws LogDamage if the end is not merely torn: a complete entry follows an incomplete one
 */
export function findTail(folder: string, mayBeDoubtful = false): Tail {
  const segments = listSegments(folder);
  const stumps: Segment[] = [];
  let open: Tail['segment'] = null;
  let isDoubtful = false;
  for (const segment of segments.toReversed()) {
    using reader = new SegmentReader(segment);
    reader.skipTo(Number.POSITIVE_INFINITY);
    if (!reader.isWhole) {
      const behind = Array.from(reader.commitsBehind(), ({ entry }) => entry);
      const next = reader.last === null ? segment.firstEntry : reader.last.entry + 1;
      isDoubtful ||= behind.length > 0;
      const isDamage = behind.some((entry) => entry !== next) || (isDoubtful && !mayBeDoubtful);
      if (open !== null || isDamage) throw new LogDamage(`${segment.path} is damaged at byte ${reader.end}`);
    }
    if (reader.header === null) stumps.push(segment);
    else open ??= { ...segment, program: reader.header.program, bytes: reader.end };
    if (reader.last !== null) return { last: reader.last, segment: open, stumps, isDoubtful };
  }
  return { last: null, segment: open, stumps, isDoubtful };
}

/**
 * Copies the complete entries of the newest segment into a new, synced file: after a kill or a failed fsync, the page cache
 * may show content that is not on the disk. @throws LogFailure
 */
export function trustTail(folder: string, { segment, stumps }: Tail): void {
  onLog('write', segment?.path ?? folder, () => {
    for (const { path } of stumps) rmSync(path);
    if (segment === null) return;
    const draft = `${segment.path}.tmp`;
    copyStart(segment.path, draft, segment.bytes);
    renameSync(draft, segment.path);
    syncFolder(folder);
  });
}

/** In pieces: an entry of millions of rows makes a segment larger than memory. */
function copyStart(from: string, to: string, length: number): void {
  using source = openFile(from, 'r');
  using target = openFile(to, 'w');
  const piece = Buffer.allocUnsafe(Math.min(length, PIECE_BYTES));
  for (let done = 0; done < length; ) {
    const read = readSync(source.fd, piece, 0, Math.min(piece.length, length - done), done);
    if (read === 0) throw new Error(`it ends before byte ${grouped(length)}`);
    writeAt(target.fd, piece.subarray(0, read), done);
    done += read;
  }
  fsyncSync(target.fd);
}

/**
 * Where a database's mark is in a log. `known`: the log has this entry; `foreign`: it has another one with that number, so
 * the database belongs to another log; `before`: it starts with a later entry; `beyond`: it ends before this one.
 */
export type Place = 'known' | 'foreign' | 'before' | 'beyond';

/** @throws LogDamage if the segment that should have the entry is damaged before it */
export function placeOf(folder: string, mark: Mark): Place {
  const segments = listSegments(folder);
  const index = segments.findLastIndex(({ firstEntry }) => firstEntry <= mark.entry);
  const segment = segments[index];
  if (segment === undefined) return segments.length === 0 ? 'beyond' : 'before';
  using reader = new SegmentReader(segment);
  reader.skipTo(mark.entry);
  if (reader.last?.entry === mark.entry) return reader.last.id === mark.id ? 'known' : 'foreign';
  if (index < segments.length - 1) throw new LogDamage(`${segment.path} is damaged at byte ${reader.end}`);
  return 'beyond';
}

/** Where an entry that was read ends. */
export type ReadTo = Readonly<{ path: string; last: Commit; end: number }>;

/**
 * The entries after one, in order, frame by frame, with every check of the log. After the end, it can be asked again
 * for entries that were added meanwhile.
 * @param after null: from the first entry of the log on
 * @param readTo where it ends, if that is known: its segment is not read from the beginning on
 * @returns `bytes`: up to the last complete entry, counted from the start of the first segment that is yielded
 * @throws LogDamage if an entry is missing, damaged or out of order; a torn end is only the end
 */
export function* entriesAfter(folder: string, after: Mark | null, readTo: ReadTo | null = null) {
  let segments = listSegments(folder);
  const from = after?.entry ?? 0;
  const first = segments.findLastIndex(({ firstEntry }) => firstEntry <= Math.max(1, from));
  const hasNext = (index: number) => {
    if (index === segments.length - 1) segments = listSegments(folder);
    return index < segments.length - 1;
  };
  let previous: Mark | null = null;
  let bytesBefore = 0;
  for (let index = Math.max(0, first); index < segments.length; index += 1) {
    const segment = segments[index];
    if (segment === undefined) return;
    const isBegun = segment.firstEntry <= from;
    using reader: SegmentReader = new SegmentReader(segment, isBegun ? undefined : previous);
    if (readTo?.path === segment.path && readTo.last.id === after?.id) reader.seek(readTo.last, readTo.end);
    else if (isBegun) reader.skipTo(from);
    // Once there is a next segment, this one is closed: read what was added since.
    const next = () => reader.next() ?? (hasNext(index) ? reader.next() : null);
    for (let part = next(); part !== null; part = next())
      yield { segment, part, bytes: bytesBefore + reader.end };
    if (!reader.isWhole && hasNext(index))
      throw new LogDamage(`${segment.path} is damaged at byte ${reader.end}`);
    previous = reader.last ?? previous;
    if ((reader.last?.entry ?? 0) > from) bytesBefore += reader.end;
  }
}

/** The commit lines of a log, newest first, without reading other frames. @throws LogDamage, LogFailure */
export function* commitsBackwards(folder: string): Generator<Commit, undefined> {
  for (const segment of listSegments(folder).toReversed()) yield* commitsIn(segment).toReversed();
}
