/**
 * Where days begin and end in a time zone (GET /v1/detections, `from`, `to`, `time_zone`). The only user of
 * Temporal.
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

function startMs(day: Temporal.PlainDate, zone: string): number {
  return day.toZonedDateTime(zone).epochMilliseconds;
}
