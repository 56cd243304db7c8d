/**
 * Appending to a log. An entry is any number of frames; with its last one, the commit line, it is decided.
 *
 * One writer at a time: the thread that ingests, or whoever holds the write lock of access.db.
 */
import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, ftruncateSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { syncFolder } from '../store/folder.ts';
import { formatMs } from '../time.ts';
import {
  type Commit,
  LOG_FORMAT,
  type LogKind,
  type Mark,
  type Operation,
  type SegmentHeader,
} from './format.ts';
import { chainChecksum, encodeFrame } from './frame.ts';
import { LogFailure } from './log-error.ts';
import type { Tail } from './log-reader.ts';
import { segmentPath } from './segment.ts';

/** A segment is closed at the first end of an entry behind this size. */
const SEGMENT_BYTES = 64 * 1024 * 1024;

export interface LogOptions {
  readonly folder: string;
  readonly kind: LogKind;
  /** The version of this program. */
  readonly program: string;
  readonly segmentBytes?: number;
}

export class LogWriter {
  readonly #options: LogOptions;
  #last: Mark | null;
  #path: string | null = null;
  #file: number | null = null;
  /** Where the last entry ends in the open segment. */
  #end = 0;
  /** Where the entry that is being appended ends so far. */
  #offset = 0;
  /** Whether something was written behind the last entry. */
  #isDirty = false;
  #frames = 0;
  #checksum = 0;
  /** Where the entry that was written last begins, and which one came before it. */
  #begin: { readonly path: string; readonly bytes: number; readonly last: Mark | null } | null = null;
  /** Why nothing may be appended any more: what is on the disk is not known. */
  #failure: LogFailure | null = null;

  /** @param tail of {@link findTail}; a segment of another version of the program is closed */
  constructor(options: LogOptions, { last, segment }: { last: Mark | null; segment: Tail['segment'] }) {
    this.#options = options;
    this.#last = last;
    if (segment === null || segment.program !== options.program) return;
    if (segment.bytes >= (options.segmentBytes ?? SEGMENT_BYTES)) return;
    this.#path = segment.path;
    this.#end = segment.bytes;
    this.#offset = segment.bytes;
  }

  /** The last entry that was decided. */
  get last(): Mark | null {
    return this.#last;
  }

  /** Whether frames were appended since the last entry. */
  get isPending(): boolean {
    return this.#frames > 0;
  }

  /** Appends lines to the entry. @throws LogFailure; then {@link rollback} takes the entry back */
  append(lines: string): void {
    this.appendFrame(encodeFrame('lines', lines));
  }

  /** Appends a frame of kind `lines` that another thread has made. */
  appendFrame(frame: Uint8Array): void {
    this.#write(frame);
    this.#frames += 1;
    this.#checksum = chainChecksum(
      this.#checksum,
      Buffer.from(frame.buffer, frame.byteOffset).readUInt32LE(12),
    );
  }

  /**
   * Decides the entry, and makes it durable.
   *
   * @param lines what else belongs to it
   * @throws LogFailure: before the commit line was written the entry can be taken back; after a failed fsync nothing can
   *   be appended any more, and the next start finds out whether it holds
   */
  commit(lines: string, operation: Operation, nowMs: number): Commit {
    const commit: Commit = {
      entry: (this.#last?.entry ?? 0) + 1,
      id: randomBytes(8).toString('hex'),
      after: this.#last?.id ?? null,
      at: formatMs(nowMs),
      operation,
      frames: this.#frames,
      checksum: this.#checksum,
    };
    this.#write(encodeFrame('commit', `${lines}${JSON.stringify({ commit })}\n`));
    const path = this.#path ?? '';
    this.#begin = { path, bytes: this.#end, last: this.#last };
    try {
      fsyncSync(this.#file ?? -1);
    } catch (error) {
      this.#failure = new LogFailure('sync', path, error);
      throw this.#failure;
    }
    this.#last = commit;
    this.#isDirty = false;
    this.#end = this.#offset;
    this.#frames = 0;
    this.#checksum = 0;
    if (this.#end >= (this.#options.segmentBytes ?? SEGMENT_BYTES)) this.closeSegment();
    return commit;
  }

  /** Takes back what was appended since the last entry. @throws LogFailure */
  rollback(): void {
    // What a write that failed half-way has left is behind #offset.
    if (!this.#isDirty || this.#failure !== null) return;
    try {
      if (this.#file !== null) ftruncateSync(this.#file, this.#end);
    } catch (error) {
      this.#failure = new LogFailure('cut', this.#path ?? '', error);
      throw this.#failure;
    }
    this.#offset = this.#end;
    this.#isDirty = false;
    this.#frames = 0;
    this.#checksum = 0;
  }

  /**
   * Takes back the entry that was written last, also after it was decided: only for one who knows that nobody has read it,
   * nor appended since.
   *
   * @throws LogFailure
   */
  undo(): void {
    const begin = this.#begin ?? { path: this.#path, bytes: this.#end, last: this.#last };
    if (begin.path === null) return;
    try {
      this.#file ??= openSync(begin.path, 'r+');
      ftruncateSync(this.#file, begin.bytes);
      fsyncSync(this.#file);
    } catch (error) {
      this.#failure = new LogFailure('cut', begin.path, error);
      throw this.#failure;
    }
    this.#path = begin.path;
    this.#last = begin.last;
    this.#end = begin.bytes;
    this.#offset = begin.bytes;
    this.#failure = null;
  }

  /** The next entry begins a segment. */
  closeSegment(): void {
    this.close();
    this.#path = null;
    this.#end = 0;
    this.#offset = 0;
  }

  close(): void {
    if (this.#file !== null) closeSync(this.#file);
    this.#file = null;
  }

  #write(bytes: Uint8Array): void {
    if (this.#failure !== null) throw this.#failure;
    const path = this.#path ?? segmentPath(this.#options.folder, (this.#last?.entry ?? 0) + 1);
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
    const { folder, kind, program } = this.#options;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const header: SegmentHeader = {
      wirewatch_log: kind,
      format: LOG_FORMAT,
      program,
      first_entry: (this.#last?.entry ?? 0) + 1,
    };
    // Of one that was begun and came to nothing, nothing is kept.
    const file = openSync(path, 'w', 0o600);
    try {
      const frame = encodeFrame('header', `${JSON.stringify(header)}\n`);
      writeAt(file, frame, 0);
      // Before its first entry counts: the entry's own fsync covers what is written here, but not the name.
      syncFolder(folder);
      syncFolder(dirname(folder));
      this.#end = frame.length;
      this.#offset = frame.length;
    } catch (error) {
      closeSync(file);
      throw error;
    }
    this.#path = path;
    this.#file = file;
    return file;
  }
}

/** All of it: a full disk may take only the beginning, and says so the next time. */
function writeAt(file: number, bytes: Uint8Array, offset: number): void {
  for (let written = 0; written < bytes.length; )
    written += writeSync(file, bytes, written, bytes.length - written, offset + written);
}
