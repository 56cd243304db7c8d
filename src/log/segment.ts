/**
 * Segments: the files of a log. Each is named by its first entry and only appended to; all but the newest are closed,
 * and never change. A snapshot (compact.ts) takes the place of every segment that begins before it or with it.
 */
import { closeSync, fstatSync, openSync, readdirSync, readSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isErrorCode } from '../refused.ts';
import { syncFolder } from '../store/folder.ts';
import { LogDamage, LogFailure } from '../store/log-errors.ts';
import {
  type Commit,
  LOG_FORMAT,
  type Mark,
  parseCommit,
  parseHeader,
  type SegmentHeader,
} from './format.ts';
import {
  chainChecksum,
  decodeFrameHeader,
  decodeLines,
  FRAME_HEADER_BYTES,
  FRAME_MAGIC,
  type FrameKind,
  isFrameIntact,
  unpackLines,
} from './frame.ts';

/** Bytes to search at once for a frame. Two pieces overlap by the header of one. */
const SEARCH_BYTES = 4 * 1024 * 1024;
const NAME = /^(\d{12})(-snapshot)?\.zst$/;

export interface Segment {
  readonly path: string;
  readonly firstEntry: number;
}

export interface Frame {
  readonly kind: FrameKind;
  /** All of it, and the zstd frame in it. */
  readonly bytes: Buffer;
  readonly packed: Buffer;
  readonly checksum: number;
  /** Where the next frame begins in its file. */
  readonly end: number;
}

export function segmentPath(folder: string, firstEntry: number): string {
  return join(folder, `${String(firstEntry).padStart(12, '0')}.zst`);
}

/** Oldest first; none if there is no folder. @throws LogFailure */
export function listSegments(folder: string): Segment[] {
  const all = allSegments(folder);
  const begin = all.findLast(({ isSnapshot }) => isSnapshot);
  return all.filter((file) => begin === undefined || file === begin || file.firstEntry > begin.firstEntry);
}

/** The folder for the draft of a rewritten log (compact.ts); call {@link tidyLog} first. */
export function draftOf(log: string): string {
  return join(log, 'draft');
}

/**
 * Makes the draft of a snapshot, which is durable and verified, the beginning of the log: one rename decides. A crash
 * behind it leaves obsolete segments to the next start. @param entry the number of the snapshot
 */
export function replaceLog(log: string, entry: number): void {
  renameSync(segmentPath(draftOf(log), entry), segmentPath(log, entry).replace('.zst', '-snapshot.zst'));
  // Before a segment goes that it replaces.
  syncFolder(log);
  tidyLog(log);
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
  try {
    return readdirSync(folder)
      .sort()
      .flatMap((name) => {
        const [, digits, snapshot] = NAME.exec(name) ?? [];
        if (digits === undefined) return [];
        const isSnapshot = snapshot !== undefined;
        return [{ path: join(folder, name), firstEntry: Number(digits), isSnapshot }];
      });
  } catch (error) {
    if (isErrorCode(error, 'ENOENT')) return [];
    throw new LogFailure('read', folder, error);
  }
}

/**
 * Finds an entry in its segment.
 * @returns `commit` null: it is not there; `end`: where it ends, or where the intact part of the segment ends
 */
export function findEntry(
  segment: Segment,
  entry: number,
): { readonly commit: Commit | null; readonly end: number } {
  using reader = new EntryReader(segment);
  while (reader.next(reader.last ?? undefined) !== null)
    if (reader.last?.entry === entry) return { commit: reader.last, end: reader.end };
  return { commit: null, end: reader.end };
}

export function bytesOf(segments: readonly Segment[]): number {
  return segments.reduce((sum, { path }) => sum + statSync(path).size, 0);
}

/** Reads a segment frame by frame. After the end, it can be asked again for frames that were added meanwhile. */
export class FrameReader {
  readonly #path: string;
  readonly #file: number;
  #size: number;
  /** Where the last intact frame ends. */
  offset = 0;
  #isOpen = true;

  /** @throws LogFailure if the file cannot be opened */
  constructor(path: string) {
    this.#path = path;
    try {
      this.#file = openSync(path, 'r');
      this.#size = fstatSync(this.#file).size;
    } catch (error) {
      throw new LogFailure('read', path, error);
    }
  }

  get isAtEnd(): boolean {
    return this.offset === this.#size;
  }

  /** @returns null at the end, and if the next frame is not intact */
  next(): Frame | null {
    // A rollback makes the newest segment shorter.
    this.#size = fstatSync(this.#file).size;
    const frame = this.frameAt(this.offset);
    this.offset = frame?.end ?? this.offset;
    return frame;
  }

  /** @param offset where a frame begins; @returns null if it is not intact */
  frameAt(offset: number): Frame | null {
    const header = decodeFrameHeader(this.read(offset, FRAME_HEADER_BYTES));
    if (header === null) return null;
    const bytes = this.read(offset, FRAME_HEADER_BYTES + header.length);
    const packed = bytes.subarray(FRAME_HEADER_BYTES);
    if (packed.length < header.length || !isFrameIntact(header, packed)) return null;
    return { kind: header.kind, bytes, packed, checksum: header.checksum, end: offset + bytes.length };
  }

  [Symbol.dispose](): void {
    if (this.#isOpen) closeSync(this.#file);
    this.#isOpen = false;
  }

  /** @returns fewer bytes at the end of the file */
  read(offset: number, length: number): Buffer {
    const bytes = Buffer.allocUnsafe(Math.max(0, Math.min(length, this.#size - offset)));
    try {
      const read = bytes.length === 0 ? 0 : readSync(this.#file, bytes, 0, bytes.length, offset);
      return bytes.subarray(0, read);
    } catch (error) {
      throw new LogFailure('read', this.#path, error);
    }
  }
}

/** One frame of an entry; the last one has kind `commit`. */
export type EntryPart = (
  | {
      readonly kind: 'lines';
      readonly lines: readonly string[];
      /** The same, each with a newline at its end. */
      readonly bytes: Buffer;
    }
  | {
      readonly kind: 'commit';
      /** Those before the commit line. */
      readonly lines: readonly string[];
      readonly commit: Commit;
      /** Where the entry ends in its segment. */
      readonly end: number;
    }
) & {
  /** The bytes of the frame, as they are in the segment. */
  readonly frame: Buffer;
};

/** Assembles the frames of a segment to entries, and checks each against its commit line. */
export class EntryReader {
  readonly #reader: FrameReader;
  readonly #path: string;
  #frames = 0;
  #checksum = 0;
  last: Commit | null = null;
  /** Where that entry ends; before the first, where the header ends. */
  end = 0;
  /** Null if it is not complete: a crash may leave the newest segment so. */
  readonly header: SegmentHeader | null;

  /** @throws LogDamage if the segment belongs to another log, or has a newer format */
  constructor(segment: Segment) {
    this.#path = segment.path;
    this.#reader = new FrameReader(segment.path);
    try {
      const frame = this.#reader.next();
      this.header = frame === null ? null : this.#checkHeader(frame, segment);
    } catch (error) {
      this[Symbol.dispose]();
      throw error;
    }
    this.end = this.#reader.offset;
  }

  /** Whether nothing follows that entry. */
  get isWhole(): boolean {
    return this.header !== null && this.#reader.isAtEnd && this.end === this.#reader.offset;
  }

  /**
   * @param previous the entry before the next one; undefined: not known
   * @returns null if no intact frame follows
   * @throws LogDamage if an entry differs from its commit line, or does not follow the previous one
   */
  next(previous: Commit | null | undefined): EntryPart | null {
    if (this.header === null) return null;
    const frame = this.#reader.next();
    if (frame === null) return null;
    const { packed } = frame;
    if (frame.kind === 'lines') {
      this.#frames += 1;
      this.#checksum = chainChecksum(this.#checksum, frame.checksum);
      return linesPart(frame);
    }
    if (frame.kind === 'header') throw new LogDamage(`${this.#path}: a second header`);
    const lines = decodeLines(packed);
    const commit = parseCommit(lines.pop() ?? '');
    checkCommit(commit, previous, { frames: this.#frames, checksum: this.#checksum }, `${this.#path}: `);
    this.#frames = 0;
    this.#checksum = 0;
    this.last = commit;
    this.end = frame.end;
    return { kind: 'commit', lines, commit, end: frame.end, frame: frame.bytes };
  }

  /**
   * Reads to the end by checksums alone, and checks only the last entry: decompressing all takes many times as long.
   * @throws LogDamage if that entry differs from its commit line
   */
  skipToEnd(): void {
    if (this.header === null) return;
    let last: { frame: Frame; frames: number; checksum: number } | null = null;
    for (let frame = this.#reader.next(); frame !== null; frame = this.#reader.next()) {
      if (frame.kind === 'header') throw new LogDamage(`${this.#path}: a second header`);
      if (frame.kind === 'lines') {
        this.#frames += 1;
        this.#checksum = chainChecksum(this.#checksum, frame.checksum);
        continue;
      }
      last = { frame, frames: this.#frames, checksum: this.#checksum };
      this.#frames = 0;
      this.#checksum = 0;
    }
    if (last === null) return;
    const commit = parseCommit(decodeLines(last.frame.packed).at(-1) ?? '');
    checkCommit(commit, undefined, last, `${this.#path}: `);
    this.last = commit;
    this.end = last.frame.end;
  }

  /** The intact commit lines after {@link end}: none if the end is only torn. */
  *commitsBehind(): Generator<Commit, undefined> {
    for (let from = this.end + 1; ; from += SEARCH_BYTES - FRAME_HEADER_BYTES) {
      const bytes = this.#reader.read(from, SEARCH_BYTES);
      for (let at = bytes.indexOf(FRAME_MAGIC); at >= 0; at = bytes.indexOf(FRAME_MAGIC, at + 1)) {
        const header = decodeFrameHeader(bytes.subarray(at, at + FRAME_HEADER_BYTES));
        const frame = header?.kind === 'commit' ? this.#reader.frameAt(from + at) : null;
        if (frame === null) continue;
        yield parseCommit(decodeLines(frame.packed).at(-1) ?? '');
      }
      if (bytes.length < SEARCH_BYTES) return;
    }
  }

  [Symbol.dispose](): void {
    this.#reader[Symbol.dispose]();
  }

  #checkHeader(frame: Frame, { path, firstEntry }: Segment): SegmentHeader {
    const header = parseHeader(decodeLines(frame.packed)[0] ?? '');
    if (header.format > LOG_FORMAT)
      throw new LogDamage(
        `${path} has log format ${header.format}, but this version of Wirewatch supports format ${LOG_FORMAT}. Version ${header.program} wrote the file: use that version. Nothing was changed`,
      );
    if (frame.kind !== 'header' || header.first_entry !== firstEntry)
      throw new LogDamage(`${path} contains another segment than its name says`);
    return header;
  }
}

/**
 * Checks an entry against its commit line, and that it follows the one before.
 * @param previous null: it must be the first; undefined: any may come before it
 * @param found the number of its frames, and their chained checksum
 * @param where the beginning of an error
 * @throws LogDamage
 */
export function checkCommit(
  { entry, after, frames, checksum }: Commit,
  previous: Mark | null | undefined,
  found: { readonly frames: number; readonly checksum: number },
  where = '',
): void {
  if (frames !== found.frames || checksum !== found.checksum)
    throw new LogDamage(`${where}frames of entry ${entry} are missing`);
  if (previous === undefined) return;
  if (entry !== (previous?.entry ?? 0) + 1 || after !== (previous?.id ?? null))
    throw new LogDamage(`${where}entry ${entry} does not follow entry ${previous?.entry ?? 0}`);
}

/** A frame of lines as a part of an entry: unpacked only when it is needed. */
export function linesPart({ packed, bytes }: Pick<Frame, 'bytes' | 'packed'>): EntryPart {
  return {
    kind: 'lines',
    frame: bytes,
    // To find the end of a log, checksums are enough.
    get lines() {
      return decodeLines(packed);
    },
    get bytes() {
      return unpackLines(packed);
    },
  };
}
