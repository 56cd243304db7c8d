/** What can be done about an alert, a window, an account or a key now: the console shows a button for it. */

import type { Account } from '../../auth/accounts.ts';
import { type Key, keyStatus } from '../../auth/keys.ts';
import { now } from '../../clock.ts';
import { EXPORT_NAMES } from '../../detection/content-type.ts';
import type { AlertDocument } from '../../health/alerts.ts';
import { DAY_MS, formatMs, WINDOW_MS } from '../../time.ts';
import type { Action } from './api.ts';
import { readableOrNull, type Sources } from './sources.ts';
import { type WindowState, windowStates } from './window-states.ts';

/** As far back as clients are told of gaps. */
const WINDOWS_MS = 90 * DAY_MS;
/** So many buttons help; more are found in the list of windows. */
const WINDOWS_MAX = 5;

export function offered(mayAct: boolean, actions: readonly Action[]): readonly Action[] {
  return mayAct ? actions : [];
}

export function windowActions(state: WindowState): Action[] {
  const window = { export: state.export, window_start: formatMs(state.window_start) };
  if (state.letter === 'f' && state.hasFile) return [{ kind: 'window-reset', ...window }];
  if (state.letter === 'a' && state.held) return [{ kind: 'window-accept', ...window }];
  return [];
}

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
  if (db === null) return [];
  return exports.flatMap((name) => windowStates(db, { export: name, from, to }, true, nowMs));
}

export function accountActions({ id, suspended_at }: Account): Action[] {
  return [{ kind: suspended_at === null ? 'account-suspend' : 'account-resume', id }];
}

export function keyActions(key: Key, nowMs: number): Action[] {
  const { id } = key;
  const status = keyStatus(key, nowMs);
  if (status === 'revoked') return [];
  const revoke: Action = { kind: 'key-revoke', id };
  return status === 'active' ? [{ kind: 'key-rotate', id }, revoke] : [revoke];
}
