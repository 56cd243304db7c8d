/** How far an export was read: up to its newest finished window, but for those before it that were not. */
import type { ExportName } from '../detection/content-type.ts';
import type { Database } from '../store/database.ts';
import { DAY_MS, formatMs } from '../time.ts';
import { newestDone, unknownWindows } from './ledger.ts';
import type { WindowStatus } from './window-states.ts';

/** Gaps are shown to clients for so long. */
const GAPS_SHOWN_MS = 90 * DAY_MS;

export interface Reach {
  /** End of the newest finished window, as the API writes times; null: none is. */
  readonly newest_done: string | null;
  /** Finished windows of the last 90 days. */
  readonly windows_done: number;
  /** Windows of the last 90 days that brought nothing; `not_arrived`: nothing is known of them, though a later one was read. */
  readonly not_read: Readonly<Record<Exclude<WindowStatus, 'done'> | 'not_arrived', number>>;
}

/** It names every status, so that an index leads to the windows of each. */
export const COUNT_WINDOWS = `
  SELECT status, count(*) AS windows FROM export_window
  WHERE export = :export AND status IN ('done', 'failed', 'missing', 'abandoned') AND window_start >= :from
  GROUP BY status`;

export function readReach(db: Database, exportName: ExportName, nowMs: number): Reach {
  const counts = db.prepare<unknown[], [WindowStatus, number]>(COUNT_WINDOWS).raw();
  const found = Object.fromEntries(counts.all({ export: exportName, from: nowMs - GAPS_SHOWN_MS }));
  const { done, ...others } = { done: 0, failed: 0, missing: 0, abandoned: 0, ...found };
  const unknown = unknownWindows(db, Number.MAX_SAFE_INTEGER).find((row) => row.export === exportName);
  const end = newestDone(db, exportName);
  return {
    newest_done: end === null ? null : formatMs(end),
    windows_done: done,
    not_read: { ...others, not_arrived: unknown?.windows ?? 0 },
  };
}

export const NOTHING_READ: Reach = {
  newest_done: null,
  windows_done: 0,
  not_read: { failed: 0, missing: 0, abandoned: 0, not_arrived: 0 },
};
