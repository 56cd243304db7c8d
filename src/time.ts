/**
 * Instants and windows as text and as integers.
 *
 * Inside the program a time is an integer since the epoch, UTC, with its unit in its name. The API's `timestamp` has
 * whole seconds and a `Z`; a window is ten minutes, `[start, end)`.
 */

export const SECOND_MS = 1000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/** Length of an export window. */
export const WINDOW_MS = 10 * MINUTE_MS;

/** An export may name times so far beyond the end of its window. */
export const AHEAD_MS_MAX = DAY_MS;

/** The clock, injected wherever a rule depends on the time: epoch milliseconds. */
export type Now = () => number;

const ZERO = 48;
const DAYS_OF_400_YEARS = 146_097;

/**
 * Parses an ISO 8601 time with `Z` or an offset, strictly: days that do not exist are refused. `t` and `z` may be lower
 * case (RFC 3339, 5.6).
 * @returns epoch milliseconds, truncated; null for any other text
 */
export function parseInstant(text: string): number | null {
  // The shape is checked by position: this runs five times for every row that is ingested.
  const length = text.length;
  if (length < 20 || text[4] !== '-' || text[7] !== '-' || (text[10] !== 'T' && text[10] !== 't'))
    return null;
  if (text[13] !== ':' || text[16] !== ':') return null;
  const year = digits(text, 0, 4);
  const month = digits(text, 5, 2);
  const day = digits(text, 8, 2);
  const hour = digits(text, 11, 2);
  const minute = digits(text, 14, 2);
  const second = digits(text, 17, 2);
  if (year < 1 || month < 1 || month > 12 || day < 1 || day > daysInMonth(year, month)) return null;
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59) return null;
  // Date.UTC takes the years below 100 for those of the last century; the calendar repeats every 400 years.
  let ms = Date.UTC(year + 400, month - 1, day, hour, minute, second) - DAYS_OF_400_YEARS * DAY_MS;
  let at = 19;
  if (text[at] === '.') {
    at += 1;
    const start = at;
    while (at < length && isDigit(text, at)) at += 1;
    if (at === start) return null;
    ms += Number(text.slice(start, at).slice(0, 3).padEnd(3, '0'));
  }
  const offsetMs = parseOffset(text, at);
  if (offsetMs === null) return null;
  ms -= offsetMs;
  return ms >= FIRST_MS && ms <= LAST_MS ? ms : null;
}

/** Parses like {@link parseInstant}. @returns epoch seconds, truncated */
export function parseSeconds(text: string): number | null {
  const ms = parseInstant(text);
  return ms === null ? null : Math.floor(ms / SECOND_MS);
}

/** Formats epoch seconds as the API's timestamp, `2026-11-21T10:10:00Z`. */
export const formatSeconds = (seconds: number): string =>
  `${new Date(seconds * SECOND_MS).toISOString().slice(0, 19)}Z`;

/** Formats epoch milliseconds as the API's timestamp, truncated. */
export const formatMs = (ms: number): string => formatSeconds(Math.floor(ms / SECOND_MS));

/** Formats the start of a window as in export file names, `20261121T1010Z`. */
export const formatWindowStart = (windowStartMs: number): string =>
  `${formatCompact(windowStartMs).slice(0, 13)}Z`;

/** Formats an instant as in other file names, `20261121T101000Z`, truncated. */
export const formatCompact = (ms: number): string =>
  `${new Date(ms).toISOString().slice(0, 19).replaceAll(/[-:]/g, '')}Z`;

/** Parses the start of a window as in export file names; null if it is not a time or not a multiple of ten minutes. */
export function parseWindowStart(text: string): number | null {
  const match = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)Z$/.exec(text);
  if (!match) return null;
  const [, year, month, day, hour, minute] = match;
  const ms = parseInstant(`${year}-${month}-${day}T${hour}:${minute}:00Z`);
  return ms !== null && ms % WINDOW_MS === 0 ? ms : null;
}

/** The UTC day of an instant, `2026-11-21`. */
export const utcDay = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: SECOND_MS, m: MINUTE_MS, h: HOUR_MS, d: DAY_MS };
const DURATION_MAX_MS = 200 * 366 * DAY_MS;

/** Reads `250ms`, `30s`, `59m58s`, `26h` or `3d`, with an optional sign; milliseconds, or null. */
export function parseDuration(text: string): number | null {
  const [, sign, parts = ''] = /^([+-]?)((?:\d{1,12}(?:\.\d{1,3})?(?:ms|s|m|h|d)){1,5})$/.exec(text) ?? [];
  let ms = parts === '' ? Number.NaN : 0;
  for (const [, count, unit = ''] of parts.matchAll(/([\d.]+)([a-z]+)/g))
    ms += Math.round(Number(count) * (UNITS[unit] ?? Number.NaN));
  if (!(ms <= DURATION_MAX_MS)) return null;
  return sign === '-' ? -ms : ms;
}

const FIRST_MS = Date.parse('0001-01-01T00:00:00Z');
const LAST_MS = Date.parse('9999-12-31T23:59:59.999Z');

function parseOffset(text: string, at: number): number | null {
  if (text[at] === 'Z' || text[at] === 'z') return text.length === at + 1 ? 0 : null;
  const sign = Number(text[at] === '+') - Number(text[at] === '-');
  if (sign === 0 || text.length !== at + 6 || text[at + 3] !== ':') return null;
  const hours = digits(text, at + 1, 2);
  const minutes = digits(text, at + 4, 2);
  if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return null;
  return sign * (hours * HOUR_MS + minutes * MINUTE_MS);
}

/** The number in `count` digits from `start`; -1 if one of them is not a digit. */
function digits(text: string, start: number, count: number): number {
  let value = 0;
  for (let at = start; at < start + count; at += 1) {
    if (!isDigit(text, at)) return -1;
    value = value * 10 + (text.charCodeAt(at) - ZERO);
  }
  return value;
}

function isDigit(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code >= ZERO && code <= ZERO + 9;
}

function daysInMonth(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}
