/** The rules of health (GET /v1/health), and when ingest counts as stalled. Pure. */
import { EXPORT_NAMES, type ExportName, perExport } from '../detection/content-type.ts';
import type { Role } from '../store/role.ts';
import { formatMs, HOUR_MS, MINUTE_MS } from '../time.ts';
import { type Alert, isPageWorthy } from './alert-texts.ts';

export const HEALTH_STATUSES = ['ok', 'degraded'] as const;

export type Health = ReturnType<typeof evaluateHealth>;

/** End of each export's newest finished window, epoch milliseconds; null if it has none. */
export type NewestDone = Readonly<Record<ExportName, number | null>>;

export interface Situation {
  readonly newest_done: NewestDone;
  /** The enabled exports; the others do not count. */
  readonly enabled: readonly ExportName[];
  readonly is_paused: boolean;
}

const STALLED_AFTER_MS = 45 * MINUTE_MS;
const DEGRADED_AFTER_MS = HOUR_MS;

export function evaluateHealth(situation: Situation, alerts: Alert[], nowMs: number, role: Role = 'writer') {
  const { newest_done, enabled, is_paused } = situation;
  const pageWorthy = alerts.filter(isPageWorthy).length;
  const isOld = !is_paused && enabled.some((name) => !isWithin(newest_done[name], DEGRADED_AFTER_MS, nowMs));
  const shown = (name: ExportName) => {
    const end = enabled.includes(name) ? newest_done[name] : null;
    return { newest_done: end === null ? null : formatMs(end) };
  };
  const status: (typeof HEALTH_STATUSES)[number] = pageWorthy > 0 || isOld ? 'degraded' : 'ok';
  return {
    status,
    exports: perExport(shown),
    alerts: { open: alerts.length, page_worthy: pageWorthy, paused: Number(is_paused) },
    role,
  };
}

/** The alerts of the exports whose ingest is stalled: none while it is paused, or before the first window. */
export function stalledAlerts({ newest_done, enabled, is_paused }: Situation, nowMs: number): Alert[] {
  return EXPORT_NAMES.flatMap((name): Alert[] => {
    const end = newest_done[name];
    if (is_paused || !enabled.includes(name) || end === null || isWithin(end, STALLED_AFTER_MS, nowMs))
      return [];
    const detail = `${name}: the newest finished window ended at ${formatMs(end)}`;
    return [{ name: 'ingest stalled', of: name, since: end + STALLED_AFTER_MS, detail }];
  });
}

const isWithin = (endMs: number | null, ms: number, nowMs: number) => endMs !== null && nowMs - endMs <= ms;
