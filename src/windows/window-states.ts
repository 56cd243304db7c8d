/**
 * How the status of a window changes. Pure. Windows before the first current one that an export finished have no status: a
 * new installation has no gaps.
 */
import { DAY_MS, HOUR_MS, MINUTE_MS, WINDOW_MS } from '../time.ts';

export const WINDOW_STATUSES = ['done', 'failed', 'missing', 'abandoned'] as const;
export type WindowStatus = (typeof WINDOW_STATUSES)[number];

/** From a window's end until its file is due. */
const DUE_AFTER_MS = 10 * MINUTE_MS;
/** From then until it is late, where a later window of its export was read. */
const LATE_AFTER_MS = HOUR_MS;
/** From then until it is missing. */
const MISSING_AFTER_MS = DAY_MS;
/** From missing until abandoned. */
export const ABANDONED_AFTER_MS = 30 * DAY_MS;

/** A window that ended longer before it was read is history: no other window is expected because of it. */
const HISTORY_AFTER_MS = 90 * DAY_MS;

/** In one of these statuses, a window waits for an operator: files that arrive for it are held. */
export type ResettableStatus = Extract<WindowStatus, 'failed' | 'abandoned'>;

/** Whether a window had ended too long before it was read for others to be expected from it on. */
export const isHistory = (windowStartMs: number, readAtMs: number): boolean =>
  readAtMs - (windowStartMs + WINDOW_MS) > HISTORY_AFTER_MS;

/** What to do with a file that arrives for a window in this status, by the operator's setting for failed windows. */
export function arrival(status: WindowStatus | undefined, failedWindows: 'hold' | 'read'): 'read' | 'hold' {
  // The operator decides: the file may be as wrong as the one before it.
  if (status === 'failed') return failedWindows;
  return status === 'abandoned' ? 'hold' : 'read';
}

/** The status of a window, as the end of a sentence that begins with "the window": `has failed`, `is done`. */
export const statusPhrase = (status: WindowStatus | undefined): string =>
  status === 'failed' ? 'has failed' : `is ${status ?? 'unknown'}`;

/** Windows that start before this have been due for a day. */
export const overdueBeforeMs = (nowMs: number) => dueSinceMs(nowMs, MISSING_AFTER_MS);

/** Windows that start before this have been due for an hour. */
export const lateBeforeMs = (nowMs: number) => dueSinceMs(nowMs, LATE_AFTER_MS);

/** When a window's file is due, epoch milliseconds. */
export const dueAtMs = (windowStartMs: number) => windowStartMs + WINDOW_MS + DUE_AFTER_MS;

/** When a window is late, epoch milliseconds. */
export const lateAtMs = (windowStartMs: number) => dueAtMs(windowStartMs) + LATE_AFTER_MS;

const dueSinceMs = (nowMs: number, ms: number): number =>
  (Math.floor((nowMs - WINDOW_MS - DUE_AFTER_MS - ms) / WINDOW_MS) + 1) * WINDOW_MS;
