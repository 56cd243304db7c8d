/**
 * What a restore discards: entries that the restored log does not have. Clients may have read what they said, so
 * positions, version epochs and detections of them count for the epoch that the restore begins.
 */
import { rmSync, truncateSync } from 'node:fs';
import { isObject, type Mark, parse } from '../log/format.ts';
import { commitsBackwards, entriesAfter } from '../log/log-reader.ts';
import { listSegments } from '../log/segment.ts';
import { failed } from '../refused.ts';
import type { DataFolder } from '../store/folder.ts';
import { isLogError } from '../store/log-errors.ts';
import { readLogMarkOf } from '../store/log-mark.ts';
import { formatMs, parseInstant } from '../time.ts';

/** What the entries of a log after one gave out. */
export class Given {
  entries = 0;
  /** The last of them. */
  last: Mark | null = null;
  /** Whether all of them could be read. */
  isWhole = true;
  /** The first and the last position of a row. */
  first = Number.POSITIVE_INFINITY;
  position = 0;
  /** The greatest number of a version epoch; 0: they began none. */
  epoch = 0;
  /** The first position after which an epoch announced changes again: clients may have read only a part of them. */
  announced_after = Number.POSITIVE_INFINITY;
  /** The ids of detections that were created or changed. */
  readonly undone = new Set<string>();

  add(line: string): void {
    const id = DETECTION_LINE.exec(line)?.[1];
    if (id !== undefined) this.undone.add(id);
    // Lines of detections say nothing more of positions.
    if (!line.startsWith('{"put":"delivery"') && !line.startsWith('{"put":"version_epoch"')) return;
    const value = parse(line);
    const row = isObject(value) && isObject(value.row) ? value.row : {};
    this.first = Math.min(this.first, Number(row.first_position ?? this.first));
    this.position = Math.max(this.position, Number(row.last_position ?? row.position ?? 0));
    this.epoch = Math.max(this.epoch, Number(row.number ?? 0));
    this.announced_after = Math.min(
      this.announced_after,
      Number(row.announced_after ?? this.announced_after),
    );
  }
}

const DETECTION_LINE = /^\{"(?:row|changed|rescored)":"([^"]+)"/;

/** @param after null: from the beginning on */
function givenAfter(log: string, after: Mark | null): Given {
  const given = new Given();
  given.last = after;
  try {
    for (const { part } of entriesAfter(log, after)) {
      for (const line of part.lines) given.add(line);
      if (part.commit === null) continue;
      given.entries += 1;
      given.last = part.commit;
    }
  } catch (error) {
    if (!isLogError(error)) throw error;
    given.isWhole = false;
  }
  return given;
}

/** Truncates a log after the last entry that was written at or before a time. @returns what it had after that */
export function cutLog(log: string, untilMs: number): Given {
  let kept: { readonly path: string; readonly end: number; readonly mark: Mark } | null = null;
  for (const { segment, part } of entriesAfter(log, null)) {
    if (part.commit === null || (parseInstant(part.commit.at) ?? 0) > untilMs) continue;
    kept = { path: segment.path, end: part.frame.end, mark: part.commit };
  }
  if (kept === null) throw failed(`it contains nothing from before ${formatMs(untilMs)}`);
  const given = givenAfter(log, kept.mark);
  const { path, end } = kept;
  for (const segment of listSegments(log)) if (segment.path > path) rmSync(segment.path);
  // The recovery that follows puts what is left into a new file, and syncs it.
  truncateSync(path, end);
  return given;
}

/** How the history of a data folder differs from the one that replaces it. */
export interface Replaced {
  /** What only the data folder has. */
  readonly given: Given;
  /** Whether both end with the same entry: then nothing is lost. */
  readonly isSame: boolean;
  /** The last position that both have; infinite: all of the restored ones; null: that is not known. */
  readonly parted: number | null;
}

/** @param live the data folder; @param stage with the restored log */
export function replacedHistory(live: DataFolder, stage: Pick<DataFolder, 'log'>): Replaced {
  const common = lastInBoth(live.log, stage.log);
  const given = givenAfter(live.log, common);
  // Without an entry in common, all of it seems to be new.
  if (common === null) given.undone.clear();
  const own = givenAfter(stage.log, common);
  const isComplete =
    common !== null && given.isWhole && given.last?.id === readLogMarkOf(live.detections)?.id;
  return {
    given,
    isSame: isComplete && given.entries === 0 && own.entries === 0,
    // Clients of an epoch that the restored log does not know may come from another history still.
    parted: isComplete && given.epoch === 0 ? own.first - 1 : null,
  };
}

function lastInBoth(log: string, other: string): Mark | null {
  try {
    const ids = new Map(commitsBackwards(other).map(({ entry, id }) => [entry, id]));
    return commitsBackwards(log).find(({ entry, id }) => ids.get(entry) === id) ?? null;
  } catch (error) {
    if (!isLogError(error)) throw error;
    return null;
  }
}
