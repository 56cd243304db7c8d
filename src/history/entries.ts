/** The decided entries of a log, to print them: in order, and on request those that are added later. */
import { setTimeout as sleep } from 'node:timers/promises';
import { parseInstant } from '../time.ts';
import { type Commit, type LogKind, parseCommit } from './format.ts';
import { decodeFrameHeader, decodeLines, FRAME_HEADER_BYTES } from './frame.ts';
import { LogDamage } from './log-error.ts';
import { EntryReader, FrameReader, listSegments, type Segment } from './segment.ts';

export interface Entry {
  readonly commit: Commit;
  /** The segment, and where the entry ends in it. */
  readonly path: string;
  readonly inode: number;
  readonly end: number;
  /**
   * Its lines, the commit line last: frame by frame, since an entry may have millions. Read them before the next entry:
   * then the file is closed.
   */
  readonly lines: () => Generator<readonly string[]>;
}

export interface EntriesWanted {
  /** Epoch milliseconds: segments with only earlier entries are not read. */
  readonly fromMs: number;
  /** Whether to wait for more; then it never ends. */
  readonly follow: boolean;
}

const FOLLOW_EVERY_MS = 250;

/** @throws LogDamage, LogFailure */
export async function* readEntries(
  folder: string,
  kind: LogKind,
  { fromMs, follow }: EntriesWanted,
): AsyncGenerator<Entry> {
  let last: Entry | null = null;
  for (;;) {
    for (const entry of entriesBehind(folder, kind, last, fromMs)) {
      last = entry;
      yield entry;
    }
    if (!follow) return;
    await sleep(FOLLOW_EVERY_MS);
  }
}

function* linesBetween(reader: FrameReader, begin: number, end: number): Generator<readonly string[]> {
  for (let at = begin; at < end; ) {
    const frame = reader.frameAt(at);
    if (frame === null) throw new LogDamage(`an entry of the log changed while it was being read`);
    yield decodeLines(frame.packed);
    at = frame.end;
  }
}

export function timeOf({ commit }: Entry): number {
  return parseInstant(commit.at) ?? 0;
}

function* entriesBehind(folder: string, kind: LogKind, last: Entry | null, fromMs: number): Generator<Entry> {
  const segments = listSegments(folder);
  const first =
    last === null
      ? segments.findLastIndex((segment) => isBegunBy(segment, kind, fromMs))
      : segments.findLastIndex(({ firstEntry }) => firstEntry <= last.commit.entry);
  const wanted = segments.slice(Math.max(0, first));
  for (const [index, segment] of wanted.entries()) {
    const isWhole = yield* entriesIn(segment, kind, last);
    if (!isWhole && index < wanted.length - 1) throw new LogDamage(`${segment.path} is damaged`);
  }
}

/** Whether a segment's first entry was written at or before a time. */
function isBegunBy(segment: Segment, kind: LogKind, ms: number): boolean {
  const entries = entriesIn(segment, kind, null);
  const { value } = entries.next();
  entries.return(true);
  return typeof value === 'object' && timeOf(value) <= ms;
}

/** @returns whether nothing follows the last entry */
function* entriesIn(segment: Segment, kind: LogKind, last: Entry | null): Generator<Entry, boolean> {
  const { path } = segment;
  // Refuses another format.
  new EntryReader(segment, kind)[Symbol.dispose]();
  // A rewritten segment is read from its beginning.
  using reader = new FrameReader(
    path,
    last?.path === path ? { inode: last.inode, offset: last.end } : undefined,
  );
  const { inode } = reader;
  let begin = reader.offset;
  for (let frame = reader.next(); frame !== null; frame = reader.next()) {
    if (frame.kind === 'lines') continue;
    // Damage: a segment has one header, its first frame.
    if (frame.kind === 'header' && begin > 0) return false;
    if (frame.kind === 'commit') {
      const commit = parseCommit(decodeLines(frame.packed).at(-1) ?? '');
      const [from, end] = [begin, frame.end];
      const lines = () => linesBetween(reader, from, end);
      if (commit.entry > (last?.commit.entry ?? 0)) yield { commit, path, inode, end, lines };
    }
    begin = frame.end;
  }
  return reader.isAtEnd && begin === reader.offset;
}

/**
 * The commit lines of a log, newest first, without reading other frames.
 *
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
