/**
 * A page of the change stream never says less than there is: what its rows state about themselves is held against what
 * the streams state before the page is sent.
 *
 * One flipped bit in a database can hide rows from a query that finds no error: an index that leads past them, a row
 * that lies under another position. A client would move its cursor past what it never saw, for good. Sequence numbers
 * have no gaps, so the rows of a page are those between two known ones of each stream. These two are looked for in the
 * index of positions, and proven by the rows themselves: of two neighbours one lies at or before the position, and the
 * next one behind it. What is said to be the last row must be the one that the stream itself records.
 *
 * SQLite does not promise in which order `group_concat` takes its rows, and to state it (`ORDER BY` in the aggregate)
 * costs more than twice the page. So a page lists the places of its rows, put together by the same aggregation in the
 * same pass: they must be the expected ones, in their order.
 *
 * With filters the rows that were read are counted, and those that match are not known beforehand: a row whose columns
 * are damaged can be left out.
 */
import { isUtf8 } from 'node:buffer';
import type { Database } from '../store/database.ts';
import { DatabaseDamage } from '../store/database-errors.ts';
import { ordinalOf, placeOf, sequenceOf } from '../store/stream-place.ts';
import { preparedOnce, statementFamily, streamArms, streamValues } from './statements.ts';
import { checkStreams, type StoredStream } from './stored-streams.ts';

/**
 * Columns of a page that check it, cheap enough for every one. `endings` counts the texts that end as an object does:
 * where the head of a record is damaged, they do not.
 */
export const CHECKED_SQL = `count(*) AS rows, sum(substr(CAST(body AS BLOB), -1) = x'7d') AS endings`;

/** @throws DatabaseDamage where the page is not made of so many texts, each of which could be an object in JSON */
export function checkText(data: Buffer, { rows, endings }: { rows: number; endings: number | null }): void {
  if (endings !== rows) throw new DatabaseDamage('a row of the stream does not contain a detection');
  requireUtf8(data);
}

/** Where a database was overwritten, what stands there is seldom text. @throws DatabaseDamage */
export function requireUtf8(text: Buffer): void {
  if (!isUtf8(text)) throw new DatabaseDamage('a row of the stream is not valid UTF-8');
}

/** Of each stream, by its ordinal: how many of its rows lie at or before a position. */
export type Edges = ReadonlyMap<number, number>;

/**
 * Call it within the snapshot of the page.
 *
 * @throws DatabaseDamage where the index of positions leads elsewhere than the rows say
 */
export function edgesAt(db: Database, streams: readonly StoredStream[], position: number): Edges {
  const edges = new Map<number, number>();
  const found = edge(db, streams.length, '').all({ ...streamValues(streams), position });
  for (const [at, stream] of streams.entries()) {
    const { place, at_place, next } = found[at] ?? { place: -1, at_place: null, next: null };
    const sequence = sequenceOf(place);
    const isOfStream = ordinalOf(place) === stream.ordinal && sequence <= stream.sequence;
    const isBefore = sequence === 0 ? at_place === null : at_place !== null && at_place <= position;
    const isLast = sequence === stream.sequence;
    const isBehind = isLast
      ? next === null && (sequence === 0 || at_place === stream.position)
      : next !== null && next > position;
    if (!isOfStream || !isBefore || !isBehind)
      throw new DatabaseDamage(
        `stream ${stream.name}: row ${sequence} of ${stream.sequence} should be the last one up to position ${position}, but is not`,
      );
    edges.set(stream.ordinal, sequence);
  }
  return edges;
}

/** The end of each stream, as it records it. */
export function endsOf(streams: readonly StoredStream[]): Edges {
  return new Map(streams.map(({ ordinal, sequence }) => [ordinal, sequence]));
}

/**
 * @param places of the rows of a page, in their order
 * @throws DatabaseDamage where rows between the edges are missing, stand twice, out of order, or are of another stream
 */
export function checkPlaces(places: readonly number[], from: Edges, to: Edges): void {
  const ordinals = [...from.keys()];
  // Few streams: to look through them is faster than to look one up.
  const next = ordinals.map((ordinal) => placeOf(ordinal, from.get(ordinal) ?? 0) + 1);
  for (const place of places) {
    const stream = next.indexOf(place);
    if (stream < 0) throw incomplete(places.length, from, to);
    next[stream] = place + 1;
  }
  const ends = ordinals.map((ordinal) => placeOf(ordinal, to.get(ordinal) ?? 0) + 1);
  if (!ends.every((end, stream) => end === next[stream])) throw incomplete(places.length, from, to);
}

/**
 * The same for a page with filters, as far as it goes: rows that they left out are counted.
 *
 * @param rows that were read, those that the filters left out included
 */
export function checkScanned(rows: number, from: Edges, to: Edges): void {
  if (rows !== rowsBetween(from, to)) throw incomplete(rows, from, to);
}

function incomplete(found: number, from: Edges, to: Edges): DatabaseDamage {
  return new DatabaseDamage(
    `a page of the change stream should have ${rowsBetween(from, to)} rows, but ${found} were read, or they are not the expected ones`,
  );
}

function rowsBetween(from: Edges, to: Edges): number {
  return [...from].reduce((rows, [ordinal, before]) => rows + (to.get(ordinal) ?? 0) - before, 0);
}

/** @param last position of a page behind which nothing is left; null: it has no rows */
export function checkEnd(last: number | null, streams: readonly StoredStream[]): void {
  const recorded = Math.max(...streams.map(({ position }) => position));
  if (last !== null && last !== recorded)
    throw new DatabaseDamage(
      `the streams end at position ${recorded}, but their last row is at position ${last}`,
    );
}

const COMMA = 0x2c;
const ZERO = 0x30;

/**
 * Reads a list of places, `1,2,…`: digit by digit, in a quarter of the time that it takes to split it.
 *
 * @param low they are counted from it
 */
export function placesOfList(list: string | null, low: number): number[] {
  if (list === null) return [];
  const places: number[] = [];
  let place = 0;
  for (let at = 0; at < list.length; at += 1) {
    const code = list.charCodeAt(at);
    if (code === COMMA) {
      places.push(low + place);
      place = 0;
    } else place = place * 10 + code - ZERO;
  }
  places.push(low + place);
  return places;
}

/** The greatest position of all rows that was held against what else says it. */
const checkedHeads = new WeakMap<Database, number>();

/** Whether {@link checkHead} has found nothing wrong with this head: then a poll needs no transaction. */
export function isCheckedHead(db: Database, head: number): boolean {
  return checkedHeads.get(db) === head;
}

/**
 * Every page relies on the greatest position of all rows. Call it within the snapshot in which that was read; it asks
 * once for each head, not for each request.
 *
 * @throws DatabaseDamage when a stream or the last transaction tells of another one
 */
export function checkHead(db: Database, head: number): void {
  if (isCheckedHead(db, head)) return;
  const recorded = checkStreams(db);
  const delivered = lastDelivered(db).get()?.position ?? 0;
  if (recorded !== head || delivered !== head)
    throw new DatabaseDamage(
      `the end of the streams disagrees: position ${recorded} in the table of streams, ${head} in the index, ${delivered} in the last transaction`,
    );
  checkedHeads.set(db, head);
}

interface Edge {
  readonly place: number;
  /** Position of the row at the place, and of the one behind it; null: there is none. */
  readonly at_place: number | null;
  readonly next: number | null;
}

/** Of each stream the last place at or before a position, and what the rows say there. */
export function edgeSql(streams: number): string {
  const arms = streamArms(
    streams,
    (
      ordinal,
    ) => `SELECT place, (SELECT position FROM stream_row AS row WHERE row.place = edge.place) AS at_place,
      (SELECT position FROM stream_row AS row WHERE row.place = edge.place + 1) AS next
      FROM (SELECT coalesce((SELECT place FROM stream_row WHERE place >> 34 = ${ordinal} AND position <= @position
        ORDER BY position DESC LIMIT 1), ${ordinal} << 34) AS place) AS edge`,
  );
  return arms.join(' UNION ALL ');
}

export const LAST_DELIVERED =
  'SELECT last_position AS position FROM delivery ORDER BY first_position DESC LIMIT 1';

const edge = statementFamily<Edge>(edgeSql);
const lastDelivered = preparedOnce<{ position: number }>(LAST_DELIVERED);
