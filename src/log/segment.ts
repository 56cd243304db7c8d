/**
 * Segments: the files of a log. Each is named by its first entry and only appended to; all but the newest are closed,
 * and never change. A snapshot (compact.ts) takes the place of every segment that begins before it or with it.
 */
import { fstatSync, readdirSync, readSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { unlessCode } from '../refused.ts';
import { openFile, syncFolder } from '../store/folder.ts';
import { LogDamage, onLog } from '../store/log-errors.ts';
import { type Commit, LOG_FORMAT, type Mark, parseHeader, type SegmentHeader } from './format.ts';
import {
  commitIn,
  decodeFrameHeader,
  type EntryPart,
  entryChain,
  FRAME_HEADER_BYTES,
  FRAME_MAGIC,
  type Frame,
  frameAt,
  headerIn,
} from './frame.ts';

/** Bytes to search at once for a frame. Two pieces overlap by the header of one. */
const SEARCH_BYTES = 4 * 1024 * 1024;
const NAME = /^(\d{12})(-snapshot)?\.zst$/;

export type Segment = Readonly<{ path: string; firstEntry: number }>;

export const segmentPath = (folder: string, firstEntry: number): string =>
  join(folder, `${String(firstEntry).padStart(12, '0')}.zst`);

/** Of a segment that begins with a snapshot: by this name, all segments before it are obsolete. */
export const snapshotPath = (folder: string, firstEntry: number): string =>
  segmentPath(folder, firstEntry).replace('.zst', '-snapshot.zst');

/** Oldest first; none if there is no folder. @throws LogFailure */
export function listSegments(folder: string): Segment[] {
  const all = allSegments(folder);
  const begin = all.findLast(({ isSnapshot }) => isSnapshot);
  return all.filter((file) => begin === undefined || file === begin || file.firstEntry > begin.firstEntry);
}

/** The folder for the draft of a rewritten log (compact.ts); call {@link tidyLog} first. */
export const draftOf = (log: string): string => join(log, 'draft');

/**
 * Makes the draft of a snapshot, which is durable and verified, the beginning of the log: one rename decides. A crash
 * behind it leaves obsolete segments to the next start. @param entry the number of the snapshot
 */
export function replaceLog(log: string, entry: number): void {
  renameSync(segmentPath(draftOf(log), entry), snapshotPath(log, entry));
  // Before a segment goes that it replaces.
  syncFolder(log);
  tidyLog(log);
}

/**
 * Puts a whole draft, which is durable, in place of the log. Whoever reads that meanwhile finds each entry, or damage. A log
 * that begins with a snapshot is in place by one name, whatever a crash leaves; of another one, a crash may leave damage.
 * @param first its first entry
 */
export function takeDraft(log: string, first: number): void {
  const replaced = new Set(listSegments(log).map(({ path }) => path));
  for (const { path, firstEntry } of listSegments(draftOf(log))) {
    const pathOf = firstEntry > 1 && firstEntry === first ? snapshotPath : segmentPath;
    renameSync(path, pathOf(log, firstEntry));
    replaced.delete(pathOf(log, firstEntry));
  }
  // Before a segment goes that was replaced.
  syncFolder(log);
  for (const path of replaced) rmSync(path);
  syncFolder(log);
}

/** Deletes what a compaction left, whether it had replaced the log or not: the draft, and segments that it replaced. */
export function tidyLog(log: string): void {
  const kept = new Set(listSegments(log).map(({ path }) => path));
  const obsolete = allSegments(log).filter(({ path }) => !kept.has(path));
  for (const { path } of obsolete) rmSync(path);
  if (obsolete.length > 0) syncFolder(log);
  rmSync(draftOf(log), { recursive: true, force: true });
}

function allSegments(folder: string): (Segment & { readonly isSnapshot: boolean })[] {
  const names = onLog('read', folder, () => unlessCode([], () => readdirSync(folder), 'ENOENT'));
  return names.sort().flatMap((name) => {
    const [, digits, snapshot] = NAME.exec(name) ?? [];
    if (digits === undefined) return [];
    return { path: join(folder, name), firstEntry: Number(digits), isSnapshot: snapshot !== undefined };
  });
}

/** The entries of a closed segment up to its last one, as one content. @throws LogDamage, LogFailure */
export async function entriesOf(segment: Segment, last: Mark): Promise<Buffer> {
  using reader = new SegmentReader(segment);
  const frames: Buffer[] = [];
  for (let part = reader.next(); part !== null; part = reader.next()) {
    frames.push(part.frame.bytes);
    await nextTurn();
  }
  if (reader.last?.id !== last.id) throw new LogDamage(`${segment.path} is damaged at byte ${reader.end}`);
  return Buffer.concat(frames);
}

/** Cuts off what follows an entry. The recovery that comes then puts what is left into a new file, and syncs it. */
export function cutAfter(log: string, entry: number): void {
  for (const segment of listSegments(log).toReversed()) {
    if (segment.firstEntry <= entry) {
      using reader = new SegmentReader(segment);
      reader.skipTo(entry);
      truncateSync(segment.path, reader.end);
      return;
    }
    rmSync(segment.path);
  }
}

export const bytesOf = (segments: readonly Segment[]): number =>
  segments.reduce((sum, { path }) => sum + statSync(path).size, 0);

/** Reads a segment frame by frame, and checks its entries. After the end, it can be asked again for what was added meanwhile. */
export class SegmentReader {
  readonly #path: string;
  readonly #file: ReturnType<typeof openFile>;
  #chain: ReturnType<typeof entryChain>;
  /** Where the last intact frame ends. */
  #offset = 0;
  /** When a frame was last looked for: the writer may have appended to it since. */
  #size = 0;
  /** Its last whole entry. */
  last: Commit | null = null;
  /** Where that entry ends; before the first, where the header ends. */
  end = 0;
  /** Null if it is not complete: a crash may leave the newest segment so. */
  readonly header: SegmentHeader | null;

  /**
   * @param previous the entry before its first one; null: there is none; undefined: not known
   * @throws LogDamage if the segment belongs to another log, or has a newer format; LogFailure
   */
  constructor(segment: Segment, previous?: Mark | null) {
    this.#path = segment.path;
    this.#chain = entryChain(previous, segment.firstEntry, `${segment.path}: `);
    this.#file = openSegment(segment.path);
    try {
      const frame = this.#nextFrame();
      this.header = frame === null ? null : this.#checkHeader(frame, segment);
    } catch (error) {
      this[Symbol.dispose]();
      throw error;
    }
    this.end = this.#offset;
  }

  /** Whether nothing follows that entry. */
  get isWhole(): boolean {
    return this.header !== null && this.end === this.#offset && this.end === this.#size;
  }

  /** @returns null if no intact frame follows @throws LogDamage if an entry is not as its commit line says, or out of order */
  next(): EntryPart | null {
    const frame = this.header === null ? null : this.#nextFrame();
    if (frame === null) return null;
    const part = this.#chain.add(frame);
    if (part.commit !== null) {
      this.last = part.commit;
      this.end = frame.end;
    }
    return part;
  }

  /**
   * Reads up to the end of an entry, or to that of the segment, by checksums alone, and checks only the last entry there:
   * unpacking all takes many times as long.
   * @throws LogDamage if that entry differs from its commit line
   */
  skipTo(entry: number): void {
    let newest: { readonly frame: Frame; readonly chain: ReturnType<typeof entryChain> } | null = null;
    while (this.header !== null && this.#chain.next <= entry) {
      const frame = this.#nextFrame();
      if (frame === null) break;
      if (frame.kind !== 'commit') this.#chain.add(frame);
      else {
        newest = { frame, chain: this.#chain };
        this.#chain = entryChain(undefined, this.#chain.next + 1, `${this.#path}: `);
      }
    }
    if (newest === null) return;
    this.last = newest.chain.add(newest.frame).commit;
    this.end = newest.frame.end;
    this.#chain.last = this.last;
  }

  /** Goes on after an entry that was read before, and that ends at `end`: nothing up to there is read again. */
  seek(entry: Commit, end: number): void {
    [this.last, this.end, this.#offset] = [entry, end, end];
    this.#chain.last = entry;
  }

  /** The intact commit lines from {@link end} on: none if the end is only torn. */
  *commitsBehind(): Generator<Commit, undefined> {
    for (let from = this.end; ; from += SEARCH_BYTES - FRAME_HEADER_BYTES) {
      const bytes = this.#read(from, SEARCH_BYTES);
      for (let at = bytes.indexOf(FRAME_MAGIC); at >= 0; at = bytes.indexOf(FRAME_MAGIC, at + 1)) {
        const header = decodeFrameHeader(bytes.subarray(at, at + FRAME_HEADER_BYTES));
        const frame = header?.kind === 'commit' ? frameAt(this.#read, from + at) : null;
        if (frame !== null) yield commitIn(frame);
      }
      if (bytes.length < SEARCH_BYTES) return;
    }
  }

  [Symbol.dispose](): void {
    this.#file[Symbol.dispose]();
  }

  #nextFrame(): Frame | null {
    this.#size = fstatSync(this.#file.fd).size;
    const frame = frameAt(this.#read, this.#offset);
    this.#offset = frame?.end ?? this.#offset;
    return frame;
  }

  readonly #read = (offset: number, length: number) =>
    readAt(this.#file.fd, this.#path, offset, Math.max(0, Math.min(length, this.#size - offset)));

  #checkHeader(frame: Frame, { path, firstEntry }: Segment): SegmentHeader {
    const header = parseHeader(headerIn(frame));
    if (header.format > LOG_FORMAT)
      throw new LogDamage(
        `${path} has log format ${header.format}, but this version of Wirewatch supports format ${LOG_FORMAT}. Version ${header.program} wrote the file: use that version. Nothing was changed`,
      );
    if (frame.kind !== 'header' || header.first_entry !== firstEntry)
      throw new LogDamage(`${path} contains another segment than its name says`);
    return header;
  }
}

/** A segment's commit lines, in order, up to a frame that is not intact; others are not read. @throws LogDamage, LogFailure */
export function commitsIn({ path }: Segment): Commit[] {
  using file = openSegment(path);
  const read = (offset: number, length: number) => readAt(file.fd, path, offset, length);
  const commits: Commit[] = [];
  for (let at = 0; ; ) {
    const header = decodeFrameHeader(read(at, FRAME_HEADER_BYTES));
    const frame = header?.kind === 'commit' ? frameAt(read, at) : null;
    if (header === null || (header.kind === 'commit' && frame === null)) return commits;
    if (frame !== null) commits.push(commitIn(frame));
    at += FRAME_HEADER_BYTES + header.length;
  }
}

const openSegment = (path: string) => onLog('read', path, () => openFile(path, 'r'));

/** @returns fewer bytes at the end of the file; a rollback makes the newest segment shorter */
function readAt(file: number, path: string, offset: number, length: number): Buffer {
  return onLog('read', path, () => {
    const bytes = Buffer.allocUnsafe(Math.max(0, Math.min(length, fstatSync(file).size - offset)));
    return bytes.subarray(0, readSync(file, bytes, 0, bytes.length, offset));
  });
}
