/** Applies the entries of the log that `detections.db` lacks: all at once, or in steps with progress. */
import { CHECKPOINT_BYTES, checkpoint, walBytes } from '../store/checkpoint.ts';
import type { Database } from '../store/database.ts';
import type { DataFolder } from '../store/folder.ts';
import { readLogMark } from '../store/log-mark.ts';
import { logApplier } from './apply-log.ts';
import type { Mark } from './format.ts';
import { entriesAfter, type LocatedPart } from './log-reader.ts';
import { bytesOf, listSegments } from './segment.ts';

export interface ApplyOptions {
  readonly folder: Pick<DataFolder, 'log'>;
  /** In bytes of the log. */
  readonly onProgress: (done: number, total: number) => void;
  /** Called between entries: throws to interrupt the work. */
  readonly between: () => Promise<void>;
}

/** Frames between two turns of the event loop. */
const FRAMES_A_TURN = 16;

/** Applies what the database lacks, after SQLite refused the commit of a decided entry. @returns how many entries */
export function applyPending(db: Database, folder: string): number {
  let applied = 0;
  for (const { part } of applyEntries(db, folder, Number.POSITIVE_INFINITY))
    if (part.commit !== null) applied += 1;
  return applied;
}

/** Applies the entries that the database lacks, up to one, and yields each part after that. */
function* applyEntries(db: Database, folder: string, end: number): Generator<LocatedPart> {
  const applier = logApplier(db);
  try {
    for (const located of entriesAfter(folder, readLogMark(db))) {
      applier.apply(located.part);
      yield located;
      if ((located.part.commit?.entry ?? 0) >= end) break;
    }
    applier.commit();
  } finally {
    applier.rollback();
  }
}

/** Applies the entries that the database lacks, up to one. @returns how many */
export async function applyAfter(
  db: Database,
  { folder, onProgress, between }: ApplyOptions,
  end = Number.POSITIVE_INFINITY,
): Promise<number> {
  const mark = readLogMark(db);
  if ((mark?.entry ?? 0) >= end) return 0;
  const total = bytesAfter(folder.log, mark);
  let applied = 0;
  let frames = 0;
  for (const { part, bytes } of applyEntries(db, folder.log, end)) {
    frames += 1;
    if (part.commit !== null) {
      applied += 1;
      onProgress(bytes, total);
    }
    checkpointIfLarge(db);
    if (part.commit !== null || frames % FRAMES_A_TURN === 0) await between();
  }
  return applied;
}

/** Between two transactions, so that the write-ahead log does not grow with what is applied. */
export function checkpointIfLarge(db: Database): void {
  if (!db.inTransaction && walBytes(db) > CHECKPOINT_BYTES) checkpoint(db);
}

/** Bytes of the segments with the entries after one. */
export function bytesAfter(log: string, mark: Mark | null): number {
  const segments = listSegments(log);
  const first = segments.findLastIndex(({ firstEntry }) => firstEntry <= (mark?.entry ?? 0) + 1);
  return bytesOf(segments.slice(Math.max(0, first)));
}
