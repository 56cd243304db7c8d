/** Appends to the log. The last frame of an entry has the commit line, which decides it. */
import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, ftruncateSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { syncFolder, writeAt } from '../store/folder.ts';
import { LogFailure } from '../store/log-errors.ts';
import { formatMs } from '../time.ts';
import { VERSION } from '../version.ts';
import { type Commit, LOG_FORMAT, type Mark, type Operation, type SegmentHeader } from './format.ts';
import { chainChecksum, type EntryPart, encodeFrame } from './frame.ts';
import type { Tail } from './log-reader.ts';
import { segmentPath } from './segment.ts';

/** A segment is closed at the end of the first entry beyond this size. */
const SEGMENT_BYTES = 64 * 1024 * 1024;

export interface LogOptions {
  readonly folder: string;
  readonly segmentBytes?: number;
}

/** The commit line of an entry that has nothing else, after another one; null: the first. */
export function commitAfter(last: Mark | null, operation: Operation, nowMs: number): Commit {
  return {
    entry: (last?.entry ?? 0) + 1,
    id: randomBytes(8).toString('hex'),
    after: last?.id ?? null,
    at: formatMs(nowMs),
    operation,
    frames: 0,
    checksum: 0,
  };
}

export class LogWriter {
  readonly #options: LogOptions;
  last: Mark | null;
  #path: string | null = null;
  #file: number | null = null;
  /** Where the last entry ends in the open segment. */
  #end = 0;
  #offset = 0;
  /** Whether something was written after the last entry. */
  #isDirty = false;
  #frames = 0;
  #checksum = 0;
  /** Why nothing may be appended any more: it is not known what is on the disk. */
  #failure: LogFailure | null = null;

  /** @param tail of {@link findTail}. A segment of another version of the program is closed */
  constructor(options: LogOptions, { last, segment }: { last: Mark | null; segment: Tail['segment'] }) {
    this.#options = options;
    this.last = last;
    if (segment === null || segment.program !== VERSION) return;
    if (segment.bytes >= (options.segmentBytes ?? SEGMENT_BYTES)) return;
    this.#path = segment.path;
    this.#beginAt(segment.bytes);
  }

  get isPending(): boolean {
    return this.#frames > 0;
  }

  /** Appends lines to the entry, if there are any. @throws LogFailure; then {@link rollback} discards the entry */
  append(lines: string): void {
    if (lines !== '') this.appendFrame(encodeFrame('lines', lines));
  }

  /** Appends a frame of kind `lines` that another thread made. */
  appendFrame(frame: Uint8Array): void {
    this.#write(frame);
    this.#frames += 1;
    const checksum = Buffer.from(frame.buffer, frame.byteOffset).readUInt32LE(12);
    this.#checksum = chainChecksum(this.#checksum, checksum);
  }

  /**
   * Decides the entry, and makes it durable.
   * @param lines the rest of the entry
   * @param mark of a snapshot, which takes the place of the entry with this number and id
   * @throws LogFailure; if the commit line was not written, {@link rollback} discards the entry. After a failed fsync
   *   nothing can be appended, and the next start finds out whether the entry is there
   */
  commit(lines: string, operation: Operation, nowMs: number, mark: Mark | null = null): Commit {
    const next = commitAfter(this.last, operation, nowMs);
    const place = mark === null ? {} : { entry: mark.entry, id: mark.id, after: null };
    const commit = { ...next, ...place, frames: this.#frames, checksum: this.#checksum };
    this.#write(encodeFrame('commit', `${lines}${JSON.stringify({ commit })}\n`));
    this.sync();
    if (this.#decided(commit)) this.closeSegment();
    return commit;
  }

  /** Appends a part of an entry that was checked. The entry is durable once the segment is closed: {@link closeDurably}. */
  adopt({ frame, commit }: Pick<EntryPart, 'frame' | 'commit'>): void {
    if (commit === null) {
      this.appendFrame(frame.bytes);
      return;
    }
    this.#write(frame.bytes);
    if (this.#decided(commit)) this.closeDurably();
  }

  /** @returns whether the segment is full */
  #decided(commit: Commit): boolean {
    this.last = commit;
    this.#beginAt(this.#offset);
    return this.#end >= (this.#options.segmentBytes ?? SEGMENT_BYTES);
  }

  /** Makes what was written durable. @throws LogFailure; then nothing can be appended any more */
  sync(): void {
    // The system reports a failed write once: asked again, it would say that all is well.
    if (this.#failure !== null) throw this.#failure;
    try {
      if (this.#file !== null) fsyncSync(this.#file);
    } catch (error) {
      this.#failure = new LogFailure('sync', this.#path ?? '', error);
      throw this.#failure;
    }
  }

  closeDurably(): void {
    this.sync();
    this.closeSegment();
  }

  /** Discards what was appended after the last entry. @throws LogFailure */
  rollback(): void {
    // A write that failed half-way may have left bytes after #offset.
    if (!this.#isDirty || this.#failure !== null) return;
    try {
      if (this.#file !== null) ftruncateSync(this.#file, this.#end);
    } catch (error) {
      this.#failure = new LogFailure('cut', this.#path ?? '', error);
      throw this.#failure;
    }
    this.#beginAt(this.#end);
  }

  /** The next entry begins at this byte of the segment. */
  #beginAt(end: number): void {
    this.#end = end;
    this.#offset = end;
    this.#isDirty = false;
    this.#frames = 0;
    this.#checksum = 0;
  }

  /** The next entry starts a new segment. */
  closeSegment(): void {
    this.close();
    this.#path = null;
    this.#beginAt(0);
  }

  close(): void {
    if (this.#file !== null) closeSync(this.#file);
    this.#file = null;
  }

  #write(bytes: Uint8Array): void {
    if (this.#failure !== null) throw this.#failure;
    const path = this.#path ?? segmentPath(this.#options.folder, (this.last?.entry ?? 0) + 1);
    try {
      const file = this.#open(path);
      this.#isDirty = true;
      writeAt(file, bytes, this.#offset);
    } catch (error) {
      throw new LogFailure('write', path, error);
    }
    this.#offset += bytes.length;
  }

  #open(path: string): number {
    if (this.#file !== null) return this.#file;
    if (this.#path !== null) {
      this.#file = openSync(path, 'r+');
      return this.#file;
    }
    const { folder } = this.#options;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const header: SegmentHeader = {
      wirewatch_log: 'detections',
      format: LOG_FORMAT,
      program: VERSION,
      first_entry: (this.last?.entry ?? 0) + 1,
    };
    // Overwrites a segment that a crash left without an entry.
    const file = openSync(path, 'w', 0o600);
    try {
      const frame = encodeFrame('header', `${JSON.stringify(header)}\n`);
      writeAt(file, frame, 0);
      // Before its first entry counts: the entry's own fsync covers what is written here, but not the name.
      syncFolder(folder);
      syncFolder(dirname(folder));
      this.#beginAt(frame.length);
    } catch (error) {
      closeSync(file);
      throw error;
    }
    this.#path = path;
    this.#file = file;
    return file;
  }
}
