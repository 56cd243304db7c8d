/**
 * A page of the change stream (contract: GET /v1/detections/changes).
 *
 * Rows, cursor, `has_more` and `as_of` are read in one snapshot: with two, a row committed between them could be
 * left behind a cursor that says everything was read. The streams named in the SQL are those of the key, so a row
 * of anybody else's is never touched.
 */
import type { ContentType } from '../detection/content-type.ts';
import { lostEndBehind } from '../history/lost-end.ts';
import { CHUNK_ROWS, PAGE_CHUNKS_MAX } from '../limits/contract-limits.ts';
import { type Database, reading } from '../store/database.ts';
import { asOfMs, readStanding, type Standing } from './as-of.ts';
import { putBaseUrl, withBaseUrl } from './base-url.ts';
import type { StreamStart } from './changes-parameters.ts';
import { positionBefore, type RecentDeliveries } from './delivery.ts';
import { type DetectionFilters, type FilterSql, filterSql, type SqlValue } from './filters.ts';
import { type Projection, renderProjected } from './projection.ts';
import { asItComes, statementFamily, streamArms, streamValues } from './statements.ts';
import {
  checkHead,
  checkRows,
  checkText,
  isCheckedHead,
  type RowSums,
  requireUtf8,
  SUMS_SQL,
  sumsOf,
} from './stream-check.ts';

export interface ChangesQuery {
  /** Stream numbers, at most twenty. */
  readonly streams: readonly number[];
  /** What `as_of` covers. */
  readonly content_types: readonly ContentType[];
  readonly filters: DetectionFilters;
  readonly start: StreamStart;
  readonly limit: number;
  readonly projection: Projection | null;
  /** Of {@link jsonBaseUrl}. */
  readonly baseUrl: Buffer;
  readonly recentDeliveries: RecentDeliveries;
}

export interface ChangesPage {
  /** The rows as JSON texts with commas between them. */
  readonly data: Buffer;
  readonly rows: number;
  /** What `next_cursor` holds. */
  readonly position: number;
  readonly has_more: boolean;
  readonly as_of_ms: number | null;
}

const NO_ROWS = Buffer.alloc(0);
const NOTHING = { data: NO_ROWS, rows: 0, sums: sumsOf([]), last: null };
/** Raw rows that a page reads at most. */
const SCAN_ROWS_MAX = CHUNK_ROWS * PAGE_CHUNKS_MAX;

/**
 * Whether a request comes with a cursor that this log never gave out, since its end is lost. Until that is made up for,
 * nothing can be served behind it that does not skip what is announced again then.
 */
export function isBehindLostEnd(db: Database, { start }: ChangesQuery): boolean {
  return start.kind === 'after' && start.position > 0 && lostEndBehind(db, start.position) !== null;
}

/** A page that says nothing, and leaves the cursor where it is. */
export function heldPage(db: Database, { start, content_types }: ChangesQuery): ChangesPage {
  const position = start.kind === 'after' ? start.position : 0;
  const as_of_ms = asOfMs(readStanding(db), content_types);
  return { data: NO_ROWS, rows: 0, position, has_more: false, as_of_ms };
}

export function readChangesPage(db: Database, query: ChangesQuery): ChangesPage {
  const { start } = query;
  if (start.kind === 'after') {
    // What most polls find: nothing new. One statement is a snapshot by itself and needs no transaction.
    const standing = readStanding(db);
    if (start.position >= standing.head && isCheckedHead(db, standing.head))
      return emptyPage(query, standing, start.position);
  }
  return reading(db, () => {
    const standing = readStanding(db);
    checkHead(db, standing.head);
    const after = startPosition(db, query, standing.head);
    // A cursor can be ahead of the head: after a restore, until the stream has passed it. It never goes back.
    if (after >= standing.head || query.streams.length === 0) return emptyPage(query, standing, after);
    const { data, rows, sums, reached } = readRows(db, query, after, standing.head);
    const has_more = reached !== null && moreAfter(db, query.streams, reached);
    if (sums !== null)
      checkRows(db, query.streams, { start: after, reached: has_more ? reached : null, sums });
    // At the end of its streams a cursor moves on to the end of all: a filter that is widened later does not
    // bring back what was passed over.
    const position = has_more ? reached : standing.head;
    return { data, rows, position, has_more, as_of_ms: asOfMs(standing, query.content_types) };
  });
}

function emptyPage({ content_types }: ChangesQuery, standing: Standing, after: number): ChangesPage {
  const position = Math.max(after, standing.head);
  return { data: NO_ROWS, rows: 0, position, has_more: false, as_of_ms: asOfMs(standing, content_types) };
}

function startPosition(
  db: Database,
  { start, recentDeliveries }: ChangesQuery,
  headPosition: number,
): number {
  if (start.kind === 'after') return start.position;
  return positionBefore(db, start.since_ms, recentDeliveries) ?? headPosition;
}

interface ReadRows {
  readonly data: Buffer;
  readonly rows: number;
  /** Of all raw rows; null where a filter may have left some out. */
  readonly sums: RowSums | null;
  /** The position at which reading stopped; null when it came to the end. */
  readonly reached: number | null;
}

function readRows(db: Database, query: ChangesQuery, start: number, headPosition: number): ReadRows {
  const filter = filterSql(query.filters);
  const values = { ...streamValues(query.streams), start, limit: query.limit };
  if (filter.sql === '') {
    const page = readMatching(db, query, filter, { ...values, bound: headPosition });
    return { ...page, reached: page.rows === query.limit ? page.last : null };
  }
  const bound =
    scanBound(db, query.streams.length, '').get({ ...values, skipped: SCAN_ROWS_MAX - 1 })?.position ?? null;
  const page = readMatching(db, query, filter, { ...values, ...filter.values, bound: bound ?? headPosition });
  return { ...page, sums: null, reached: page.rows === query.limit ? page.last : bound };
}

interface Matching {
  readonly data: Buffer;
  readonly rows: number;
  readonly sums: RowSums;
  readonly last: number | null;
}

function readMatching(
  db: Database,
  query: ChangesQuery,
  filter: FilterSql,
  values: Readonly<Record<string, SqlValue>>,
): Matching {
  const count = query.streams.length;
  if (query.projection !== null)
    return projectRows(pageRows(db, count, filter.sql).all(values), query.projection, query);
  const page = pageText(db, count, filter.sql).get(values);
  if (page === undefined || page.data === null) return NOTHING;
  checkText(page.data, page);
  const withOwnAddresses = query.streams.some(isImageStream);
  return {
    data: withOwnAddresses ? putBaseUrl(page.data, query.baseUrl) : page.data,
    rows: page.rows,
    sums: page,
    last: page.last,
  };
}

function projectRows(rows: readonly PageRow[], projection: Projection, { baseUrl }: ChangesQuery): Matching {
  const texts = rows.map(({ body }) => {
    requireUtf8(body);
    return renderProjected(withBaseUrl(body.toString(), baseUrl), projection);
  });
  const last = rows.at(-1)?.position ?? null;
  return { data: Buffer.from(texts.join(',')), rows: rows.length, sums: sumsOf(rows), last };
}

function moreAfter(db: Database, streams: readonly number[], position: number): boolean {
  return more(db, streams.length, '').get({ ...streamValues(streams), start: position })?.more === 1;
}

function isImageStream(stream: number): boolean {
  return stream % 2 === 1;
}

/**
 * Positions after `@start` in several streams, in their one order. SQLite merges the streams' index entries as
 * they are asked for; it neither sorts nor reads further than the limit.
 */
function positions(streams: number, conditions: string): string {
  const arms = streamArms(
    streams,
    (ofStream) => `SELECT position FROM stream_row WHERE ${ofStream} AND position > @start${conditions}`,
  );
  return `${arms.join(' UNION ALL ')} ORDER BY position`;
}

/** The rows behind positions, taken in the order of these. */
function pageOf(streams: number, conditions: string): string {
  const matching = `${positions(streams, ` AND position <= @bound${conditions}`)} LIMIT ${asItComes('@limit')}`;
  return `FROM (${matching}) AS page CROSS JOIN stream_row AS row ON row.position = page.position`;
}

/** The whole page as one text: nothing is parsed, and no row becomes an object. */
export function pageTextSql(streams: number, conditions: string): string {
  return `SELECT CAST(group_concat(row.body, ',') AS BLOB) AS data, max(row.position) AS last,
      ${SUMS_SQL}
    ${pageOf(streams, conditions)}`;
}

export function pageRowsSql(streams: number, conditions: string): string {
  return `SELECT row.position AS position, row.stream AS stream, row.sequence AS sequence, CAST(row.body AS BLOB) AS body
    ${pageOf(streams, conditions)}`;
}

/** The last of the raw rows that a page may read; none when there are fewer. */
export function scanBoundSql(streams: number): string {
  return `SELECT position FROM (${positions(streams, '')}) LIMIT 1 OFFSET ${asItComes('@skipped')}`;
}

export function moreSql(streams: number): string {
  const exists = streamArms(
    streams,
    (ofStream) => `EXISTS (SELECT 1 FROM stream_row WHERE ${ofStream} AND position > @start)`,
  );
  return `SELECT ${exists.join(' OR ')} AS more`;
}

interface PageRow {
  readonly position: number;
  readonly stream: number;
  readonly sequence: number;
  readonly body: Buffer;
}

interface PageText extends RowSums {
  readonly data: Buffer | null;
  readonly last: number | null;
  readonly endings: number | null;
}

const pageText = statementFamily<PageText>(pageTextSql);
const pageRows = statementFamily<PageRow>(pageRowsSql);
const scanBound = statementFamily<{ position: number }>(scanBoundSql);
const more = statementFamily<{ more: number }>(moreSql);
