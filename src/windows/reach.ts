/** How far an export was read: up to its newest finished window, but for those before it that were not. */
import type { ExportName } from '../detection/content-type.ts';
import type { Database } from '../store/database.ts';
import { DAY_MS, formatMs, SECOND_MS, WINDOW_MS } from '../time.ts';
import { newestDone, unknownWindows } from './ledger.ts';
import type { WindowStatus } from './window-states.ts';

/** Gaps are shown to clients for so long. */
const GAPS_SHOWN_MS = 90 * DAY_MS;

export interface Reach {
  /** End of the newest finished window, as the API writes times; null: none is. */
  readonly newest_done: string | null;
  /** How long after its end that window was first read, in seconds; null without one. */
  readonly newest_late_seconds: number | null;
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
    newest_late_seconds: end === null ? null : lateSeconds(db, exportName, end),
    windows_done: done,
    not_read: { ...others, not_arrived: unknown?.windows ?? 0 },
  };
}

/** Corrections come later, and do not count. */
export const FIRST_READ = `
  SELECT min(finished_at) AS at FROM ingest_file INDEXED BY ingest_file_by_window
  WHERE export = :export AND window_start = :start AND outcome = 'applied'`;

function lateSeconds(db: Database, exportName: ExportName, endMs: number): number {
  const window = { export: exportName, start: endMs - WINDOW_MS };
  const first = db.prepare<unknown[], { at: number | null }>(FIRST_READ).get(window);
  return Math.max(0, Math.round(((first?.at ?? endMs) - endMs) / SECOND_MS));
}

export const NOTHING_READ: Reach = {
  newest_done: null,
  newest_late_seconds: null,
  windows_done: 0,
  not_read: { failed: 0, missing: 0, abandoned: 0, not_arrived: 0 },
};
