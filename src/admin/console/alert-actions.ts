/** The actions that can resolve an alert now: the console shows a button for each. */
import { now } from '../../clock.ts';
import { EXPORT_NAMES } from '../../detection/content-type.ts';
import type { AlertDocument } from '../../health/alert-texts.ts';
import { DAY_MS, formatMs, WINDOW_MS } from '../../time.ts';
import type { Action } from './api.ts';
import { readableOrNull, type Sources } from './sources.ts';
import { type WindowState, windowActions, windowStates } from './windows.ts';

/** As far back as clients see gaps. */
const WINDOWS_MS = 90 * DAY_MS;
/** The list of windows has the others. */
const WINDOWS_MAX = 5;

export function alertActions(
  sources: Sources,
  { name, detail }: AlertDocument,
  pausedSince: string | null,
): Action[] {
  const exports = EXPORT_NAMES.filter((one) => detail.startsWith(one));
  switch (name) {
    case 'failed windows':
      return statesOf(sources, exports).flatMap(windowActions).slice(-WINDOWS_MAX);
    case 'held windows': {
      const held = statesOf(sources, exports).filter((state) => state.held);
      return held.flatMap(windowActions).slice(-WINDOWS_MAX);
    }
    case 'missing windows': {
      const newest = statesOf(sources, exports).findLast(({ letter }) => letter === 'm');
      if (newest === undefined) return [];
      const window_start = formatMs(newest.window_start + WINDOW_MS);
      return [{ kind: 'window-expect', export: newest.export, window_start }];
    }
    case 'rows skipped':
      return [{ kind: 'ingest-replay' }];
    case 'backup overdue':
      return [{ kind: 'backup' }];
    case 'log damaged':
      return [{ kind: 'scrub' }];
    default:
      return pausedSince !== null && name === 'ingest stalled' ? [{ kind: 'ingest-resume' }] : [];
  }
}

function statesOf(sources: Sources, exports: readonly WindowState['export'][]): WindowState[] {
  const nowMs = now();
  const to = Math.floor(nowMs / WINDOW_MS) * WINDOW_MS;
  const from = Math.floor((nowMs - WINDOWS_MS) / DAY_MS) * DAY_MS;
  const db = readableOrNull(sources);
  return exports.flatMap((name) => windowStates(db, { export: name, from, to }, true, nowMs));
}
