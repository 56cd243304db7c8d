/** Appends to the log. The last frame of an entry has the commit line, which decides it. */
import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, ftruncateSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { syncFolder, writeAt } from '../store/folder.ts';
import { LogFailure, onLog } from '../store/log-errors.ts';
import { formatMs } from '../time.ts';
import { VERSION } from '../version.ts';
import { type Commit, LOG_FORMAT, type Mark, type Operation, type SegmentHeader } from './format.ts';
import { chainChecksum, type EntryPart, encodeFrame } from './frame.ts';
import { segmentPath } from './segment.ts';
import type { Tail } from './torn-end.ts';

/** A segment is closed at the end of the first entry beyond this size. */
const SEGMENT_BYTES = 64 * 1024 * 1024;

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

/** The last entry; a log that begins in the middle has none, and only its mark counts. */
type LastEntry = Mark & Partial<Pick<Commit, 'operation'>>;

export type LogWriter = ReturnType<typeof logWriter>;

/** @param log tests make smaller segments @param tail of findTail; a segment of another version of the program is closed */
export function logWriter(
  { folder, segmentBytes = SEGMENT_BYTES }: { readonly folder: string; readonly segmentBytes?: number },
  tail: { readonly last: LastEntry | null; readonly segment: Tail['segment'] },
) {
  let { last } = tail;
  /** Null: the next entry starts a segment. */
  let open: { readonly path: string; readonly file: number } | null = null;
  /** Where the last entry ends in the open segment, and where the next frame begins. */
  let end = 0;
  let offset = 0;
  /** Whether something was written after the last entry. */
  let isDirty = false;
  let frames = 0;
  let checksum = 0;
  /** Why nothing may be appended any more: it is not known what is on the disk. */
  let failure: LogFailure | null = null;

  const { segment } = tail;
  if (segment !== null && segment.program === VERSION && segment.bytes < segmentBytes) {
    const { path } = segment;
    open = { path, file: onLog('write', path, () => openSync(path, 'r+')) };
    beginAt(segment.bytes);
  }

  /** The next entry begins at this byte of the segment. */
  function beginAt(byte: number): void {
    end = byte;
    offset = byte;
    isDirty = false;
    frames = 0;
    checksum = 0;
  }

  function startSegment(path: string) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const header: SegmentHeader = {
      wirewatch_log: 'detections',
      format: LOG_FORMAT,
      program: VERSION,
      first_entry: (last?.entry ?? 0) + 1,
    };
    // Overwrites a segment that a crash left without an entry.
    const file = openSync(path, 'w', 0o600);
    try {
      const frame = encodeFrame('header', `${JSON.stringify(header)}\n`);
      writeAt(file, frame, 0);
      // Before its first entry counts: the entry's own fsync covers what is written here, but not the name.
      syncFolder(folder);
      syncFolder(dirname(folder));
      beginAt(frame.length);
      return { path, file };
    } catch (error) {
      closeSync(file);
      throw error;
    }
  }

  function write(bytes: Uint8Array): void {
    if (failure !== null) throw failure;
    const path = open?.path ?? segmentPath(folder, (last?.entry ?? 0) + 1);
    onLog('write', path, () => {
      open ??= startSegment(path);
      isDirty = true;
      writeAt(open.file, bytes, offset);
    });
    offset += bytes.length;
  }

  /** Appends a frame of kind `lines` that another thread made. */
  function appendFrame(frame: Uint8Array): void {
    write(frame);
    frames += 1;
    checksum = chainChecksum(checksum, Buffer.from(frame.buffer, frame.byteOffset).readUInt32LE(12));
  }

  /** If it fails, nothing can be appended any more. @throws LogFailure */
  function settle(doing: string, work: (file: number) => void): void {
    // The system reports a failed write once: asked again, it would say that all is well.
    if (failure !== null) throw failure;
    if (open === null) return;
    try {
      work(open.file);
    } catch (error) {
      failure = new LogFailure(doing, open.path, error);
      throw failure;
    }
  }

  /** Makes what was written durable. @throws LogFailure; then nothing can be appended any more */
  const sync = () => settle('sync', (file) => fsyncSync(file));

  /** @returns whether the segment is full */
  function noteDecided(commit: Commit): boolean {
    last = commit;
    beginAt(offset);
    return end >= segmentBytes;
  }

  /** The next entry starts a new segment. */
  function close(): void {
    if (open !== null) closeSync(open.file);
    open = null;
    beginAt(0);
  }

  return {
    ...{ appendFrame, sync, close },
    get last(): LastEntry | null {
      return last;
    },
    isPending: () => frames > 0,
    /** Appends lines to the entry, if there are any. @throws LogFailure; then `rollback` discards the entry */
    append(lines: string): void {
      if (lines !== '') appendFrame(encodeFrame('lines', lines));
    },
    /**
     * Decides the entry, and makes it durable.
     * @param lines the rest of the entry
     * @param mark of a snapshot, which takes the place of the entry with this number and id
     * @throws LogFailure; if the commit line was not written, `rollback` discards the entry. After a failed fsync nothing
     *   can be appended, and the next start finds out whether the entry is there
     */
    commit(lines: string, operation: Operation, nowMs: number, mark: Mark | null = null): Commit {
      const next = commitAfter(last, operation, nowMs);
      const place = mark === null ? {} : { entry: mark.entry, id: mark.id, after: null };
      const commit = { ...next, ...place, frames, checksum };
      write(encodeFrame('commit', `${lines}${JSON.stringify({ commit })}\n`));
      sync();
      if (noteDecided(commit)) close();
      return commit;
    },
    /** Appends a part of an entry that was checked. The entry is durable after `sync`. */
    adopt({ frame, commit }: Pick<EntryPart, 'frame' | 'commit'>) {
      if (commit === null) return appendFrame(frame.bytes);
      write(frame.bytes);
      if (!noteDecided(commit)) return;
      sync();
      close();
    },
    /** Discards what was appended after the last entry. @throws LogFailure */
    rollback(): void {
      // A write that failed half-way may have left bytes after the offset.
      if (!isDirty || failure !== null) return;
      settle('cut', (file) => ftruncateSync(file, end));
      beginAt(end);
    },
  };
}
