/**
 * Local times of a time zone: where days begin and end (GET /v1/detections, `from`, `to`, `time_zone`), and which instant
 * a clock there means (exports of another shape). The only user of Temporal.
 *
 * A day is text, `2026-11-21`. It begins with the first instant at which a clock in the zone shows it: later than 00:00
 * if the clock skips midnight. A day that a zone skipped begins and ends at the same instant.
 */
import { Temporal } from 'temporal-polyfill';
import { BoundedMap } from './bounded-map.ts';
import { getOrMake } from './get-or-make.ts';
import { DAY_MS, parseInstant } from './time.ts';

/** Whether a text is a day of the calendar, `YYYY-MM-DD`, from year 1 on. */
export const isDay = (text: string): boolean =>
  /^\d{4}-\d\d-\d\d$/.test(text) && parseInstant(`${text}T00:00:00Z`) !== null;

/** The first instant of a day, epoch milliseconds. @param zone of time-zone.ts's zoneId */
export const dayStartMs = (day: string, zone: string): number => startMs(Temporal.PlainDate.from(day), zone);

/** The first instant after a day, epoch milliseconds. @param zone of time-zone.ts's zoneId */
export const dayEndMs = (day: string, zone: string): number =>
  startMs(Temporal.PlainDate.from(day).add({ days: 1 }), zone);

/** The day that a clock in the zone shows. @param zone of time-zone.ts's zoneId */
export const dayAt = (ms: number, zone: string): string =>
  Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(zone).toPlainDate().toString();

/** The number of calendar days from one to another, both counted. */
export const daysFromTo = (first: string, last: string): number =>
  (Date.parse(last) - Date.parse(first)) / DAY_MS + 1;

/** `skipped`: no clock in the zone shows it; `twice`: clocks show it at two instants. */
export type LocalInstant = number | 'skipped' | 'twice';

/** More than a backfill of twenty years has. */
const DAYS_KEPT_MAX = 10_000;

/**
 * Which instant a clock in a zone means.
 * @param zone a name of the tz database, or an offset such as `+01:00`
 * @returns of a local time (epoch milliseconds, as if it were in UTC), the instant, epoch milliseconds
 */
export function localClock(zone: string): (localMs: number) => LocalInstant {
  /** How far clocks are ahead of UTC, by local day; null where this changes within the day. */
  const offsets = new BoundedMap<number, number | null>(DAYS_KEPT_MAX);
  return (localMs) => {
    const day = Math.floor(localMs / DAY_MS);
    const offsetMs = getOrMake(offsets, day, () => {
      const from = instantOf(day * DAY_MS, zone);
      const to = instantOf((day + 1) * DAY_MS, zone);
      return typeof from === 'number' && to === from + DAY_MS ? day * DAY_MS - from : null;
    });
    return offsetMs === null ? instantOf(localMs, zone) : localMs - offsetMs;
  };
}

function instantOf(localMs: number, zone: string): LocalInstant {
  const local = Temporal.Instant.fromEpochMilliseconds(localMs).toZonedDateTimeISO('UTC').toPlainDateTime();
  const as = (disambiguation: 'earlier' | 'later') => local.toZonedDateTime(zone, { disambiguation });
  const earlier = as('earlier');
  if (earlier.epochMilliseconds === as('later').epochMilliseconds) return earlier.epochMilliseconds;
  return earlier.toPlainDateTime().equals(local) ? 'twice' : 'skipped';
}

const startMs = (day: Temporal.PlainDate, zone: string): number =>
  day.toZonedDateTime(zone).epochMilliseconds;
