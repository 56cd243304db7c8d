/**
 * The search for windows whose file never came (contract: States and transitions): once a day, at every start, and
 * after the clock was corrected.
 *
 * It is made only while the drop folder was read and has come to rest: what still waits there has arrived. After
 * a year's stop tens of thousands of windows become missing at once, so it goes in groups, one transaction each,
 * that a crash does not undo.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { ExportName } from '../../detection/content-type.ts';
import { WINDOW_MS } from '../../time.ts';
import {
  forgetNotYetDue,
  longMissing,
  readExpectation,
  readLook,
  setLook,
  setLookedThrough,
  setWindow,
  type WindowStatus,
  windowsBetween,
} from '../../windows/ledger.ts';
import {
  ABANDONED_AFTER_MS,
  isLookDue,
  type Known,
  overdueBeforeMs,
  statusOnLook,
} from '../../windows/transitions.ts';
import { judgeName } from '../format/file-name.ts';
import type { IngestSettings } from '../threads/ingest-settings.ts';
import { isFileError } from '../threads/thread-errors.ts';
import type { Workshop } from '../threads/workshop.ts';

const GROUP_WINDOWS = 1000;

/** What a look needs of the workshop. */
export type LookPlace = Pick<Workshop, 'db' | 'drop' | 'writer' | 'now' | 'log' | 'between'> & {
  readonly settings: Pick<IngestSettings, 'enabled_exports'>;
};

/** Decides when windows are looked for. */
export class WindowLook {
  /** A start looks at once: what happened while the appliance stood still, or was restored, is not known. */
  #isWanted = true;

  /** @param isSteady see SteadyClock: what a clock that has just jumped says cannot be trusted, and is looked at again */
  async run(workshop: LookPlace, isSteady: boolean): Promise<void> {
    if (!isSteady) {
      this.#isWanted = true;
      return;
    }
    try {
      if (this.#isWanted || isLookDue(readLook(workshop.db), workshop.now())) await lookForMissing(workshop);
      this.#isWanted = false;
    } catch (error) {
      // The folder has gone since it was scanned: the next turn tries again.
      if (!isFileError(error)) throw error;
    }
  }
}

/** Call it when nothing is left to be read. */
async function lookForMissing(workshop: LookPlace): Promise<void> {
  const nowMs = workshop.now();
  let missing = 0;
  let abandoned = 0;
  for (const exportName of workshop.settings.enabled_exports) {
    missing += await findMissing(workshop, exportName, nowMs);
    abandoned += await abandonLongMissing(workshop, exportName, nowMs);
  }
  writing(workshop, () => setLook(workshop.db, nowMs));
  workshop.log('info', 'checked for missing windows', { missing, abandoned });
}

/** @returns how many became missing */
async function findMissing(workshop: LookPlace, exportName: ExportName, nowMs: number): Promise<number> {
  const { db } = workshop;
  const overdueBefore = overdueBeforeMs(nowMs);
  const expectation = readExpectation(db, exportName);
  if (expectation === null) return 0;
  const { expected_from: expectedFromMs, looked_through } = expectation;
  let count = 0;
  // A window that is passed over now is looked for again: everything from the first such one on.
  let lookAgainFrom = overdueBefore;
  for (let from = looked_through; from < overdueBefore; from += GROUP_WINDOWS * WINDOW_MS) {
    const to = Math.min(from + GROUP_WINDOWS * WINDOW_MS, overdueBefore);
    const waiting = waitingWindows(workshop, exportName);
    const work = () => {
      const known = new Map(
        windowsBetween(db, exportName, from, to).map((window) => [window.window_start, window]),
      );
      for (let start = from; start < to; start += WINDOW_MS) {
        const isWaiting = waiting.has(start);
        const before = known.get(start);
        const status = statusOnLook(before, start, { nowMs, expectedFromMs, isWaiting });
        if (status === undefined) lookAgainFrom = Math.min(lookAgainFrom, start);
        if (isNew(before, status)) {
          count += 1;
          setWindow(db, { export: exportName, window_start: start, status, since: nowMs, file: null });
        }
      }
      setLookedThrough(db, exportName, Math.min(to, lookAgainFrom));
    };
    writing(workshop, work);
    await workshop.between();
  }
  writing(workshop, () => {
    forgetNotYetDue(db, exportName, overdueBefore);
    setLookedThrough(db, exportName, Math.max(expectedFromMs, lookAgainFrom));
  });
  return count;
}

/** @returns how many were abandoned */
async function abandonLongMissing(
  workshop: LookPlace,
  exportName: ExportName,
  nowMs: number,
): Promise<number> {
  const { db } = workshop;
  let count = 0;
  const group = (after: number) =>
    longMissing(db, { export: exportName, after, before: nowMs - ABANDONED_AFTER_MS, limit: GROUP_WINDOWS });
  for (let windows = group(-1); windows.length > 0; windows = group(windows.at(-1)?.window_start ?? nowMs)) {
    const waiting = waitingWindows(workshop, exportName);
    const work = () => {
      for (const window of windows) {
        const isWaiting = waiting.has(window.window_start);
        const status = statusOnLook(window, window.window_start, { nowMs, expectedFromMs: null, isWaiting });
        if (!isNew(window, status)) continue;
        count += 1;
        setWindow(db, { ...window, status, since: nowMs });
      }
    };
    writing(workshop, work);
    await workshop.between();
  }
  return count;
}

function isNew(before: Known | undefined, status: WindowStatus | undefined): status is WindowStatus {
  return status !== undefined && status !== before?.status;
}

/** Starts of the windows whose files lie in the drop folder, whatever keeps them there. */
function waitingWindows({ drop }: LookPlace, exportName: ExportName): ReadonlySet<number> {
  const taken = readdirSync(join(drop.root, '.taken')).map((name) => name.replace(/^\d+\./, ''));
  const starts = new Set<number>();
  for (const name of [...readdirSync(drop.root), ...taken]) {
    const judged = judgeName(name);
    if (judged.kind !== 'export' || judged.file.kind !== 'window') continue;
    if (judged.file.export === exportName) starts.add(judged.file.window_start);
  }
  return starts;
}

function writing({ writer }: LookPlace, work: () => void): void {
  writer.commit(writer.begin(), { kind: 'look for missing windows' }, work);
}
