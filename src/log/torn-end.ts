/** The end of a log: where it is, whether it is only torn or may be damaged, and what a start does about it. */
import { fsyncSync, readSync, renameSync, rmSync } from 'node:fs';
import { grouped } from '../counted.ts';
import { openFile, syncFolder, writeAt } from '../store/folder.ts';
import { LogDamage, onLog } from '../store/log-errors.ts';
import type { Commit } from './format.ts';
import { listSegments, type Segment, SegmentReader } from './segment.ts';

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
