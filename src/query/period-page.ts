/**
 * A page of the period endpoint (GET /v1/detections): current detections, by `first_detected_at` in either direction,
 * within one second by ascending id.
 *
 * In a statement each stream is an arm of its own; SQLite merges their index entries and reads no further than the limit.
 * The index has the newest second first, and within a second the ids in order. In ascending order SQLite sorts the ids of
 * each second, though a backfill may have given a million detections the same one. So only seconds that end within the
 * page are read whole, and of the one in which it ends only the beginning, as the index has it.
 */
import type { StreamName } from '../detection/content-type.ts';
import { CHUNK_ROWS, PAGE_CHUNKS_MAX } from '../limits/api-limits.ts';
import { type Database, preparedOnce, reading } from '../store/database.ts';
import { asOfMs, readStreamHead } from './as-of.ts';
import type { PeriodPlace } from './cursors.ts';
import {
  DETECTIONS_COLUMNS,
  type DetectionTexts,
  detectionsOf,
  detectionTables,
  shownTexts,
} from './detection-text.ts';
import { type FilterSql, filterSql } from './filters.ts';
import type { Period } from './period.ts';
import type { PeriodSort } from './period-request.ts';
import {
  asItComes,
  NO_ROWS,
  type PageQuery,
  type Stored,
  statementsOf,
  storedStreams,
  streamArms,
  streamValues,
} from './stored-streams.ts';

/** At most eight streams. `after`: the last detection of the previous page; null for the first page. */
export type PeriodQuery = PageQuery &
  Readonly<{ sort: PeriodSort; period: Period; after: PeriodPlace | null }>;

/** Sort before and after every id. */
const FIRST_ID = '';
const LAST_ID = '~';

type Query = Stored<PeriodQuery>;

/** What a page can read, in the direction of reading. `end`: the first second after the period. */
type Span = Readonly<{ start: PeriodPlace; end: number }>;

/**
 * @param scanRowsMax raw rows that a page with filters may read
 * @returns `data`: JSON texts of the rows, with commas between them; `next`: where the next page begins, null at the end of
 *   the period
 */
export function readPeriodPage(db: Database, asked: PeriodQuery, scanRowsMax = CHUNK_ROWS * PAGE_CHUNKS_MAX) {
  return reading(db, () => {
    const as_of_ms = asOfMs(readStreamHead(db), asked.content_types);
    const { period } = asked;
    const query: Query = { ...asked, streams: storedStreams(db, asked.streams) };
    if (query.streams.length === 0 || period.from >= period.to) return { ...NO_ROWS, next: null, as_of_ms };
    const isDescending = query.sort === 'descending';
    const span: Span = {
      start: query.after ?? { second: isDescending ? period.to : period.from - 1, id: LAST_ID },
      end: isDescending ? period.from - 1 : period.to,
    };
    const filter = filterSql(query.filters);
    const isExact = filter.sql !== '';
    // The most common request: no filter, newest first. One statement reads the page.
    const isNewest = isDescending && !isExact;
    // Without filters the limit ends the page, so the bound need not be exact.
    const rowsMax = isExact ? scanRowsMax : query.limit;
    const bound = isNewest ? null : scanBound(db, query, span, rowsMax, isExact);
    const { data, rows, last } = readRows(db, query, filter, span, bound);
    const reached = rows === query.limit ? last : bound;
    const isEnd =
      reached === null || more(db, query.streams.length).get(behind(query, reached, span.end))?.more !== 1;
    return { data, rows, next: isEnd ? null : reached, as_of_ms };
  });
}

/** The last raw row that a page may read, or (not exact) its second; null when there are fewer. */
function scanBound(db: Database, query: Query, { start, end }: Span, rowsMax: number, isExact: boolean) {
  const count = query.streams.length;
  const rest = behind(query, start, end);
  const second = secondAt(db, query.sort, count).get({ ...rest, skipped: rowsMax - 1 })?.second;
  if (second === undefined) return null;
  if (!isExact) return { second, id: LAST_ID };
  const isStart = second === start.second;
  const before = isStart
    ? 0
    : (rowsBefore(db, count).get({ ...rest, ...between(query.sort, start.second, second) })?.rows ?? 0);
  const after = isStart ? start.id : FIRST_ID;
  const skipped = rowsMax - 1 - before;
  const id = idAt(db, count).get({ ...rest, second, after, upto: LAST_ID, skipped })?.id;
  if (id === undefined) throw new Error('a row that was counted cannot be read');
  return { second, id };
}

/** @param bound of {@link scanBound} */
function readRows(db: Database, query: Query, filter: FilterSql, span: Span, bound: PeriodPlace | null) {
  const { streams, sort, limit } = query;
  const { start, end } = span;
  const isWithin = bound?.second === start.second;
  const parts: PagePart[] = start.id === LAST_ID ? [] : ['rest'];
  if (!isWithin) parts.push('whole');
  if (bound !== null && !isWithin) parts.push('beginning');
  const page = pageText(db, sort, parts, streams.length, filter.sql).get({
    ...behind(query, start, bound?.second ?? end),
    ...filter.values,
    upto: isWithin ? bound.id : LAST_ID,
    last_second: bound?.second ?? null,
    last_id: bound?.id ?? null,
    limit,
  });
  if (page?.data == null || page.second === null) return { ...NO_ROWS, last: null };
  const texts = detectionsOf(page.data, page);
  const last = { second: page.second, id: lastId(texts) };
  return { data: shownTexts(texts, query), rows: page.rows, last };
}

/** Each row begins with its id: nowhere else in the JSON text does an object with one follow another. */
function lastId(data: Buffer): string {
  const row = data.lastIndexOf('},{"id":"');
  const start = row < 0 ? '{"id":"'.length : row + '},{"id":"'.length;
  return data.toString('latin1', start, data.indexOf('"', start));
}

/** The rest of a second, and the seconds up to an end. */
function behind({ streams, sort }: Query, { second, id }: PeriodPlace, end: number) {
  return { ...streamValues(streams), second, after: id, ...between(sort, second, end) };
}

/** The seconds between two, both excluded, in either direction. */
const between = (sort: PeriodSort, start: number, end: number): { low: number; high: number } =>
  sort === 'ascending' ? { low: start, high: end } : { low: end, high: start };

const DIRECTION: Readonly<Record<PeriodSort, string>> = { ascending: 'ASC', descending: 'DESC' };

/** The rest of a second: its ids from `@after` (excluded) on. */
const AFTER = `first_detected_at = ${asItComes('@second')} AND id > @after`;
const WITHIN = `${AFTER} AND id <= @upto`;
const BETWEEN = 'first_detected_at > @low AND first_detected_at < @high';

/** What a page is made of: the rest of the second in which it begins, whole seconds, the beginning of the last one. */
const PARTS = {
  rest: WITHIN,
  whole: BETWEEN,
  beginning: `first_detected_at = ${asItComes('@last_second')} AND id <= @last_id`,
};
type PagePart = keyof typeof PARTS;

/** The detections of a page as one text, for which nothing is parsed. */
export function pageSql(sort: PeriodSort, parts: readonly PagePart[], streams: number, conditions: string) {
  const columns = 'detection.place AS place, first_detected_at AS second, id';
  const arms = parts.map((part) => union(streams, columns, PARTS[part], conditions));
  const order = `ORDER BY second ${DIRECTION[sort]}, id LIMIT ${asItComes('@limit')}`;
  return `SELECT ${DETECTIONS_COLUMNS}, count(*) AS rows, ${sort === 'ascending' ? 'max' : 'min'}(page.second) AS second
    FROM (${arms.join(' UNION ALL ')} ${order}) AS ${detectionTables('page')}`;
}

/** Rows of the rest of a second, and of whole seconds. */
const restAndWhole = (streams: number, columns: string) =>
  [AFTER, BETWEEN].map((where) => union(streams, columns, where)).join(' UNION ALL ');

/** The second of the row after `@skipped` others; the order within a second does not matter. */
export const secondAtSql = (sort: PeriodSort, streams: number): string =>
  `SELECT second FROM (${restAndWhole(streams, 'first_detected_at AS second')} ORDER BY second ${DIRECTION[sort]}) LIMIT 1 OFFSET ${asItComes('@skipped')}`;

/** The number of rows in the rest of a second and in whole seconds. */
export const rowsBeforeSql = (streams: number): string =>
  `SELECT sum(rows) AS rows FROM (${restAndWhole(streams, 'count(*) AS rows')})`;

/** The id of the row after `@skipped` others of its second. */
export const idAtSql = (streams: number): string =>
  `SELECT id FROM (${union(streams, 'id', WITHIN)} ORDER BY id) LIMIT 1 OFFSET ${asItComes('@skipped')}`;

export function moreSql(streams: number): string {
  // Whole seconds first: nearly always some exist, and the first one found ends the search.
  const rowOf = (ordinal: string) => `SELECT 1 FROM detection WHERE place >> 34 = ${ordinal}`;
  const exists = [BETWEEN, AFTER].flatMap((where) =>
    streamArms(streams, (ordinal) => `EXISTS (${rowOf(ordinal)} AND ${where})`),
  );
  return `SELECT ${exists.join(' OR ')} AS more`;
}

/** The columns of filters are in the newest stream row. */
function union(streams: number, columns: string, where: string, conditions = ''): string {
  const newestRow = conditions === '' ? '' : ' CROSS JOIN stream_row AS row ON row.place = detection.place';
  const arm = (ordinal: string) =>
    `SELECT ${columns} FROM detection${newestRow} WHERE detection.place >> 34 = ${ordinal} AND ${where}${conditions}`;
  return streamArms(streams, arm).join(' UNION ALL ');
}

type PageTexts = DetectionTexts & Readonly<{ rows: number; second: number | null }>;
const pageText = statementsOf<PageTexts, Parameters<typeof pageSql>>(pageSql);
const secondAt = statementsOf<{ second: number }, Parameters<typeof secondAtSql>>(secondAtSql);
const rowsBefore = statementsOf<{ rows: number }, [number]>(rowsBeforeSql);
const idAt = statementsOf<{ id: string }, [number]>(idAtSql);
const more = statementsOf<{ more: number }, [number]>(moreSql);

export const DATA_START = `
  SELECT min(first_detected_at) AS start FROM detection WHERE place >> 34 = ${asItComes('@ordinal')}`;

const dataStart = preparedOnce<{ start: number | null }>(DATA_START);

/** @returns the earliest current `first_detected_at` of each stream, epoch seconds; null without records */
export function readDataStarts(db: Database, streams: readonly StreamName[]) {
  const starts = new Map<StreamName, number | null>(streams.map((stream) => [stream, null]));
  for (const { name, ordinal } of storedStreams(db, streams))
    starts.set(name, dataStart(db).get({ ordinal })?.start ?? null);
  return starts;
}

/** The earliest of all; null when no stream has records. */
export function readFirstDataStart(db: Database, streams: readonly StreamName[]): number | null {
  const starts = [...readDataStarts(db, streams).values()].filter((start) => start !== null);
  return starts.length === 0 ? null : Math.min(...starts);
}
