/**
 * A page of the change stream (GET /v1/detections/changes). Rows, cursor, `has_more` and `as_of` are read in one snapshot:
 * with two, a cursor could pass a row committed between them.
 */
import { CHUNK_ROWS, PAGE_CHUNKS_MAX } from '../limits/api-limits.ts';
import { epochAt, partingOf, type StreamPosition } from '../log/version-epoch.ts';
import { type Database, preparedOnce, reading } from '../store/database.ts';
import { DatabaseDamage } from '../store/database-errors.ts';
import { numbersOf, requireChecksums, sealsSql } from '../store/row-checksum.ts';
import { placeOf } from '../store/stream-place.ts';
import { asOfMs, readStreamHead, type StreamHead } from './as-of.ts';
import type { StreamStart } from './changes-parameters.ts';
import { positionBefore, type RecentDeliveries } from './delivery.ts';
import { shownTexts } from './detection-text.ts';
import { type FilterSql, filterSql } from './filters.ts';
import {
  asItComes,
  NO_ROWS,
  type PageQuery,
  type Stored,
  type StoredStream,
  statementsOf,
  storedStreams,
  streamArms,
  streamValues,
} from './stored-streams.ts';
import { checkHead, checkPlaces, checkScanned, edgesAt, isCheckedHead } from './stream-check.ts';

/** At most twenty streams. */
export type ChangesQuery = PageQuery & Readonly<{ start: StreamStart; recentDeliveries: RecentDeliveries }>;

/** `data`: JSON texts of the rows, with commas between them. */
export type ChangesPage = StreamPosition &
  Readonly<{ data: Buffer; rows: number; has_more: boolean; as_of_ms: number | null }>;

type Query = Stored<ChangesQuery>;

/** Positions, `(start, end]`. */
type Span = Readonly<Record<'start' | 'end', number>>;

/** Raw rows that a page reads at most. */
const SCAN_ROWS_MAX = CHUNK_ROWS * PAGE_CHUNKS_MAX;

/**
 * The page after a cursor, or from a time on.
 * @param onEndLost called for a cursor that this log never gave out. Until versions are raised, a page after it would skip
 *   changes that are announced again then
 */
export function readPageFrom(db: Database, query: ChangesQuery, onEndLost: (cursor: StreamPosition) => void) {
  const { start } = query;
  if (start.kind === 'since') return readChangesPage(db, query);
  const { position, epoch } = start;
  const cursor = { position, epoch };
  // Most polls send the head, which is known to be the end of a transaction.
  const isHead = isCheckedHead(db, position) && epochAt(db, position) === epoch;
  if (position > 0 && !isHead && partingOf(db, cursor) !== null) {
    onEndLost(cursor);
    const as_of_ms = asOfMs(readStreamHead(db), query.content_types);
    return { ...NO_ROWS, ...cursor, has_more: false, as_of_ms };
  }
  const page = readChangesPage(db, query);
  // Where it stays, it may not have been issued here.
  return page.position === position ? { ...page, epoch } : page;
}

export function readChangesPage(db: Database, query: ChangesQuery): ChangesPage {
  const { start } = query;
  // Most polls find nothing new. One statement is a snapshot by itself and needs no transaction.
  const head = readStreamHead(db);
  if (start.kind === 'after' && start.position >= head.position && isCheckedHead(db, head.position))
    return readUpTo(db, query, head);
  return reading(db, () => readUpTo(db, query, readStreamHead(db)));
}

function readUpTo(db: Database, query: ChangesQuery, head: StreamHead): ChangesPage {
  const { start, recentDeliveries, content_types } = query;
  const end = head.position;
  checkHead(db, end);
  const after =
    start.kind === 'after' ? start.position : (positionBefore(db, start.since_ms, recentDeliveries) ?? end);
  const streams = after >= end ? [] : storedStreams(db, query.streams);
  const { data, rows, reached } = readRows(db, { ...query, streams }, { start: after, end });
  // At the end of its streams a cursor moves to that of all: widening a filter later does not replay what was skipped.
  // After a restore it can be beyond that, until the stream has passed it. It never goes back.
  const position = reached ?? Math.max(after, end);
  const at = { position, epoch: epochAt(db, position) };
  return { data, rows, ...at, has_more: reached !== null, as_of_ms: asOfMs(head, content_types) };
}

/** @param span up to the head. @returns also where reading stopped; null: nothing is left */
function readRows(db: Database, query: Query, { start, end }: Span) {
  const { streams } = query;
  const [stream] = streams;
  if (stream === undefined) return { ...NO_ROWS, reached: null };
  const filter = filterSql(query.filters);
  const isFiltered = filter.sql !== '';
  const values = { ...streamValues(streams), start };
  const from = edgesAt(db, streams, start);
  const bound = isFiltered
    ? (scanBound(db, streams.length).get({ ...values, skipped: SCAN_ROWS_MAX - 1 })?.position ?? null)
    : null;
  const page =
    !isFiltered && streams.length === 1
      ? readRange(db, query, stream, from.get(stream.ordinal) ?? 0)
      : readMatching(db, query, filter, { start, end: bound ?? end });
  const stop = page.rows === query.limit ? page.last : bound;
  // From the position that the client gets: there the next page begins.
  const to = edgesAt(db, streams, stop ?? end);
  if (isFiltered)
    checkScanned(rawRows(db, streams.length).get({ ...values, bound: stop ?? end })?.rows ?? 0, from, to);
  else checkPlaces(page.places, from, to);
  const hasMore = streams.some(({ ordinal, sequence }) => (to.get(ordinal) ?? 0) < sequence);
  return { ...page, reached: hasMore ? stop : null };
}

/** One stream without filters: its rows are a range of places. */
function readRange(db: Database, query: Query, stream: StoredStream, from: number) {
  const low = placeOf(stream.ordinal, from);
  const high = placeOf(stream.ordinal, Math.min(from + query.limit, stream.sequence));
  // The places that its rows must have: their texts match their checksums at no others.
  const placesOf = ({ rows }: PageText) => Array.from({ length: rows }, (_, row) => low + row + 1);
  return pageOf(rangeText(db).get({ low, high }), query, placesOf);
}

function readMatching(db: Database, query: Query, filter: FilterSql, { start, end: bound }: Span) {
  const values = { ...streamValues(query.streams), ...filter.values, start, bound, limit: query.limit };
  const page = pageText(db, query.streams.length, filter.sql).get(values);
  if (page !== undefined && page.moved > 0)
    throw new DatabaseDamage('rows of the change stream have other positions than their index says');
  return pageOf(page, query, ({ places }) => numbersOf(places));
}

/** @returns with the places of its rows, in order, and the greatest position */
function pageOf<Row extends PageText>(page: Row | undefined, query: Query, placesOf: (row: Row) => number[]) {
  if (page?.data == null) return { ...NO_ROWS, places: [], last: null };
  const places: readonly number[] = placesOf(page);
  requireChecksums(page.data, places, page.seals);
  return { data: shownTexts(page.data, query), rows: page.rows, places, last: page.last };
}

/** Rows after `@start` of several streams. */
function rowsAfter(streams: number, columns: string, conditions = ''): string {
  const arm = (ordinal: string) =>
    `SELECT ${columns} FROM stream_row WHERE place >> 34 = ${ordinal} AND position > @start${conditions}`;
  return streamArms(streams, arm).join(' UNION ALL ');
}

/** The page as one text: nothing is parsed, and no row becomes an object. */
const textOf = (page: string, further = '') => `
    SELECT CAST(group_concat(body, ',') AS BLOB) AS data, max(page.position) AS last,
      count(*) AS rows, ${sealsSql('body', 'checksum')}${further}
    ${page}`;

/**
 * SQLite merges the index entries of the streams: it neither sorts nor reads beyond the limit, except for one row of each
 * stream. A row that has another position than the index is out of order.
 */
export function pageTextSql(streams: number, conditions: string): string {
  const rows = rowsAfter(streams, 'place, position', ` AND position <= @bound${conditions}`);
  return textOf(
    `FROM (${rows} ORDER BY position LIMIT ${asItComes('@limit')}) AS page CROSS JOIN stream_row AS row ON row.place = page.place`,
    ', group_concat(page.place) AS places, total(row.position <> page.position) AS moved',
  );
}

export const RANGE_TEXT = textOf('FROM stream_row AS page WHERE place > @low AND place <= @high');

/** The last raw row that a page may read; no row when there are fewer. */
export const scanBoundSql = (streams: number): string =>
  `SELECT position FROM (${rowsAfter(streams, 'position')} ORDER BY position) LIMIT 1 OFFSET ${asItComes('@skipped')}`;

/** The number of raw rows that a page has read. */
export const rawRowsSql = (streams: number): string =>
  `SELECT sum(rows) AS rows FROM (${rowsAfter(streams, 'count(*) AS rows', ' AND position <= @bound')})`;

type PageText = Readonly<{ data: Buffer | null; last: number | null; rows: number; seals: string }>;

type MatchingText = PageText & Readonly<{ places: string; moved: number }>;
const pageText = statementsOf<MatchingText, Parameters<typeof pageTextSql>>(pageTextSql);
const rangeText = preparedOnce<PageText>(RANGE_TEXT);
const scanBound = statementsOf<{ position: number }, [number]>(scanBoundSql);
const rawRows = statementsOf<{ rows: number }, [number]>(rawRowsSql);
