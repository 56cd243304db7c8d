/**
 * Deletes the rows of removed subscriptions from the closed segments of the log. Each segment is written to a draft,
 * synced and renamed. Numbers and ids of entries stay, so the marks of databases and backups stay valid.
 *
 * The newest segment comes first. So at any moment, also after a crash, the log has the rows of a stream up to some
 * segment, and after it a line for the end of the stream: applying it gives the database in use, column by column.
 *
 * A reader that has a segment open continues in the old file.
 */
import { fsyncSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { grouped } from '../counted.ts';
import type { StreamName } from '../detection/content-type.ts';
import { freeBytes, openFile, syncFolder } from '../store/folder.ts';
import { type Commit, parse, parseCommit } from './format.ts';
import { chainChecksum, decodeLines, encodeFrame, frameOf } from './frame.ts';
import { LogDamage } from './log-error.ts';
import { EndedStreams, LinePurge, streamOfLine } from './purge-lines.ts';
import { EntryReader, type Frame, FrameReader, listSegments, type Segment } from './segment.ts';

export interface PurgeOptions {
  /** The log of detections, whose newest segment is closed. */
  readonly folder: string;
  /** Called every few frames: waits, and throws to interrupt the purge. The next one continues it. */
  readonly between: () => Promise<void>;
  /** In segments. */
  readonly onProgress: (done: number, total: number) => void;
}

/** The free space to leave for ingest. */
const ROOM_LEFT_BYTES = 32 * 1024 * 1024;
const FRAMES_A_TURN = 16;
const NOTE = 'purged.json';

/**
 * The ordinals of streams that were purged from the log. The note is in the log's folder, and no backup has it: a
 * restored log is purged again.
 */
export function purgedStreams(folder: string): ReadonlySet<unknown> {
  try {
    const value = parse(readFileSync(join(folder, NOTE), 'utf8'));
    return new Set(Array.isArray(value) ? value : []);
  } catch {
    return new Set();
  }
}

export function notePurged(folder: string, ordinals: readonly number[]): void {
  const path = join(folder, NOTE);
  writeFileSync(`${path}.tmp`, `${JSON.stringify(ordinals)}\n`, { mode: 0o600 });
  renameSync(`${path}.tmp`, path);
}

/** @throws LogDamage if a segment is damaged, LogFailure, ENOSPC; finished segments stay purged */
export async function purgeLog({ folder, between, onProgress }: PurgeOptions): Promise<void> {
  const segments = listSegments(folder).toReversed();
  const ends = new EndedStreams();
  for (const [index, segment] of segments.entries()) {
    if (await hasRowsToPurge(segment, ends, between)) {
      await rewrite(segment, ends, between);
      syncFolder(folder);
    }
    onProgress(index + 1, segments.length);
    await between();
  }
}

/** Also notes the streams that end in the segment. */
async function hasRowsToPurge(
  segment: Segment,
  ends: EndedStreams,
  between: () => Promise<void>,
): Promise<boolean> {
  const firstEntries = new Map<StreamName, number>();
  using reader = new EntryReader(segment);
  let entry = segment.firstEntry;
  for (let part = reader.next(undefined), frames = 1; part !== null; part = reader.next(undefined)) {
    for (const line of part.lines) {
      ends.note(line, entry);
      const stream = streamOfLine(line);
      if (stream !== null && !firstEntries.has(stream)) firstEntries.set(stream, entry);
    }
    if (part.kind === 'commit') entry += 1;
    frames += 1;
    if (frames % FRAMES_A_TURN === 0) await between();
  }
  if (!reader.isWhole) throw new LogDamage(`${segment.path} is damaged at byte ${reader.end}`);
  return [...firstEntries].some(([stream, first]) => ends.endAfter(stream, first) !== null);
}

async function rewrite(segment: Segment, ends: EndedStreams, between: () => Promise<void>): Promise<void> {
  const draft = `${segment.path}.tmp`;
  using reader = new FrameReader(segment.path);
  try {
    requireRoom(segment.path);
    using file = openFile(draft, 'w');
    const rewriter = new Rewriter(segment.firstEntry, ends);
    for (let frame = reader.next(), frames = 1; frame !== null; frame = reader.next()) {
      const bytes = rewriter.frame(frame);
      if (bytes !== null) writeFileSync(file.fd, bytes);
      frames += 1;
      if (frames % FRAMES_A_TURN === 0) await between();
    }
    finish(segment, draft, file.fd, rewriter.last);
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Replaces the segment by the draft, once that is on the disk and verified. */
function finish({ path, firstEntry }: Segment, draft: string, file: number, last: Commit | null): void {
  fsyncSync(file);
  using written = new EntryReader({ path: draft, firstEntry });
  written.skipToEnd();
  if (!written.isWhole || written.last?.id !== last?.id)
    throw new LogDamage(`${draft} reads back differently from what was written. Check the disk`);
  renameSync(draft, path);
}

function requireRoom(path: string): void {
  const bytes = statSync(path).size + ROOM_LEFT_BYTES;
  if (freeBytes(path) >= bytes) return;
  const needed = `the disk needs ${grouped(Math.ceil(bytes / 1024 / 1024))} MiB of free space`;
  throw Object.assign(new Error(needed), { code: 'ENOSPC' });
}

/** Writes new frames where lines are purged, and a new commit line if a frame of its entry changed. */
class Rewriter {
  readonly #lines: LinePurge;
  #entry: number;
  #frames = 0;
  #checksum = 0;
  #isChanged = false;
  /** The last entry that was read. */
  last: Commit | null = null;

  constructor(firstEntry: number, ends: EndedStreams) {
    this.#entry = firstEntry;
    this.#lines = new LinePurge(ends);
  }

  /** @returns null if nothing is left of the frame */
  frame({ kind, packed }: Frame): Buffer | null {
    if (kind === 'header') return frameOf(kind, packed);
    const lines = decodeLines(packed);
    if (kind === 'commit') return this.#end(lines, packed);
    const kept = this.#lines.purge(lines, this.#entry);
    if (kept !== null) this.#isChanged = true;
    if (kept?.length === 0) return null;
    const frame = kept === null ? frameOf(kind, packed) : encodeFrame(kind, textOf(kept));
    this.#frames += 1;
    this.#checksum = chainChecksum(this.#checksum, frame.readUInt32LE(12));
    return frame;
  }

  #end(lines: string[], packed: Buffer): Buffer {
    const commit = parseCommit(lines.pop() ?? '');
    const kept = this.#lines.purge(lines, this.#entry);
    const changed = { ...commit, frames: this.#frames, checksum: this.#checksum };
    const isChanged = this.#isChanged || kept !== null;
    this.last = commit;
    this.#entry += 1;
    this.#frames = 0;
    this.#checksum = 0;
    this.#isChanged = false;
    if (!isChanged) return frameOf('commit', packed);
    return encodeFrame('commit', textOf([...(kept ?? lines), JSON.stringify({ commit: changed })]));
  }
}

function textOf(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('');
}
