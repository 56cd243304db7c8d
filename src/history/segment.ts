/**
 * Segments: the files of a log. Each is named by its first entry and is only appended to; all but the last are closed
 * and never change.
 */
import { closeSync, fstatSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isErrorCode } from '../refused.ts';
import type { DataFolder } from '../store/folder.ts';
import {
  type Commit,
  LOG_FORMAT,
  type LogKind,
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
import { LogDamage, LogFailure } from './log-error.ts';

/** What is searched at once for a frame; two pieces overlap by the head of one. */
const SEARCH_BYTES = 4 * 1024 * 1024;
const NAME = /^(\d{12})\.zst$/;

export interface Segment {
  readonly path: string;
  readonly firstEntry: number;
}

export interface Frame {
  readonly kind: FrameKind;
  /** The zstd frame. */
  readonly packed: Buffer;
  readonly checksum: number;
  /** Where the next frame begins in its file. */
  readonly end: number;
}

export function segmentPath(folder: string, firstEntry: number): string {
  return join(folder, `${String(firstEntry).padStart(12, '0')}.zst`);
}

/** The segments of a log, oldest first; none where there is no folder. @throws LogFailure when it cannot be read */
export function listSegments(folder: string): Segment[] {
  try {
    return readdirSync(folder)
      .sort()
      .flatMap((name) => {
        const digits = NAME.exec(name)?.[1];
        return digits === undefined ? [] : [{ path: join(folder, name), firstEntry: Number(digits) }];
      });
  } catch (error) {
    if (isErrorCode(error, 'ENOENT')) return [];
    throw new LogFailure('read', folder, error);
  }
}

/** Both logs, in the order in which they are copied: detections first, so that no account they name is missing. */
export const LOG_KINDS: readonly LogKind[] = ['detections', 'access'];

/** The folder of a log in a data folder, or in a backup, which has the same layout. */
export function logFolder(data: Pick<DataFolder, 'log' | 'accessLog'>, kind: LogKind): string {
  return kind === 'detections' ? data.log : data.accessLog;
}

/** What they take on the disk. */
export function bytesOf(segments: readonly Segment[]): number {
  return segments.reduce((sum, { path }) => sum + statSync(path).size, 0);
}

/** Reads a segment frame by frame. One that is written meanwhile can be read on from where it ended. */
export class FrameReader {
  readonly #path: string;
  readonly #file: number;
  #size: number;
  #offset: number;
  #isOpen = true;

  /** Of the file that was opened: a segment that was rewritten is another. */
  readonly inode: number;

  /**
   * @param start where a frame begins in the file of an inode; of another file, it is read from its beginning
   * @throws LogFailure when the file cannot be opened
   */
  constructor(path: string, start = { inode: 0, offset: 0 }) {
    this.#path = path;
    try {
      this.#file = openSync(path, 'r');
      const { size, ino } = fstatSync(this.#file);
      this.#size = size;
      this.inode = ino;
      this.#offset = ino === start.inode ? start.offset : 0;
    } catch (error) {
      throw new LogFailure('read', path, error);
    }
  }

  /** Where the last intact frame ends. */
  get offset(): number {
    return this.#offset;
  }

  /** Whether all that there is was intact. */
  get isAtEnd(): boolean {
    return this.#offset === this.#size;
  }

  /** @returns null at the end, and where the next frame is not intact */
  next(): Frame | null {
    this.#size = Math.max(this.#size, fstatSync(this.#file).size);
    const frame = this.frameAt(this.#offset);
    this.#offset = frame?.end ?? this.#offset;
    return frame;
  }

  /** @param offset where a frame begins; @returns null where it is not intact */
  frameAt(offset: number): Frame | null {
    const header = decodeFrameHeader(this.read(offset, FRAME_HEADER_BYTES));
    if (header === null) return null;
    const begin = offset + FRAME_HEADER_BYTES;
    const packed = this.read(begin, header.length);
    if (packed.length < header.length || !isFrameIntact(header, packed)) return null;
    return { kind: header.kind, packed, checksum: header.checksum, end: begin + header.length };
  }

  close(): void {
    if (this.#isOpen) closeSync(this.#file);
    this.#isOpen = false;
  }

  /** As much of it as there is. */
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

/** A frame of an entry, or its last one. */
export type EntryPart =
  | {
      readonly kind: 'lines';
      readonly lines: readonly string[];
      /** The same, each with a newline at its end. */
      readonly bytes: Buffer;
    }
  | {
      readonly kind: 'commit';
      /** What the last frame holds before its commit line. */
      readonly lines: readonly string[];
      readonly commit: Commit;
      /** Where the entry ends in its segment. */
      readonly end: number;
    };

/** Puts the frames of a segment together to entries, and holds each against what its commit line says. */
export class EntryReader {
  readonly #reader: FrameReader;
  readonly #path: string;
  #frames = 0;
  #checksum = 0;
  #last: Commit | null = null;
  #end = 0;
  readonly header: SegmentHeader | null;

  /**
   * @param segment its header is null where it has none that is whole, as a crash may leave the newest
   * @throws LogDamage when it is of another log; of a newer program: refused by its format
   */
  constructor(segment: Segment, kind: LogKind) {
    this.#path = segment.path;
    this.#reader = new FrameReader(segment.path);
    try {
      const frame = this.#reader.next();
      this.header = frame === null ? null : this.#checkHeader(frame, segment, kind);
    } catch (error) {
      this.#reader.close();
      throw error;
    }
    this.#end = this.#reader.offset;
  }

  /** The last whole entry that was read. */
  get last(): Commit | null {
    return this.#last;
  }

  /** Where the last whole entry ends, or the header. */
  get end(): number {
    return this.#end;
  }

  /** Whether nothing follows the last whole entry. */
  get isWhole(): boolean {
    return this.header !== null && this.#reader.isAtEnd && this.#end === this.#reader.offset;
  }

  /**
   * @param previous the entry before the next one; undefined: not known
   * @returns null where no frame follows that is intact
   * @throws LogDamage when an entry is not what its commit line says, or does not follow on the one before
   */
  next(previous: Commit | null | undefined): EntryPart | null {
    if (this.header === null) return null;
    const frame = this.#reader.next();
    if (frame === null) return null;
    const { packed } = frame;
    if (frame.kind === 'lines') {
      this.#frames += 1;
      this.#checksum = chainChecksum(this.#checksum, frame.checksum);
      return {
        kind: 'lines',
        // Unpacked only where somebody asks for them: to find where a log ends, its checksums are enough.
        get lines() {
          return decodeLines(packed);
        },
        get bytes() {
          return unpackLines(packed);
        },
      };
    }
    if (frame.kind === 'header') throw new LogDamage(`${this.#path}: a second header`);
    const lines = decodeLines(packed);
    const commit = parseCommit(lines.pop() ?? '');
    this.#checkCommit(commit, previous, { frames: this.#frames, checksum: this.#checksum });
    this.#frames = 0;
    this.#checksum = 0;
    this.#last = commit;
    this.#end = frame.end;
    return { kind: 'commit', lines, commit, end: frame.end };
  }

  /**
   * Reads on to the end by checksums alone, and looks into the last entry: to unpack each would take many times as long.
   *
   * @throws LogDamage when that is not what its commit line says
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
    this.#checkCommit(commit, undefined, last);
    this.#last = commit;
    this.#end = last.frame.end;
  }

  /** The numbers of the entries that end, intact, behind {@link end}, where frames are not: a torn end has none. */
  entriesBehind(): number[] {
    const entries = new Set<number>();
    for (let from = this.#end + 1; ; from += SEARCH_BYTES - FRAME_HEADER_BYTES) {
      const bytes = this.#reader.read(from, SEARCH_BYTES);
      for (let at = bytes.indexOf(FRAME_MAGIC); at >= 0; at = bytes.indexOf(FRAME_MAGIC, at + 1)) {
        const header = decodeFrameHeader(bytes.subarray(at, at + FRAME_HEADER_BYTES));
        const frame = header?.kind === 'commit' ? this.#reader.frameAt(from + at) : null;
        if (frame !== null) entries.add(parseCommit(decodeLines(frame.packed).at(-1) ?? '').entry);
      }
      if (bytes.length < SEARCH_BYTES) return [...entries];
    }
  }

  close(): void {
    this.#reader.close();
  }

  #checkHeader(frame: Frame, { path, firstEntry }: Segment, kind: LogKind): SegmentHeader {
    const header = parseHeader(decodeLines(frame.packed)[0] ?? '');
    if (header.format > LOG_FORMAT)
      throw new LogDamage(
        `${path} has log format ${header.format}, but this version of Wirewatch supports format ${LOG_FORMAT}. Version ${header.program} wrote the file: use that version. Nothing was changed`,
      );
    if (frame.kind !== 'header' || header.wirewatch_log !== kind || header.first_entry !== firstEntry)
      throw new LogDamage(`${path} contains another segment than its name says`);
    return header;
  }

  #checkCommit(
    commit: Commit,
    previous: Commit | null | undefined,
    found: { readonly frames: number; readonly checksum: number },
  ): void {
    const { entry, after, frames, checksum } = commit;
    if (frames !== found.frames || checksum !== found.checksum)
      throw new LogDamage(`${this.#path}: frames of entry ${entry} are missing`);
    if (previous === undefined) return;
    if (entry !== (previous?.entry ?? 0) + 1 || after !== (previous?.id ?? null))
      throw new LogDamage(`${this.#path}: entry ${entry} does not follow entry ${previous?.entry ?? 0}`);
  }
}
