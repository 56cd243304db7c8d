/**
 * Local times of a time zone: where days begin and end (GET /v1/detections, `from`, `to`, `time_zone`), and which instant
 * a clock there means (exports of another shape). The only user of Temporal.
 *
 * A day is text, `2026-11-21`. It begins with the first instant at which a clock in the zone shows it: later than 00:00
 * if the clock skips midnight. A day that a zone skipped begins and ends at the same instant.
 */
import { Temporal } from 'temporal-polyfill';
import { DAY_MS, parseInstant } from './time.ts';

/** Whether a text is a day of the calendar, `YYYY-MM-DD`, from year 1 on. */
export function isDay(text: string): boolean {
  return /^\d{4}-\d\d-\d\d$/.test(text) && parseInstant(`${text}T00:00:00Z`) !== null;
}

/** The first instant of a day, epoch milliseconds. @param zone of time-zone.ts's zoneId */
export function dayStartMs(day: string, zone: string): number {
  return startMs(Temporal.PlainDate.from(day), zone);
}

/** The first instant after a day, epoch milliseconds. @param zone of time-zone.ts's zoneId */
export function dayEndMs(day: string, zone: string): number {
  return startMs(Temporal.PlainDate.from(day).add({ days: 1 }), zone);
}

/** The day that a clock in the zone shows. @param zone of time-zone.ts's zoneId */
export function dayAt(ms: number, zone: string): string {
  return Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(zone).toPlainDate().toString();
}

/** The number of calendar days from one to another, both counted. */
export function daysFromTo(first: string, last: string): number {
  return (Date.parse(last) - Date.parse(first)) / DAY_MS + 1;
}

/** `skipped`: no clock in the zone shows it; `twice`: clocks show it at two instants. */
export type LocalInstant = number | 'skipped' | 'twice';

/**
 * Which instant a clock in a zone means.
 * @param zone a name of the tz database, or an offset such as `+01:00`
 * @returns of a local time (epoch milliseconds, as if it were in UTC), the instant, epoch milliseconds
 */
export function localClock(zone: string): (localMs: number) => LocalInstant {
  const spans: Span[] = [];
  let span: Span | undefined;
  const isIn = (candidate: Span, localMs: number) => localMs >= candidate.from && localMs < candidate.to;
  return (localMs) => {
    if (span === undefined || !isIn(span, localMs)) {
      span = spans.find((candidate) => isIn(candidate, localMs));
      if (span === undefined) {
        const at = instantOf(localMs, zone);
        if (typeof at === 'string') return at;
        span = spanAt(at, zone);
        if (spans.unshift(span) > SPANS_MAX) spans.pop();
        return at.epochMilliseconds;
      }
    }
    return localMs - span.offsetMs;
  };
}

/** Local times, from one to before another, that clocks show once, all with this offset. */
interface Span {
  readonly from: number;
  readonly to: number;
  readonly offsetMs: number;
}

/** More than the changes of any zone in a century. */
const SPANS_MAX = 300;

function instantOf(localMs: number, zone: string): Temporal.Instant | 'skipped' | 'twice' {
  const local = Temporal.Instant.fromEpochMilliseconds(localMs).toZonedDateTimeISO('UTC').toPlainDateTime();
  const [earlier, later] = (['earlier', 'later'] as const).map((disambiguation) =>
    local.toZonedDateTime(zone, { disambiguation }),
  );
  if (earlier === undefined || later === undefined) throw new Error('a local time has two readings');
  if (earlier.epochMilliseconds === later.epochMilliseconds) return earlier.toInstant();
  return earlier.toPlainDateTime().equals(local) ? 'twice' : 'skipped';
}

/** Around a change, a local time may be that of the other side: it is left out. */
function spanAt(at: Temporal.Instant, zone: string): Span {
  const here = at.toZonedDateTimeISO(zone);
  const offsetMs = here.offsetNanoseconds / 1_000_000;
  const [next, last] = [
    here.getTimeZoneTransition('next'),
    here.add({ nanoseconds: 1 }).getTimeZoneTransition('previous'),
  ];
  const offsetOf = (zoned: Temporal.ZonedDateTime) => zoned.offsetNanoseconds / 1_000_000;
  return {
    offsetMs,
    from:
      last === null
        ? Number.NEGATIVE_INFINITY
        : last.epochMilliseconds + Math.max(offsetMs, offsetOf(last.subtract({ nanoseconds: 1 }))),
    to:
      next === null ? Number.POSITIVE_INFINITY : next.epochMilliseconds + Math.min(offsetMs, offsetOf(next)),
  };
}

function startMs(day: Temporal.PlainDate, zone: string): number {
  return day.toZonedDateTime(zone).epochMilliseconds;
}
