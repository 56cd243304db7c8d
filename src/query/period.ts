/** Resolves a period and limits its length (GET /v1/detections). Pure. */
import { counted, grouped } from '../counted.ts';
import { PERIOD_DAYS_MAX, PERIOD_MAX_MS, SHARDS_MAX } from '../limits/api-limits.ts';
import { DAY_MS, formatSeconds, SECOND_MS } from '../time.ts';
import { dayAt, dayEndMs, dayStartMs, daysFromTo } from '../zone-days.ts';
import { invalid } from './parameters.ts';

/** An end: a day of the request's time zone, or an instant. */
export type PeriodEnd =
  | { readonly kind: 'day'; readonly day: string }
  | { readonly kind: 'instant'; readonly ms: number };

/** Epoch milliseconds, `[from_ms, to_ms)`. */
type PeriodMs = Readonly<Record<'from_ms' | 'to_ms', number>>;
/** Whole epoch seconds, as in detections. */
export type Period = Readonly<Record<'from' | 'to', number>>;

/** The period of two ends; a future `to` is now. @throws Refused `invalid_request` when it is empty or too wide */
export function resolvePeriod({ from, to }: Record<'from' | 'to', PeriodEnd>, zone: string, nowMs: number) {
  const fromMs = from.kind === 'day' ? dayStartMs(from.day, zone) : from.ms;
  const askedToMs = to.kind === 'day' ? dayEndMs(to.day, zone) : to.ms;
  const toMs = Math.min(askedToMs, nowMs);
  if (toMs <= fromMs)
    throw invalid(
      `to: must be later than from${askedToMs > fromMs ? '; a time in the future counts as now' : ''}`,
    );
  if (from.kind === 'day' && to.kind === 'day') {
    const lastDay = toMs === askedToMs ? to.day : dayAt(toMs - 1, zone);
    if (daysFromTo(from.day, lastDay) > PERIOD_DAYS_MAX)
      throw invalid(`from, to: the period must not exceed ${PERIOD_DAYS_MAX} calendar days`);
  } else if (toMs - fromMs > PERIOD_MAX_MS)
    throw invalid(`from, to: the period must not exceed ${PERIOD_DAYS_MAX} x 24 hours plus one hour`);
  return { from_ms: fromMs, to_ms: toMs };
}

/** Rounded up, which covers the same detections; now is rounded down, so that no answer reaches into the future. */
export function wholeSeconds({ from_ms, to_ms }: PeriodMs, nowMs: number): Period {
  const from = Math.ceil(from_ms / SECOND_MS);
  const to = to_ms === nowMs ? Math.floor(nowMs / SECOND_MS) : Math.ceil(to_ms / SECOND_MS);
  return { from, to: Math.max(from, to) };
}

/** @param again how the detail ends. @throws Refused `invalid_request` where the streams have too many UTC days in the period */
export function requireFewShards({ from_ms, to_ms }: PeriodMs, streams: number, again = ''): void {
  const days = Math.floor((to_ms - 1) / DAY_MS) - Math.floor(from_ms / DAY_MS) + 1;
  const shards = days * streams;
  if (shards <= SHARDS_MAX) return;
  throw invalid(
    `from, to, subscription_id: the request covers ${grouped(shards)} stream-days (${counted(streams, 'stream')} x ${counted(days, 'UTC day')}); at most ${SHARDS_MAX} are allowed; narrow the period or the subscriptions${again}`,
  );
}

/** @param dataStart epoch seconds; null without records. @throws Refused where the period begins before that day */
export function requireRecords({ from_ms }: PeriodMs, dataStart: number | null, zone: string): void {
  if (dataStart === null || from_ms >= dataStart * SECOND_MS) return;
  const day = dayAt(dataStart * SECOND_MS, zone);
  if (from_ms >= dayStartMs(day, zone)) return;
  throw invalid(
    `from: must not be before ${day} (${zone}), the day on which the data starts. The earliest data_starts of the requested streams is ${formatSeconds(dataStart)}`,
  );
}
