/** The live stream, the search in a period, and one detection with its versions (api-records.ts). */
import { findAccount } from '../../auth/accounts.ts';
import { findSubscription } from '../../auth/subscriptions.ts';
import { streamName, streamParts } from '../../detection/content-type.ts';
import { streamOfId } from '../../detection/id.ts';
import { readStreamHead } from '../../query/as-of.ts';
import { jsonBaseUrl, withBaseUrl } from '../../query/base-url.ts';
import { FILTER_PARAMETERS, STREAM_PARAMETERS } from '../../query/common-parameters.ts';
import { readInstant } from '../../query/instant.ts';
import {
  deliveredAtMs,
  knownStreams,
  newestRows,
  type StreamRow,
  type VersionSpan,
  versionRows,
} from '../../query/latest-rows.ts';
import { readOneDetection } from '../../query/one-detection.ts';
import {
  ANY_TEXT,
  defaulted,
  invalid,
  type Parameters,
  parseParameters,
  readParameters,
  readValues,
} from '../../query/parameters.ts';
import { readPeriodPage } from '../../query/period-page.ts';
import { readFirstDataStart } from '../../query/period-start.ts';
import type { PeriodPlace } from '../../query/query-cursor.ts';
import { integer } from '../../query/value-kinds.ts';
import { Refused } from '../../refused.ts';
import type { Database } from '../../store/database.ts';
import { DAY_MS, formatMs, formatSeconds, HOUR_MS, SECOND_MS } from '../../time.ts';
import type { DetectionDetail, DetectionEntry } from './api-records.ts';
import type { Read } from './reads.ts';
import type { Sources } from './sources.ts';

const LIMIT = { limit: defaulted(integer(1, 200), 50) };
/** What the API takes, too. */
const SHARED_PARAMETERS = { ...LIMIT, ...STREAM_PARAMETERS, ...FILTER_PARAMETERS };
const AFTER = { after: ANY_TEXT };
const PERIOD = { from: ANY_TEXT, to: ANY_TEXT };

export function readLive(sources: Sources, { query }: Read, nowMs: number): string {
  const parameters = parseParameters(query, { ...SHARED_PARAMETERS, ...AFTER });
  const after = readPosition(readValues(parameters, AFTER).after ?? '0');
  const wanted = {
    selection: readValues(parameters, STREAM_PARAMETERS),
    filters: readValues(parameters, FILTER_PARAMETERS),
  };
  const { limit } = readValues(parameters, LIMIT);
  const db = sources.detections();
  // Behind the rows that are read: what comes meanwhile is told next time.
  const through = db === null ? after : Math.max(after, readStreamHead(db).position);
  const rows = db === null ? [] : newestRows(db, { after, through }, wanted, limit);
  const since = { since: formatMs(nowMs - HOUR_MS) };
  return page(textsOf(sources, rows), {
    next: `${through}`,
    searched_to: null,
    curl: curl(sources, '/v1/detections/changes', parameters, since),
  });
}

/** Longer than the numbers that the API takes. */
function readPosition(text: string): number {
  const position = Number(text);
  if (!/^\d{1,16}$/.test(text) || !isCount(position)) throw notNext();
  return position;
}

/** The mark for the base address is put in. */
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

/** How long one step of a search may take; then the person is asked whether to go on. */
const STEP_MS = 40;
const SCANNED_MAX = 5000;
/** As many as one statement of the period endpoint reads. */
const STREAMS_AT_ONCE = 8;

/** Where a search stands: in the day that ends with this second, at a group of streams, behind a detection. */
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
  if (db === null) return page([], { next: null, searched_to: formatSeconds(period.from), curl: call });
  const names = knownStreams(db, selection).map((one) => streamName(one.subscription_id, one.content_type));
  // Nothing is older than the first detection of all: days before it need not be looked at.
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
    next: at === null ? null : Buffer.from(JSON.stringify(at)).toString('base64url'),
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

/** Days, or times; in whole epoch seconds. */
function readPeriod(parameters: Parameters, nowMs: number): { from: number; to: number } {
  const ends = readValues(parameters, PERIOD);
  const second = (name: 'from' | 'to') => {
    const text = ends[name];
    if (text === null) throw invalid(`${name}: it is required, a day such as 2026-11-21 or a time`);
    const ms = readInstant(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text);
    if (ms === null) throw invalid(`${name}: expected a day such as 2026-11-21, or a time with Z`);
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

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function readOne(sources: Sources, { query }: Read): DetectionDetail {
  const { id: asked, after } = readParameters(query, { id: ANY_TEXT, ...AFTER });
  const id = asked ?? '';
  const db = sources.detections();
  const found = db === null ? null : versionRows(db, id, readSpan(after));
  const text = found === null || db === null ? null : currentText(sources, db, id);
  if (found === null || db === null || text === null)
    throw new Refused('not_found', `There is no detection ${id}.`);
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
    next: found.next === null ? null : Buffer.from(JSON.stringify(found.next)).toString('base64url'),
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

/** What every version changes says nothing. */
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

/** The call with the same filters. @param more parameters that the console has in other words */
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
