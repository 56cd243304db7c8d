/** The actions that can resolve an alert now: the console shows a button for each. */
import { now } from '../../clock.ts';
import { EXPORT_NAMES } from '../../detection/content-type.ts';
import type { AlertDocument } from '../../health/alert-texts.ts';
import { DAY_MS, formatMs, WINDOW_MS } from '../../time.ts';
import type { Action } from './api.ts';
import { readableOrNull, type Sources } from './sources.ts';
import { heldIn, type WindowState, windowActions, windowStates } from './windows.ts';

/** As far back as clients see gaps. */
const WINDOWS_MS = 90 * DAY_MS;
const STEP_MS = 5 * DAY_MS;
/** The list of windows has the others. */
const WINDOWS_MAX = 5;

export function alertActions(
  sources: Sources,
  { name, detail }: AlertDocument,
  pausedSince: string | null,
): Action[] {
  const states = newestStates(
    sources,
    EXPORT_NAMES.filter((one) => detail.includes(`${one}: `)),
  );
  switch (name) {
    case 'failed windows':
      return newestActions(states);
    case 'held windows':
      return newestActions(states.filter(({ held }) => held));
    case 'missing windows': {
      const newest = states.find(({ letter }) => letter === 'm');
      if (newest === undefined) return [];
      const window_start = formatMs(newest.window_start + WINDOW_MS);
      return [{ operation: 'window expect', given: { export: newest.export, start: window_start } }];
    }
    case 'rows skipped':
      return [{ operation: 'ingest replay', given: {} }];
    case 'backup overdue':
      return [{ operation: 'backup', given: {} }];
    case 'log damaged':
      return [{ operation: 'compact', given: {} }];
    default:
      return pausedSince !== null && name === 'ingest stalled'
        ? [{ operation: 'ingest resume', given: {} }]
        : [];
  }
}

/** @param states newest first; @returns oldest first */
function newestActions(states: IteratorObject<WindowState>): Action[] {
  return [...states.flatMap(windowActions).take(WINDOWS_MAX)].reverse();
}

/** Newest first, read in steps: an alert needs few of 90 days. */
function* newestStates(
  sources: Sources,
  exports: readonly WindowState['export'][],
): Generator<WindowState, undefined> {
  const nowMs = now();
  const end = Math.floor(nowMs / WINDOW_MS) * WINDOW_MS;
  const db = readableOrNull(sources);
  if (db === null) return;
  const known = { isEnabled: true, held: heldIn(sources, db) };
  for (const name of exports)
    for (let to = end; to > end - WINDOWS_MS; to -= STEP_MS)
      yield* windowStates(db, { export: name, from: to - STEP_MS, to }, known, nowMs).reverse();
}
