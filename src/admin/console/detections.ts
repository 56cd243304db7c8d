/** The live stream, the search in a period, and one detection with its versions (api-records.ts). */
import { findAccount } from '../../auth/accounts.ts';
import { findSubscription } from '../../auth/subscriptions.ts';
import { streamParts } from '../../detection/content-type.ts';
import { streamOfId } from '../../detection/id.ts';
import { isObject } from '../../history/format.ts';
import { readStreamHead } from '../../query/as-of.ts';
import { FILTER_PARAMETERS, STREAM_PARAMETERS } from '../../query/common-parameters.ts';
import { jsonBaseUrl, readOneDetection, withBaseUrl } from '../../query/detection-text.ts';
import {
  deliveredAtMs,
  knownStreams,
  newestRows,
  type StreamRow,
  type VersionSpan,
  versionRows,
} from '../../query/latest-rows.ts';
import {
  ANY_TEXT,
  defaulted,
  invalid,
  type Parameters,
  parseParameters,
  readParameters,
  readValues,
} from '../../query/parameters.ts';
import { readFirstDataStart, readPeriodPage } from '../../query/period-page.ts';
import type { PeriodPlace } from '../../query/query-cursor.ts';
import { integer } from '../../query/value-kinds.ts';
import { Refused } from '../../refused.ts';
import type { Database } from '../../store/database.ts';
import { DAY_MS, formatMs, formatSeconds, HOUR_MS, SECOND_MS } from '../../time.ts';
import type { DetectionEntry } from './api.ts';
import type { DetectionDetail } from './api-records.ts';
import { PERIOD, readEnd } from './period.ts';
import type { Read, Sources } from './sources.ts';

const LIMIT = { limit: defaulted(integer(1, 200), 50) };
/** What the API takes, too. */
const SHARED_PARAMETERS = { ...LIMIT, ...STREAM_PARAMETERS, ...FILTER_PARAMETERS };
const AFTER = { after: ANY_TEXT };

export function readLive(sources: Sources, { query }: Read, nowMs: number): string {
  const parameters = parseParameters(query, { ...SHARED_PARAMETERS, ...AFTER });
  const after = readPosition(readValues(parameters, AFTER).after ?? '0');
  const wanted = {
    selection: readValues(parameters, STREAM_PARAMETERS),
    filters: readValues(parameters, FILTER_PARAMETERS),
  };
  const { limit } = readValues(parameters, LIMIT);
  const db = sources.detections();
  // The head is read before the rows: what is delivered in between is left to the next request.
  const through = Math.max(after, readStreamHead(db).position);
  const rows = newestRows(db, { after, through }, wanted, limit);
  const since = { since: formatMs(nowMs - HOUR_MS) };
  return page(textsOf(sources, rows), {
    next: `${through}`,
    searched_to: null,
    curl: curl(sources, '/v1/detections/changes', parameters, since),
  });
}

/** Positions are longer than the numbers of the API. */
function readPosition(text: string): number {
  const position = Number(text);
  if (!/^\d{1,16}$/.test(text) || !isCount(position)) throw notNext();
  return position;
}

/** With the base address inserted. */
function textsOf({ settings }: Sources, rows: readonly StreamRow[]): string[] {
  const baseUrl = jsonBaseUrl(settings.base_url);
  return rows.map(({ body }) => withBaseUrl(body, baseUrl));
}

export function entriesOf(sources: Sources, rows: readonly StreamRow[]): DetectionEntry[] {
  return textsOf(sources, rows).map((text) => JSON.parse(text));
}

function page(texts: readonly string[], rest: Readonly<Record<string, unknown>>): string {
  return `{"detections":[${texts.join(',')}],${JSON.stringify(rest).slice(1)}`;
}

/** The time of one step of a search; the person decides whether to continue. */
const STEP_MS = 40;
const SCANNED_MAX = 5000;
/** As many as one statement of the period endpoint reads. */
const STREAMS_AT_ONCE = 8;

/** The place of a search: in the day that ends with this second, in a group of streams, after a detection. */
interface SearchPlace {
  readonly end: number;
  readonly group: number;
  readonly place: PeriodPlace | null;
}

export function readSearch(sources: Sources, { query }: Read, nowMs: number): string {
  const parameters = parseParameters(query, { ...SHARED_PARAMETERS, ...PERIOD, ...AFTER });
  const filters = readValues(parameters, FILTER_PARAMETERS);
  const selection = readValues(parameters, STREAM_PARAMETERS);
  const { limit } = readValues(parameters, LIMIT);
  const period = readPeriod(parameters, nowMs);
  const call = curl(sources, '/v1/detections', parameters, {
    from: formatSeconds(period.from),
    to: formatSeconds(period.to),
  });
  const db = sources.detections();
  const names = knownStreams(db, selection);
  // The days before the first detection of all are skipped.
  const from = Math.max(period.from, readFirstDataStart(db, names) ?? period.to);
  if (from >= period.to) return page([], { next: null, searched_to: formatSeconds(period.from), curl: call });
  const groups = Math.ceil(names.length / STREAMS_AT_ONCE);
  const texts: string[] = [];
  const untilMs = performance.now() + STEP_MS;
  let count = 0;
  let at: SearchPlace | null = readPlace(readValues(parameters, AFTER).after, period.to);
  do {
    const day: { from: number; to: number } = { from: Math.max(from, dayBefore(at.end)), to: at.end };
    const found = readPeriodPage(
      db,
      {
        streams: names.slice(at.group * STREAMS_AT_ONCE, (at.group + 1) * STREAMS_AT_ONCE),
        content_types: [],
        filters,
        period: day,
        sort: 'descending',
        after: at.place,
        limit: limit - count,
        projection: null,
        baseUrl: jsonBaseUrl(sources.settings.base_url),
      },
      SCANNED_MAX,
    );
    if (found.rows > 0) texts.push(found.data.join(''));
    count += found.rows;
    at = found.next === null ? nextPlace(at, day.from, groups, from) : { ...at, place: found.next };
  } while (at !== null && count < limit && performance.now() < untilMs);
  return page(texts, {
    next: nextOf(at),
    searched_to: formatSeconds(at === null ? period.from : (at.place?.second ?? at.end)),
    curl: call,
  });
}

function nextPlace(at: SearchPlace, dayFrom: number, groups: number, from: number): SearchPlace | null {
  if (at.group + 1 < groups) return { end: at.end, group: at.group + 1, place: null };
  return dayFrom <= from ? null : { end: dayFrom, group: 0, place: null };
}

/** Midnight (UTC) with which the day of the second before began. */
function dayBefore(end: number): number {
  const day = DAY_MS / SECOND_MS;
  return Math.floor((end - 1) / day) * day;
}

/** From days or times; in whole epoch seconds. */
function readPeriod(parameters: Parameters, nowMs: number): { from: number; to: number } {
  const ends = readValues(parameters, PERIOD);
  const second = (name: 'from' | 'to') => {
    const ms = readEnd(ends, name);
    if (ms === null) throw invalid(`${name}: it is required, a day such as 2026-11-21 or a time`);
    return Math.floor(ms / SECOND_MS);
  };
  const from = Math.max(0, second('from'));
  const to = Math.min(second('to'), Math.floor(nowMs / SECOND_MS) + 1);
  if (to <= from) throw invalid('from, to: from must be before to, and not in the future');
  return { from, to };
}

/** @param to of the period: where a search begins */
function readPlace(cursor: string | null, to: number): SearchPlace {
  const value = readCursor(cursor);
  if (value === null) return { end: to, group: 0, place: null };
  const { end, group, place } = value;
  if (!isCount(end) || end > to || !isCount(group)) throw notNext();
  if (place === null) return { end, group, place };
  if (!isObject(place) || !isCount(place.second) || typeof place.id !== 'string') throw notNext();
  return { end, group, place: { second: place.second, id: place.id } };
}

function nextOf(place: object | null): string | null {
  return place === null ? null : Buffer.from(JSON.stringify(place)).toString('base64url');
}

/** @returns the place of {@link nextOf}, to be checked; null for the beginning */
function readCursor(text: string | null): Record<string, unknown> | null {
  if (text === null) return null;
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'base64url').toString());
    if (isObject(value)) return value;
  } catch {}
  throw notNext();
}

function notNext(): Refused {
  return invalid('after: expected what next was');
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

export function readOne(sources: Sources, { query }: Read): DetectionDetail {
  const { id: asked, after } = readParameters(query, { id: ANY_TEXT, ...AFTER });
  const id = asked ?? '';
  const db = sources.detections();
  const found = versionRows(db, id, readSpan(after));
  const text = found && currentText(sources, db, id);
  if (found === null || text === null) throw new Refused('not_found', `There is no detection ${id}.`);
  const rows = found.rows.sort((a, b) => b.version - a.version);
  const detections = entriesOf(sources, rows);
  const versions = rows.map((row, at) => {
    const [detection, before] = [detections[at], detections[at + 1]];
    if (detection === undefined) throw new Error('a row without a text');
    const atMs = deliveredAtMs(db, row.position);
    return {
      version: row.version,
      at: atMs === null ? null : formatMs(atMs),
      detection,
      changed: before === undefined ? [] : changedPaths(before, detection),
    };
  });
  const subscription = findSubscription(sources.access(), streamParts(streamOfId(id)).subscription_id);
  const account = subscription && findAccount(sources.access(), subscription.account_id);
  return {
    current: JSON.parse(text),
    versions,
    next: nextOf(found.next),
    account: account && { id: account.id, name: account.name },
    curl: `${CURL} '${sources.settings.base_url}/v1/detections/${id}'`,
  };
}

function currentText({ settings }: Sources, db: Database, id: string): string | null {
  const baseUrl = jsonBaseUrl(settings.base_url);
  return readOneDetection(db, { id, streams: [streamOfId(id)], projection: null, baseUrl });
}

function readSpan(cursor: string | null): VersionSpan | null {
  const value = readCursor(cursor);
  if (value === null) return null;
  if (!isCount(value.low) || !isCount(value.high)) throw notNext();
  return { low: value.low, high: value.high };
}

/** Every version changes these. */
const ALWAYS_CHANGED = ['version', 'event'];

function changedPaths(before: unknown, after: unknown, path = ''): string[] {
  if (!isObject(before) || !isObject(after))
    return JSON.stringify(before) === JSON.stringify(after) ? [] : [path];
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return names
    .filter((name) => path !== '' || !ALWAYS_CHANGED.includes(name))
    .flatMap((name) => changedPaths(before[name], after[name], path === '' ? name : `${path}.${name}`));
}

const CURL = 'curl -sS -H "Authorization: Bearer $WIREWATCH_KEY"';

/** The API call with the same filters. @param more parameters with another name or default in the console */
function curl(
  { settings }: Sources,
  path: string,
  parameters: Parameters,
  more: Readonly<Record<string, string>>,
): string {
  const search = new URLSearchParams(more);
  for (const [name, values] of parameters)
    if (Object.hasOwn(SHARED_PARAMETERS, name)) for (const value of values) search.append(name, value);
  return `${CURL} '${settings.base_url}${path}?${search}'`;
}
