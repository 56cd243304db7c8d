/** The search for windows whose file never came. Call it only when no file is left to be read: a file that waits has arrived. */
import type { ExportName } from '../detection/content-type.ts';
import type { Database } from '../store/database.ts';
import {
  abandonMissing,
  addMissing,
  findWindow,
  forgetNotYetDue,
  newestWindowEnd,
  readExpectation,
  readLook,
  type Search,
  setLook,
  setLookedThrough,
} from './ledger.ts';
import { ABANDONED_AFTER_MS, isLookDue, overdueBeforeMs } from './window-states.ts';

export interface MissingWindowsOptions {
  readonly db: Database;
  readonly exports: readonly ExportName[];
  /** One transaction. */
  readonly write: (work: () => void) => void;
  /** Starts of the windows of an export whose files lie in the drop folder, for whatever reason. */
  readonly waitingWindows: (exportName: ExportName) => ReadonlySet<number>;
}

/**
 * @returns what searches if it is time to, which is once a day and at every start: nobody knows what happened during the
 *   stop, or whether it was a restore. `isSteady`: see steadyClock. After a jump of the clock nothing is searched, and
 *   then once more; nor is anything by a clock that is behind a finished window. It returns how many windows became
 *   missing and how many were abandoned; null: it was not time
 */
export function missingWindowsSearch({ db, exports, write, waitingWindows }: MissingWindowsOptions) {
  let isWanted = true;

  /** @returns how many windows became missing */
  function addOverdue(search: Search, waiting: ReadonlySet<number>): number {
    const expectation = readExpectation(db, search.export);
    if (expectation === null) return 0;
    const { expected_from, looked_through } = expectation;
    const to = overdueBeforeMs(search.now);
    const missing = addMissing(db, { ...search, from: looked_through, to });
    // By a clock that was ahead, windows were added that are not due.
    forgetNotYetDue(db, search.export, to);
    // The next search begins at the first window that this one skipped.
    const isSkipped = (start: number) =>
      start >= looked_through && start < to && findWindow(db, search.export, start) === undefined;
    const next = [...waiting].filter(isSkipped).reduce((first, start) => Math.min(first, start), to);
    setLookedThrough(db, search.export, Math.max(expected_from, next));
    return missing;
  }

  return (now: number, isSteady: boolean): { missing: number; abandoned: number } | null => {
    isWanted ||= !isSteady;
    if (!isSteady || !(isWanted || isLookDue(readLook(db), now))) return null;
    // By a clock that is behind, long known gaps would not be due yet, and their windows would be forgotten.
    if (now < newestWindowEnd(db)) return null;
    const waitingByExport = exports.map((name) => [name, waitingWindows(name)] as const);
    const found = { missing: 0, abandoned: 0 };
    write(() => {
      for (const [name, waiting] of waitingByExport) {
        const search = { export: name, now, waiting: JSON.stringify([...waiting]) };
        found.missing += addOverdue(search, waiting);
        found.abandoned += abandonMissing(db, { ...search, before: now - ABANDONED_AFTER_MS });
      }
      setLook(db, now);
    });
    isWanted = false;
    return found;
  };
}
