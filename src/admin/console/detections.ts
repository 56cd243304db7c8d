/** The live stream, the search in a period, and one detection with its versions (api.ts). */
import { type Static, type TSchema, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import type { DetectionMembers } from '../../detection/fields.ts';
import { isDetectionId, streamOfId } from '../../detection/id.ts';
import { isObject } from '../../is-object.ts';
import { deliveredAtMs } from '../../query/delivery.ts';
import { jsonBaseUrl, readOneDetection, withBaseUrl } from '../../query/detection-text.ts';
import { FILTER_PARAMETERS, filterSql, STREAM_PARAMETERS } from '../../query/filters.ts';
import { knownStreams, newestRows, type StreamRow, versionRows } from '../../query/latest-rows.ts';
import { defaulted, invalid, readParameters } from '../../query/parameters.ts';
import type { Period } from '../../query/period.ts';
import { readFirstDataStart, readPeriodPage } from '../../query/period-page.ts';
import type { StoredStream } from '../../query/stored-streams.ts';
import { ANY_TEXT, integer } from '../../query/value-kinds.ts';
import { Refused, unlessError } from '../../refused.ts';
import type { Database } from '../../store/database.ts';
import { DAY_MS, formatMs, formatSeconds, SECOND_MS } from '../../time.ts';
import { END, END_EXPECTED, type Read, type Sources } from './sources.ts';

/** A detection as clients see it, with `event` in the live stream. */
export type DetectionEntry = Omit<DetectionMembers, 'event'> & { readonly event?: string };

/** `GET detections/live` and `GET detections/search`; only a search goes on. */
export interface DetectionsPage {
  readonly detections: readonly DetectionEntry[];
  readonly next: string | null;
  /** How far back a search has come: a step may find none and still have a `next`. */
  readonly searched_to: string | null;
  /** How many there are in all, where that is cheap: without words and filters, of a search on its first page. */
  readonly total: { readonly rows: number; readonly or_more: boolean } | null;
}

const DAY_SECONDS = DAY_MS / SECOND_MS;
const COUNTED_MAX = 10_000;
export const COUNT_DETECTIONS = `
  SELECT count(*) FROM (
    SELECT 1 FROM json_each(:ordinals) AS known CROSS JOIN detection INDEXED BY detection_by_time
    WHERE detection.place >> 34 = known.value AND first_detected_at >= :from AND first_detected_at < :to
    LIMIT ${COUNTED_MAX})`;

const LIVE_PARAMETERS = { limit: defaulted(integer(1, 200), 50), ...STREAM_PARAMETERS, ...FILTER_PARAMETERS };
const SEARCH_PARAMETERS = {
  ...LIVE_PARAMETERS,
  from: { ...END, required: END_EXPECTED },
  to: { ...END, required: END_EXPECTED },
  after: ANY_TEXT,
  /** A part of headline, publisher, domain or id, in any case; a complete id is found in any period. */
  words: ANY_TEXT,
};
/** Rows that are read at once where their texts are searched. */
const SEARCHED_AT_ONCE = 200;
const COUNT = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

export function readLive(sources: Sources, { query }: Read): DetectionsPage {
  const asked = readParameters(query, LIVE_PARAMETERS);
  const db = sources.detections();
  const rows = newestRows(db, asked, asked.limit);
  const streams = isFiltered(asked) ? null : knownStreams(db, asked);
  const versions = streams?.reduce((sum, { sequence }) => sum + sequence, 0);
  const total = versions === undefined ? null : { rows: versions, or_more: false };
  return { detections: entriesOf(sources, rows), next: null, searched_to: null, total };
}

const isFiltered = (asked: Parameters<typeof filterSql>[0]) => filterSql(asked).sql !== '';

/** As the API names itself. */
const baseUrlOf = ({ config, live }: Sources) => jsonBaseUrl(config.server.base_url || live.url);

function entriesOf(sources: Sources, rows: readonly StreamRow[]): DetectionEntry[] {
  const baseUrl = baseUrlOf(sources);
  return rows.map(({ body }) => JSON.parse(withBaseUrl(body, baseUrl)));
}

/** The time of one step of a search; the person decides whether to continue. */
const STEP_MS = 40;
const SCANNED_MAX = 5000;
/** One statement of the period endpoint reads as many. */
const STREAMS_AT_ONCE = 8;

const AFTER = Type.Union([Type.Object({ second: COUNT, id: Type.String() }), Type.Null()]);
/** The place of a search: in the day that ends with this second, in a group of streams, after a detection. */
const PLACE = Type.Object({ end: COUNT, group: COUNT, place: AFTER });
type SearchPlace = Static<typeof PLACE>;
const SPAN = Type.Object({ low: COUNT, high: COUNT });

/** Current detections, by days from the newest to the oldest. One step reads a bounded number of rows. */
export function readSearch(sources: Sources, { query }: Read): DetectionsPage {
  const asked = readParameters(query, SEARCH_PARAMETERS);
  const { limit } = asked;
  const words = asked.words?.toLowerCase() ?? null;
  const period = periodOf(asked, sources.nowMs);
  const db = sources.detections();
  const named = words === null ? null : currentEntry(sources, db, words);
  const detections: DetectionEntry[] = named === null ? [] : [named];
  const whole = { detections, next: null, searched_to: formatSeconds(period.from), total: null };
  // A complete id needs no search, whatever the period.
  if (named !== null) return whole;
  const streams = knownStreams(db, asked);
  const names = streams.map(({ name }) => name);
  // The days before the first detection of all are skipped.
  const from = Math.max(period.from, readFirstDataStart(db, names) ?? period.to);
  if (from >= period.to) return whole;
  const groups = Math.ceil(names.length / STREAMS_AT_ONCE);
  const untilMs = performance.now() + STEP_MS;
  const cursor = readCursor(asked.after, PLACE);
  const isCounted = cursor === null && words === null && !isFiltered(asked);
  const total = isCounted ? countIn(db, streams, { from, to: period.to }) : null;
  const begun = cursor ?? { end: period.to, group: 0, place: null };
  let at: SearchPlace | null = { ...begun, end: Math.min(begun.end, period.to) };
  do {
    // From the midnight (UTC) with which the day of the second before began.
    const midnight = Math.floor((at.end - 1) / DAY_SECONDS) * DAY_SECONDS;
    const day: Period = { from: Math.max(from, midnight), to: at.end };
    const found = readPeriodPage(
      db,
      {
        streams: names.slice(at.group * STREAMS_AT_ONCE, (at.group + 1) * STREAMS_AT_ONCE),
        content_types: [],
        filters: asked,
        period: day,
        sort: 'descending',
        after: at.place,
        limit: words === null ? limit - detections.length : SEARCHED_AT_ONCE,
        projection: null,
        baseUrl: baseUrlOf(sources),
      },
      SCANNED_MAX,
    );
    const read: DetectionEntry[] = JSON.parse(`[${found.data}]`);
    detections.push(...read.filter((entry) => words === null || hasWords(entry, words)));
    at = found.next === null ? nextPlace(at, day.from, groups, from) : { ...at, place: found.next };
  } while (at !== null && detections.length < limit && performance.now() < untilMs);
  return {
    detections,
    next: nextOf(at),
    searched_to: formatSeconds(at === null ? period.from : (at.place?.second ?? at.end)),
    total,
  };
}

function countIn(db: Database, streams: readonly StoredStream[], period: Period): DetectionsPage['total'] {
  const ordinals = JSON.stringify(streams.map(({ ordinal }) => ordinal));
  const count = db.prepare<unknown[], number>(COUNT_DETECTIONS).pluck();
  const rows = count.get({ ordinals, ...period }) ?? 0;
  return { rows, or_more: rows === COUNTED_MAX };
}

const hasWords = ({ id, article: { headline, publisher, domain } }: DetectionEntry, words: string): boolean =>
  [id, headline, publisher?.name, domain].some((text) => text?.toLowerCase().includes(words));

function nextPlace(at: SearchPlace, dayFrom: number, groups: number, from: number): SearchPlace | null {
  if (at.group + 1 < groups) return { end: at.end, group: at.group + 1, place: null };
  return dayFrom <= from ? null : { end: dayFrom, group: 0, place: null };
}

/** @param ends epoch milliseconds */
function periodOf(ends: Period, nowMs: number): Period {
  const from = Math.max(0, Math.floor(ends.from / SECOND_MS));
  const to = Math.floor(Math.min(ends.to, nowMs + SECOND_MS) / SECOND_MS);
  if (to <= from) throw invalid('from, to: from must be before to, and not in the future');
  return { from, to };
}

const nextOf = (place: object | null): string | null =>
  place === null ? null : Buffer.from(JSON.stringify(place)).toString('base64url');

/** @returns the place of {@link nextOf}; null for the beginning */
function readCursor<Place extends TSchema>(text: string | null, schema: Place): Static<Place> | null {
  if (text === null) return null;
  const value: unknown = unlessError(null, () => JSON.parse(Buffer.from(text, 'base64url').toString()));
  if (!Value.Check(schema, value)) throw invalid('after: expected what next was');
  return value;
}

/** `?id=t.7001.1.2&after=…`: old versions are found by a search, in bounded steps. */
export function readOne(sources: Sources, { query }: Read) {
  const { id: asked, after } = readParameters(query, { id: ANY_TEXT, after: ANY_TEXT });
  const id = asked ?? '';
  const db = sources.detections();
  const found = versionRows(db, id, readCursor(after, SPAN));
  /** The answer to `GET /v1/detections/{id}`. */
  const current = currentEntry(sources, db, id);
  if (found === null || current === null) throw new Refused('not_found', `There is no detection ${id}.`);
  const rows = found.rows.sort((a, b) => b.version - a.version);
  const detections = entriesOf(sources, rows);
  const versions = rows.map((row, at) => {
    const [detection, before] = [detections[at], detections[at + 1]];
    if (detection === undefined) throw new Error('a row without a text');
    const atMs = deliveredAtMs(db, row.position);
    return {
      version: row.version,
      /** When it was delivered; null until that is recorded. */
      at: atMs === null ? null : formatMs(atMs),
      detection,
      /** The dotted paths that differ from the version before it in this list; empty for the first. */
      changed: before === undefined ? [] : changedPaths(before, detection),
    };
  });
  return { current, versions, next: nextOf(found.next) };
}

/** @returns null where there is no such detection */
function currentEntry(sources: Sources, db: Database, id: string): DetectionEntry | null {
  if (!isDetectionId(id)) return null;
  const asked = { streams: [streamOfId(id)], projection: null, baseUrl: baseUrlOf(sources) };
  return JSON.parse(readOneDetection(db, id, asked) ?? 'null');
}

const ALWAYS_CHANGED = ['version', 'event'];

function changedPaths(before: unknown, after: unknown, path = ''): string[] {
  if (!isObject(before) || !isObject(after))
    return JSON.stringify(before) === JSON.stringify(after) ? [] : [path];
  return [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .filter((name) => path !== '' || !ALWAYS_CHANGED.includes(name))
    .flatMap((name) => changedPaths(before[name], after[name], path === '' ? name : `${path}.${name}`));
}
