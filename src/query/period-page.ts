/**
 * A page of the period endpoint (GET /v1/detections): current detections, by `first_detected_at` in either direction,
 * within one second by ascending id.
 *
 * The index has the newest second first, and within a second the ids in order. In ascending order SQLite sorts the ids of
 * each second, though a backfill may have given a million detections the same one. So only seconds that end within the
 * page are read whole, and of the one in which it ends only the beginning, as the index has it.
 */
import { type ContentType, type StreamName, TYPE_RULES } from '../detection/content-type.ts';
import { CHUNK_ROWS, PAGE_CHUNKS_MAX } from '../limits/api-limits.ts';
import { type Database, preparedOnce, reading, type Statement } from '../store/database.ts';
import { asOfMs, readStreamHead } from './as-of.ts';
import { type FilterSql, filterSql, type SqlValue } from './common-parameters.ts';
import { type DetectionTexts, detectionsOf, putBaseUrl } from './detection-text.ts';
import type { Period } from './period.ts';
import type { PeriodParameters, PeriodSort } from './period-request.ts';
import {
  begunSql,
  idAtSql,
  moreSql,
  type PagePart,
  pageSql,
  rowsBeforeSql,
  secondAtSql,
} from './period-sql.ts';
import { projected } from './projection.ts';
import type { PeriodPlace } from './query-cursor.ts';
import { type StoredStream, statementFamily, storedStreams, streamValues } from './stored-streams.ts';

export interface PeriodQuery extends Pick<PeriodParameters, 'filters' | 'sort' | 'limit' | 'projection'> {
  /** At most eight. */
  readonly streams: readonly StreamName[];
  /** What `as_of` covers. */
  readonly content_types: readonly ContentType[];
  readonly period: Period;
  /** The last detection of the previous page; null for the first page. */
  readonly after: PeriodPlace | null;
  readonly baseUrl: Buffer;
}

export interface PeriodPage {
  /** JSON texts of the rows, with commas between them. */
  readonly data: Buffer;
  readonly rows: number;
  /** Where the next page begins; null at the end of the period. */
  readonly next: PeriodPlace | null;
  readonly as_of_ms: number | null;
}

const NO_ROWS = { data: Buffer.alloc(0), rows: 0 };
/** Sort before and after every id. */
const FIRST_ID = '';
const LAST_ID = '~';

/** With the streams of it that are stored. */
type Query = Omit<PeriodQuery, 'streams'> & { readonly streams: readonly StoredStream[] };

type Values = Readonly<Record<string, SqlValue>>;

/** What a page can read, in the direction of reading. */
interface Span {
  readonly start: PeriodPlace;
  /** The first second after the period. */
  readonly end: number;
}

/** @param scanRowsMax raw rows that a page with filters may read */
export function readPeriodPage(
  db: Database,
  asked: PeriodQuery,
  scanRowsMax = CHUNK_ROWS * PAGE_CHUNKS_MAX,
): PeriodPage {
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
    const bound = isNewest ? null : scanBound(db, query, span, { rowsMax, isExact });
    const { data, rows, last } = readRows(db, query, filter, span, bound);
    const reached = rows === query.limit ? last : bound;
    const isEnd =
      reached === null ||
      more(db, query.streams.length, '').get(behind(query, reached, span.end))?.more !== 1;
    return { data, rows, next: isEnd ? null : reached, as_of_ms };
  });
}

/** The last raw row that a page may read, or (not exact) its second; null when there are fewer. */
function scanBound(
  db: Database,
  query: Query,
  { start, end }: Span,
  { rowsMax, isExact }: { rowsMax: number; isExact: boolean },
): PeriodPlace | null {
  const count = query.streams.length;
  const rest = behind(query, start, end);
  const second = SECOND_AT[query.sort](db, count, '').get({ ...rest, skipped: rowsMax - 1 })?.second;
  if (second === undefined) return null;
  if (!isExact) return { second, id: LAST_ID };
  const isStart = second === start.second;
  const before = isStart
    ? 0
    : (rowsBefore(db, count, '').get({ ...rest, ...between(query.sort, start.second, second) })?.rows ?? 0);
  const after = isStart ? start.id : FIRST_ID;
  const skipped = rowsMax - 1 - before;
  const id = idAt(db, count, '').get({ ...rest, second, after, upto: LAST_ID, skipped })?.id;
  if (id === undefined) throw new Error('a row that was counted cannot be read');
  return { second, id };
}

interface Rows {
  readonly data: Buffer;
  readonly rows: number;
  readonly last: PeriodPlace | null;
}

/** @param bound of {@link scanBound} */
function readRows(
  db: Database,
  query: Query,
  filter: FilterSql,
  { start, end }: Span,
  bound: PeriodPlace | null,
): Rows {
  const { streams, sort, limit, baseUrl, projection } = query;
  const isWithin = bound?.second === start.second;
  const parts: PagePart[] = start.id === LAST_ID ? [] : ['rest'];
  if (!isWithin) parts.push('whole');
  if (bound !== null && !isWithin) parts.push('beginning');
  const page = pageText(sort, parts)(db, streams.length, filter.sql).get({
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
  const withOwnAddresses = streams.some(({ content_type }) => TYPE_RULES[content_type].has_own_address);
  const shown = withOwnAddresses ? putBaseUrl(texts, baseUrl) : texts;
  return { data: projected(shown, projection), rows: page.rows, last };
}

/** Each row begins with its id: nowhere else in the JSON text does an object with one follow another. */
function lastId(data: Buffer): string {
  const row = data.lastIndexOf('},{"id":"');
  const start = row < 0 ? '{"id":"'.length : row + '},{"id":"'.length;
  return data.toString('latin1', start, data.indexOf('"', start));
}

/** The rest of a second, and the seconds up to an end. */
function behind({ streams, sort }: Query, { second, id }: PeriodPlace, end: number): Values {
  return { ...streamValues(streams), second, after: id, ...between(sort, second, end) };
}

/** The seconds between two, both excluded, in either direction. */
function between(sort: PeriodSort, start: number, end: number): { low: number; high: number } {
  return sort === 'ascending' ? { low: start, high: end } : { low: end, high: start };
}

interface TextRow extends DetectionTexts {
  readonly rows: number;
  readonly second: number | null;
}

type Family<Row> = (db: Database, streams: number, conditions: string) => Statement<Row>;

/** By the sort and the parts of a page. */
const pageTexts = new Map<string, Family<TextRow>>();

function pageText(sort: PeriodSort, parts: readonly PagePart[]): Family<TextRow> {
  const name = `${sort} ${parts.join(' ')}`;
  const known = pageTexts.get(name);
  if (known !== undefined) return known;
  const family = statementFamily<TextRow>((streams, conditions) => pageSql(sort, parts, streams, conditions));
  pageTexts.set(name, family);
  return family;
}

const SECOND_AT: Readonly<Record<PeriodSort, Family<{ second: number }>>> = {
  ascending: statementFamily((streams) => secondAtSql('ascending', streams)),
  descending: statementFamily((streams) => secondAtSql('descending', streams)),
};
const rowsBefore = statementFamily<{ rows: number }>(rowsBeforeSql);
const idAt = statementFamily<{ id: string }>(idAtSql);
const more = statementFamily<{ more: number }>(moreSql);

export const DATA_START = `
  SELECT min(first_detected_at) AS start FROM detection WHERE place >> 34 = @ordinal`;

const dataStart = preparedOnce<{ start: number | null }>(DATA_START);

/** @returns the earliest current `first_detected_at` of each stream, epoch seconds; null without records */
export function readDataStarts(
  db: Database,
  streams: readonly StreamName[],
): ReadonlyMap<StreamName, number | null> {
  const starts = new Map<StreamName, number | null>(streams.map((stream) => [stream, null]));
  for (const { name, ordinal } of storedStreams(db, streams))
    starts.set(name, dataStart(db).get({ ordinal })?.start ?? null);
  return starts;
}

const begun = statementFamily<{ begun: number }>(begunSql);

/** Whether any stream has a record in this second (of the epoch) or earlier: ten times faster than finding the first ones. */
export function recordsBeginBy(db: Database, names: readonly StreamName[], second: number): boolean {
  const streams = storedStreams(db, names);
  if (streams.length === 0) return false;
  return begun(db, streams.length, '').get({ ...streamValues(streams), second })?.begun === 1;
}

/** The earliest of all; null when no stream has records. */
export function readFirstDataStart(db: Database, streams: readonly StreamName[]): number | null {
  const starts = [...readDataStarts(db, streams).values()].filter((start) => start !== null);
  return starts.length === 0 ? null : Math.min(...starts);
}
