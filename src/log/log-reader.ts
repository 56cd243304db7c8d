/** Reads a log: its entries in order, across segments, and where it ends. */
import { fsyncSync, readSync, renameSync, rmSync } from 'node:fs';
import { grouped } from '../counted.ts';
import { openFile, syncFolder, writeAt } from '../store/folder.ts';
import { LogDamage, LogFailure } from '../store/log-errors.ts';
import { type Commit, type Mark, parseCommit, SNAPSHOT } from './format.ts';
import { decodeFrameHeader, decodeLines, FRAME_HEADER_BYTES } from './frame.ts';
import {
  type EntryPart,
  EntryReader,
  FrameReader,
  findEntry,
  listSegments,
  type Segment,
} from './segment.ts';

const PIECE_BYTES = 4 * 1024 * 1024;

export interface Tail {
  /** The last whole entry; null: there is none. */
  readonly last: Commit | null;
  /** The newest segment, where the next entry may be appended; null: there is none. */
  readonly segment: (Segment & { readonly program: string; readonly bytes: number }) | null;
  /** Files without a complete header, left by a crash when a segment was started. */
  readonly stumps: readonly Segment[];
  /** Whether something follows the last complete entry. */
  readonly isTorn: boolean;
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
  let isTorn = false;
  let isDoubtful = false;
  for (const segment of segments.toReversed()) {
    using reader = new EntryReader(segment);
    reader.skipToEnd();
    if (!reader.isWhole) {
      const behind = Array.from(reader.commitsBehind(), ({ entry }) => entry);
      const next = reader.last === null ? segment.firstEntry : reader.last.entry + 1;
      isDoubtful ||= behind.length > 0;
      const isDamage = behind.some((entry) => entry !== next) || (isDoubtful && !mayBeDoubtful);
      if (open !== null || isDamage) throw new LogDamage(`${segment.path} is damaged at byte ${reader.end}`);
      isTorn = true;
    }
    if (reader.header === null) stumps.push(segment);
    else open ??= { ...segment, program: reader.header.program, bytes: reader.end };
    if (reader.last !== null) return { last: reader.last, segment: open, stumps, isTorn, isDoubtful };
  }
  return { last: null, segment: open, stumps, isTorn, isDoubtful };
}

/**
 * Copies the complete entries of the newest segment into a new, synced file: after a kill or a failed fsync, the page cache
 * may show content that is not on the disk. @throws LogFailure
 */
export function trustTail(folder: string, { segment, stumps }: Tail): void {
  try {
    for (const { path } of stumps) rmSync(path);
    if (segment !== null) {
      const draft = `${segment.path}.tmp`;
      copyStart(segment.path, draft, segment.bytes);
      renameSync(draft, segment.path);
      syncFolder(folder);
    }
  } catch (error) {
    throw new LogFailure('write', segment?.path ?? folder, error);
  }
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

/** Where a database's mark is in a log. */
export type Place =
  /** The log has this entry. */
  | 'known'
  /** The log has another entry with that number: the database belongs to another log. */
  | 'foreign'
  /** The log starts with a later entry. */
  | 'before'
  /** The log ends before it. */
  | 'beyond';

/** @throws LogDamage if the segment that should have the entry is damaged before it */
export function placeOf(folder: string, mark: Mark): Place {
  const segments = listSegments(folder);
  const index = segments.findLastIndex(({ firstEntry }) => firstEntry <= mark.entry);
  const segment = segments[index];
  if (segment === undefined) return segments.length === 0 ? 'beyond' : 'before';
  const { commit, end } = findEntry(segment, mark.entry);
  if (commit !== null) return commit.id === mark.id ? 'known' : 'foreign';
  if (index < segments.length - 1) throw new LogDamage(`${segment.path} is damaged at byte ${end}`);
  return 'beyond';
}

export interface LocatedPart {
  readonly segment: Segment;
  /** Bytes up to the last complete entry, counted from the start of the first segment that is yielded. */
  readonly bytes: number;
  readonly part: EntryPart;
}

/**
 * The entries after one, in order, frame by frame, with every check of the log. After the end, it can be asked again
 * for entries that were added meanwhile.
 * @param after null: from the first entry of the log on
 * @throws LogDamage if an entry is missing, damaged or out of order; a torn end is only the end
 */
export function* entriesAfter(folder: string, after: Mark | null): Generator<LocatedPart> {
  let segments = listSegments(folder);
  const from = after?.entry ?? 0;
  const first = Math.max(
    0,
    segments.findLastIndex(({ firstEntry }) => firstEntry <= Math.max(1, from)),
  );
  const hasNext = (index: number) => {
    if (index === segments.length - 1) segments = listSegments(folder);
    return index < segments.length - 1;
  };
  let previous: Commit | null | undefined;
  let bytesBefore = 0;
  for (let index = first; index < segments.length; index += 1) {
    const segment = segments[index];
    if (segment === undefined) return;
    using reader = new EntryReader(segment);
    let isYielded = false;
    const next = () => {
      const part = reader.next(previous);
      // Once there is a next segment, this one is closed: read what was added since.
      return part ?? (hasNext(index) ? reader.next(previous) : null);
    };
    for (let part = next(); part !== null; part = next()) {
      const entry =
        part.kind === 'commit' ? part.commit.entry : (previous?.entry ?? segment.firstEntry - 1) + 1;
      if (part.kind === 'commit' && index === 0 && previous === undefined) requireBeginning(part.commit);
      isYielded ||= entry > from;
      if (isYielded) yield { segment, part, bytes: bytesBefore + reader.end };
      if (part.kind === 'commit') previous = part.commit;
    }
    if (!reader.isWhole && hasNext(index))
      throw new LogDamage(`${segment.path} is damaged at byte ${reader.end}`);
    if (isYielded) bytesBefore += reader.end;
  }
}

/** @throws LogDamage unless a log can start with this entry: 1, or a snapshot (compact.ts) */
export function requireBeginning(commit: Commit): void {
  if (isBeginning(commit)) return;
  throw new LogDamage(`it begins with entry ${grouped(commit.entry)}; earlier entries are missing`);
}

export function isBeginning({ entry, after, operation }: Commit): boolean {
  return (entry === 1 && after === null) || operation.kind === SNAPSHOT;
}

/**
 * The commit lines of a log, newest first, without reading other frames.
 * @param before only entries with smaller numbers; @param limit the most to return
 * @param segmentsMax the most segments to search, so that a call is short however long the log is
 * @returns `next`: the `before` of the next call; null at the log's beginning
 */
export function newestCommits(
  folder: string,
  { before, limit, segmentsMax }: { before: number; limit: number; segmentsMax: number },
  isWanted: (commit: Commit) => boolean,
): { readonly commits: Commit[]; readonly next: number | null } {
  const segments = listSegments(folder).filter(({ firstEntry }) => firstEntry < before);
  const commits: Commit[] = [];
  for (const [index, segment] of segments.toReversed().entries()) {
    const own = commitsIn(segment).filter((commit) => commit.entry < before && isWanted(commit));
    commits.push(...own.toReversed().slice(0, limit - commits.length));
    const last = commits.at(-1);
    if (commits.length === limit && last !== undefined)
      return { commits, next: last.entry === segments[0]?.firstEntry ? null : last.entry };
    if (index + 1 === segmentsMax && index + 1 < segments.length)
      return { commits, next: segment.firstEntry };
  }
  return { commits, next: null };
}

/** Oldest first, up to the first frame that is not intact. */
function commitsIn({ path }: Segment): Commit[] {
  using reader = new FrameReader(path);
  const commits: Commit[] = [];
  for (let at = 0; ; ) {
    const header = decodeFrameHeader(reader.read(at, FRAME_HEADER_BYTES));
    if (header === null) return commits;
    const frame = header.kind === 'commit' ? reader.frameAt(at) : null;
    if (header.kind === 'commit' && frame === null) return commits;
    if (frame !== null) commits.push(parseCommit(decodeLines(frame.packed).at(-1) ?? ''));
    at += FRAME_HEADER_BYTES + header.length;
  }
}
