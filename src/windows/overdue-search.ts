/**
 * The search for windows whose file never came. Call it only when no file is left to be read: a file that waits has arrived.
 * After a year's stop tens of thousands of windows become missing, so it works in groups, one transaction each.
 */
import type { ExportName } from '../detection/content-type.ts';
import type { Database } from '../store/database.ts';
import { WINDOW_MS } from '../time.ts';
import {
  abandonMissing,
  forgetNotYetDue,
  knownStarts,
  newestWindowEnd,
  readExpectation,
  readLook,
  setLook,
  setLookedThrough,
  setWindow,
} from './ledger.ts';
import { ABANDONED_AFTER_MS, isLookDue, overdueBeforeMs } from './window-states.ts';

const GROUP_WINDOWS = 1000;

export interface MissingWindowsOptions {
  readonly db: Database;
  readonly exports: readonly ExportName[];
  /** One transaction. */
  readonly write: (work: () => void) => void;
  /** Called between transactions: lets more urgent work run. */
  readonly between: () => Promise<void>;
  /** Starts of the windows of an export whose files lie in the drop folder, for whatever reason. */
  readonly waitingWindows: (exportName: ExportName) => ReadonlySet<number>;
}

export class MissingWindows {
  readonly #options: MissingWindowsOptions;
  /** Every start searches at once: nobody knows what happened during the stop, or whether it was a restore. */
  #isWanted = true;

  constructor(options: MissingWindowsOptions) {
    this.#options = options;
  }

  /**
   * Searches if it is time to, which is once a day.
   * @param isSteady see steadyClock: after a jump of the clock nothing is searched, and then once more. Nor is anything
   *   searched by a clock that is behind a finished window.
   * @returns how many windows became missing and how many were abandoned; null: it was not time
   */
  async search(nowMs: number, isSteady: boolean): Promise<{ missing: number; abandoned: number } | null> {
    const { db, exports, write } = this.#options;
    this.#isWanted ||= !isSteady;
    if (!isSteady || !(this.#isWanted || isLookDue(readLook(db), nowMs))) return null;
    // By a clock that is behind, long known gaps would not be due yet, and their windows would be forgotten.
    if (nowMs < newestWindowEnd(db)) return null;
    const found = { missing: 0, abandoned: 0 };
    for (const exportName of exports) {
      found.missing += await findMissing(this.#options, exportName, nowMs);
      found.abandoned += await abandonLongMissing(this.#options, exportName, nowMs);
    }
    write(() => setLook(db, nowMs));
    this.#isWanted = false;
    return found;
  }
}

async function findMissing(
  { db, write, between, waitingWindows }: MissingWindowsOptions,
  exportName: ExportName,
  nowMs: number,
): Promise<number> {
  const overdueBefore = overdueBeforeMs(nowMs);
  const expectation = readExpectation(db, exportName);
  if (expectation === null) return 0;
  const { expected_from, looked_through } = expectation;
  const missing = { export: exportName, status: 'missing', since: nowMs, file: null } as const;
  let count = 0;
  // The next search begins at the first window that this one skips.
  let resumeFrom = overdueBefore;
  for (let from = looked_through; from < overdueBefore; from += GROUP_WINDOWS * WINDOW_MS) {
    const to = Math.min(from + GROUP_WINDOWS * WINDOW_MS, overdueBefore);
    const waiting = waitingWindows(exportName);
    write(() => {
      const known = knownStarts(db, exportName, from, to);
      for (let window_start = from; window_start < to; window_start += WINDOW_MS) {
        if (known.has(window_start)) continue;
        if (waiting.has(window_start)) resumeFrom = Math.min(resumeFrom, window_start);
        else {
          count += 1;
          setWindow(db, { ...missing, window_start });
        }
      }
      setLookedThrough(db, exportName, Math.min(to, resumeFrom));
    });
    await between();
  }
  write(() => {
    forgetNotYetDue(db, exportName, overdueBefore);
    setLookedThrough(db, exportName, Math.max(expected_from, resumeFrom));
  });
  return count;
}

async function abandonLongMissing(
  { db, write, between, waitingWindows }: MissingWindowsOptions,
  exportName: ExportName,
  nowMs: number,
): Promise<number> {
  const before = nowMs - ABANDONED_AFTER_MS;
  let count = 0;
  for (let group = GROUP_WINDOWS; group === GROUP_WINDOWS; count += group) {
    const waiting = waitingWindows(exportName);
    write(() => {
      group = abandonMissing(db, exportName, { now: nowMs, before, waiting, limit: GROUP_WINDOWS });
    });
    if (group > 0) await between();
  }
  return count;
}
