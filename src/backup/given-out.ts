/**
 * What histories gave out that a restore discards: positions, version epochs, and the detections that clients may have in
 * versions which are gone.
 */
import { rmSync, truncateSync } from 'node:fs';
import { type Commit, isObject, type Mark, parse } from '../history/format.ts';
import { LogDamage } from '../history/log-error.ts';
import { entriesAfter } from '../history/log-reader.ts';
import { bytesOf, listSegments } from '../history/segment.ts';
import { Refused } from '../refused.ts';
import type { DataFolder } from '../store/folder.ts';
import { readLogMarkOf } from '../store/log-mark.ts';
import { formatMs, parseInstant } from '../time.ts';

/** Facts of the part of the backup's history that is discarded. */
export interface Cut {
  readonly entries: number;
  /** The last position that it gave out. */
  readonly position: number;
  /** Version epochs in it. */
  readonly epochs: readonly AbandonedEpoch[];
  /** The ids of detections that it created or changed. */
  readonly undone: ReadonlySet<string>;
}

interface AbandonedEpoch {
  readonly at: number;
  /** After which it delivered; 0: an earlier history of which it knew, and which delivered. */
  readonly position: number;
  /** What changed after this position was announced again, and clients may have read only a part of that. */
  readonly announced_after: number;
}

/** Facts of the data folder's own history, if it does not continue that of the backup. */
export interface Replaced extends Omit<Cut, 'entries'> {
  /** The last position that both histories have; infinite: one of them continues the other. */
  readonly parted: number;
}

export const NOTHING_CUT: Cut = { entries: 0, position: 0, epochs: [], undone: new Set() };

/** Truncates a log after the last entry that was written at or before a time. */
export function cutLog(log: string, untilMs: number): Cut {
  let kept: { readonly path: string; readonly end: number; readonly mark: Mark } | null = null;
  for (const { segment, part } of entriesAfter(log, null)) {
    if (part.kind !== 'commit' || (parseInstant(part.commit.at) ?? 0) > untilMs) continue;
    kept = { path: segment.path, end: part.end, mark: part.commit };
  }
  if (kept === null) throw new Refused('failed', `it contains nothing from before ${formatMs(untilMs)}`);
  let entries = 0;
  const given = new Given();
  for (const { part } of entriesAfter(log, kept.mark)) {
    if (part.kind === 'commit') entries += 1;
    given.add(part.lines);
  }
  const { path, end } = kept;
  for (const segment of listSegments(log)) if (segment.path > path) rmSync(segment.path);
  // The recovery that follows puts what is left into a new file, and syncs it.
  truncateSync(path, end);
  return { entries, position: given.position, epochs: given.epochs, undone: given.undone };
}

const DETECTION_LINE = /^\{"(?:row|changed|rescored)":"([^"]+)"/;

/** What a log gave out: positions, version epochs, detections. */
class Given {
  /** The last position. */
  position = 0;
  /** The last position of a row. */
  delivered = 0;
  /** The ids of detections that it created or changed. */
  readonly undone = new Set<string>();
  readonly #epochs = new Map<number, AbandonedEpoch>();

  get epochs(): readonly AbandonedEpoch[] {
    return [...this.#epochs.values()];
  }

  add(lines: readonly string[]): void {
    for (const line of lines) {
      const id = DETECTION_LINE.exec(line)?.[1];
      if (id !== undefined) this.undone.add(id);
      // Lines of detections say nothing more of positions.
      if (!line.startsWith('{"put":"delivery"') && !line.startsWith('{"put":"version_epoch"')) continue;
      const value = parse(line);
      const row = isObject(value) && isObject(value.row) ? value.row : {};
      this.delivered = Math.max(this.delivered, Number(row.last_position ?? 0));
      this.position = Math.max(this.position, this.delivered, Number(row.position ?? 0));
      if (row.number !== undefined)
        this.#epochs.set(Number(row.number), {
          at: Number(row.at),
          position: Number(row.position),
          announced_after: Number(row.announced_after ?? Number.POSITIVE_INFINITY),
        });
    }
  }
}

interface Comparing {
  /** With the log of the backup. */
  readonly stage: Pick<DataFolder, 'log'>;
  readonly onProgress: (what: string, done: number, total: number) => void;
}

/**
 * @param live the data folder
 * @returns null: nothing shows that it is of the same installation, or it is damaged before they part; cursors will show
 *   the rest
 */
export function replacedHistory(live: DataFolder, { stage, onProgress }: Comparing): Replaced | null {
  const { log } = live;
  const otherBytes = bytesOf(listSegments(stage.log));
  const total = otherBytes + bytesOf(listSegments(log));
  const given = new Given();
  let parted: number | null = null;
  let last: Mark | null = null;
  let [isParted, bytesRead] = [false, 0];
  const others = commitsOf(stage.log);
  let other = others.next().value;
  try {
    for (const { part, bytes } of entriesAfter(log, null)) {
      given.add(part.lines);
      if (part.kind !== 'commit') continue;
      last = part.commit;
      while (other !== undefined && other.commit.entry < part.commit.entry) {
        bytesRead = other.bytes;
        other = others.next().value;
      }
      onProgress('comparing the logs', bytesRead + bytes, total);
      if (other?.commit.entry !== part.commit.entry) continue;
      isParted ||= other.commit.id !== part.commit.id;
      if (isParted) continue;
      parted = given.delivered;
      given.undone.clear();
    }
  } catch (error) {
    if (!(error instanceof LogDamage)) throw error;
    if (!isParted) return null;
  } finally {
    others.return(undefined);
  }
  if (parted === null) return null;
  // An epoch that delivered nothing has issued no position, cursor or version. Without it, a copy that is restored again
  // and again does not use up the positions.
  const isComplete = last !== null && last.id === readLogMarkOf(live.detections)?.id;
  const delivered = isComplete ? given.delivered : Number.POSITIVE_INFINITY;
  const epochs = given.epochs.filter(({ position }) => position === 0 || position < delivered);
  return {
    parted: isParted && parted < delivered ? parted : Number.POSITIVE_INFINITY,
    position: Math.max(given.delivered, ...epochs.map(({ position }) => position)),
    epochs,
    undone: given.undone,
  };
}

function* commitsOf(log: string): Generator<{ commit: Commit; bytes: number }, undefined, undefined> {
  for (const { part, bytes } of entriesAfter(log, null))
    if (part.kind === 'commit') yield { commit: part.commit, bytes };
}
