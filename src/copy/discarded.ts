/**
 * What a restore discards: entries that the restored log does not have. Clients may have read what they said, so
 * positions, version epochs and detections of them count for the epoch that the restore begins.
 */
import { isObject } from '../is-object.ts';
import { REMOVE } from '../log/compact.ts';
import { type Mark, parse } from '../log/format.ts';
import { commitsBackwards, entriesAfter } from '../log/log-reader.ts';
import { cutAfter } from '../log/segment.ts';
import { failed } from '../refused.ts';
import type { DataFolder } from '../store/folder.ts';
import { unlessLogError } from '../store/log-errors.ts';
import { readLogMarkOf, waitsForCopyIn } from '../store/log-mark.ts';
import { keptCopies } from '../store/role.ts';
import { formatMs, parseInstant } from '../time.ts';

const DETECTION_LINE = /^\{"(?:row|changed|rescored)":"([^"]+)"/;

/** What entries gave out that are discarded. An entry may be added twice. */
export class Given {
  /** The first and the last position of a row. */
  first = Number.POSITIVE_INFINITY;
  position = 0;
  /** The greatest number of a version epoch; 0: they began none. */
  epoch = 0;
  /** The first position after which an epoch announced changes again: clients may have read only a part of them. */
  announced_after = Number.POSITIVE_INFINITY;
  /** The ids of detections that were created or changed. */
  readonly undone = new Set<string>();

  /**
   * Adds the entries of a log after one.
   * @param after null: from the beginning on; then all detections would seem to be new, and none counts as undone
   * @param until the number of the last one
   * @returns how many there are; the last of them, or without any the one before; and the subscriptions that they removed
   * @throws LogDamage, LogFailure: what could be read is added
   */
  addAfter(log: string, after: Mark | null, until = Number.POSITIVE_INFINITY) {
    const removed = new Set<number>();
    let [entries, last] = [0, after];
    for (const { part } of entriesAfter(log, after)) {
      if (part.entry > until) break;
      for (const line of part.lines()) this.#add(line, after !== null);
      if (part.commit === null) continue;
      const { kind, subscription } = part.commit.operation;
      if (kind === REMOVE) removed.add(Number(subscription));
      [entries, last] = [entries + 1, part.commit];
    }
    return { entries, last, removed };
  }

  #add(line: string, isUndone: boolean): void {
    const id = DETECTION_LINE.exec(line)?.[1];
    if (id !== undefined && isUndone) this.undone.add(id);
    // Lines of detections say nothing more of positions.
    if (!line.startsWith('{"put":"delivery"') && !line.startsWith('{"put":"version_epoch"')) return;
    const value = parse(line);
    const row = isObject(value) && isObject(value.row) ? value.row : {};
    this.first = Math.min(this.first, Number(row.first_position ?? this.first));
    this.position = Math.max(this.position, Number(row.last_position ?? row.position ?? 0));
    this.epoch = Math.max(this.epoch, Number(row.number ?? 0));
    const announced = Number(row.announced_after ?? this.announced_after);
    this.announced_after = Math.min(this.announced_after, announced);
  }
}

/** Cuts a log after its last entry at or before a time. @param given gets what came after @returns as {@link Given.addAfter} */
export function cutLog(log: string, untilMs: number, given: Given) {
  const kept = commitsBackwards(log).find(({ at }) => (parseInstant(at) ?? 0) <= untilMs);
  if (kept === undefined) throw failed(`it contains nothing from before ${formatMs(untilMs)}`);
  const cut = given.addAfter(log, kept);
  cutAfter(log, kept.entry);
  return cut;
}

/**
 * How the history of a data folder differs from the one that replaces it.
 * @param live the data folder; @param stage with the restored log; @param given gets what only the data folder has
 * @param copy the id of the copy that is restored
 * @returns `isSame`: both end with the same entry, so that nothing is lost; `parted`: the last position that both have;
 *   infinite: all of the restored ones; null: that is not known
 * @throws LogDamage, LogFailure if the restored log cannot be read
 */
export function replacedHistory(live: DataFolder, stage: DataFolder, given: Given, copy: string) {
  const restored = new Map(commitsBackwards(stage.log).map(({ entry, id }) => [entry, id]));
  const first = addLost(given, live, restored, copy);
  // A read may fail once.
  const { common, lost, isWhole } = first.isWhole ? first : addLost(given, live, restored, copy);
  const own = new Given();
  const { entries } = own.addAfter(stage.log, common);
  const isComplete = common !== null && isWhole;
  return {
    isSame: isComplete && lost === 0 && entries === 0,
    // Clients of an epoch that the restored log does not know may come from another history still.
    parted: isComplete && given.epoch === 0 ? own.first - 1 : null,
  };
}

/**
 * Adds what the log of a data folder has after the last entry that it has in common with the restored ones.
 * @returns that entry, how many are lost, and whether that is all: its database has applied it up to there
 */
function addLost(given: Given, live: DataFolder, restored: ReadonlyMap<number, string>, copy: string) {
  const { log, detections } = live;
  const applied = readLogMarkOf(detections);
  // What was proposed to this copy, and is in neither, nobody has seen.
  const isProposed = keptCopies(live).has(copy) && waitsForCopyIn(detections);
  const until = isProposed ? (applied?.entry ?? 0) : Number.POSITIVE_INFINITY;
  // Only the log that is replaced may be damaged or unreadable.
  const isCommon = ({ entry, id }: Mark) => restored.get(entry) === id;
  const found = unlessLogError(undefined, () => commitsBackwards(log).find(isCommon) ?? null);
  const common = found ?? null;
  const read = unlessLogError(undefined, () => given.addAfter(log, common, until));
  const lost = read ?? { entries: 0, last: null };
  const isAll = lost.last?.id === applied?.id || (common?.entry ?? 0) > until;
  return { common, lost: lost.entries, isWhole: found !== undefined && read !== undefined && isAll };
}
