/**
 * What health is, by the contract's rules (GET /v1/health), and when ingest counts as stalled. Pure: facts and the
 * time are handed in.
 */
import { EXPORT_NAMES, type ExportName, perExport } from '../detection/content-type.ts';
import { formatMs, HOUR_MS, MINUTE_MS } from '../time.ts';
import { type Alert, isPageWorthy } from './alerts.ts';

/** Contract: Health. */
export interface Health {
  readonly status: 'ok' | 'degraded';
  readonly exports: Readonly<Record<ExportName, { readonly newest_done: string | null }>>;
  readonly alerts: { readonly open: number; readonly page_worthy: number; readonly paused: 0 | 1 };
}

/** End of each export's newest finished window, epoch milliseconds; null when none is. */
export type NewestDone = Readonly<Record<ExportName, number | null>>;

export interface Situation {
  readonly newest_done: NewestDone;
  /** Exports that are switched on; the others are not judged. */
  readonly enabled: ReadonlySet<ExportName>;
  readonly is_paused: boolean;
}

const STALLED_AFTER_MS = 45 * MINUTE_MS;
const DEGRADED_AFTER_MS = HOUR_MS;

export function judgeHealth(
  situation: Situation,
  alerts: readonly Pick<Alert, 'name'>[],
  nowMs: number,
): Health {
  const { newest_done, enabled, is_paused } = situation;
  const pageWorthy = alerts.filter(isPageWorthy).length;
  // While ingest is paused, the age of windows is not judged.
  const isOld =
    !is_paused && [...enabled].some((name) => !isWithin(newest_done[name], DEGRADED_AFTER_MS, nowMs));
  const shown = (name: ExportName) => {
    const end = enabled.has(name) ? newest_done[name] : null;
    return { newest_done: end === null ? null : formatMs(end) };
  };
  return {
    status: pageWorthy > 0 || isOld ? 'degraded' : 'ok',
    exports: perExport(shown),
    alerts: { open: alerts.length, page_worthy: pageWorthy, paused: is_paused ? 1 : 0 },
  };
}

/**
 * The exports whose ingest is stalled.
 *
 * @param before those for which the alert was open
 * @param isCheck whether this is one of the checks, every five minutes, at which it opens; it closes at any time
 */
export function stalledExports(
  { newest_done, enabled, is_paused }: Situation,
  { before, isCheck }: { readonly before: ReadonlySet<ExportName>; readonly isCheck: boolean },
  nowMs: number,
): ReadonlySet<ExportName> {
  const isStalled = (name: ExportName) => {
    const end = newest_done[name];
    if (is_paused || !enabled.has(name) || end === null) return false;
    return !isWithin(end, STALLED_AFTER_MS, nowMs) && (isCheck || before.has(name));
  };
  return new Set(EXPORT_NAMES.filter(isStalled));
}

export function stalledAlert(name: ExportName, newestDoneMs: number): Alert {
  return {
    name: 'ingest stalled',
    since: newestDoneMs + STALLED_AFTER_MS,
    detail: `${name}: the newest finished window ended at ${formatMs(newestDoneMs)}`,
  };
}

function isWithin(endMs: number | null, ms: number, nowMs: number): boolean {
  return endMs !== null && nowMs - endMs <= ms;
}
