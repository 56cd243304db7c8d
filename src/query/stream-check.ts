/**
 * Checks that a page of the change stream is complete before it is sent: one flipped bit can hide rows without an error.
 * Sequence numbers have no gaps, so a page must have every row between two known ones of each stream, its edges. An edge
 * is found in the index of positions and verified by two neighbouring rows: the first is at or before the position, the
 * next one after it. With filters only the number of rows that were read is checked.
 *
 * SQLite does not guarantee the order of `group_concat`, and `ORDER BY` in the aggregate more than doubles the time of a
 * page. So the same aggregation lists the places of the rows, and these must be the expected ones in order. Of a range of one
 * stream they are known: its texts match their checksums (store/row-checksum.ts) in that order only.
 */
import { type Database, preparedOnce } from '../store/database.ts';
import { DatabaseDamage } from '../store/database-errors.ts';
import { ordinalOf, placeOf, sequenceOf } from '../store/stream-place.ts';
import { checkStreams, type StoredStream, statementsOf, streamArms, streamValues } from './stored-streams.ts';

/** By ordinal of a stream: how many of its rows are at or before a position. */
type Edges = ReadonlyMap<number, number>;

/** Call it within the snapshot of the page. @throws DatabaseDamage where the index of positions contradicts the rows */
export function edgesAt(db: Database, streams: readonly StoredStream[], position: number): Edges {
  const edges = new Map<number, number>();
  const found = edge(db, streams.length).all({ ...streamValues(streams), position });
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

/**
 * @param places of the rows of a page, in their order
 * @throws DatabaseDamage where rows between the edges are missing, repeated, out of order, or of another stream
 */
export function checkPlaces(places: readonly number[], from: Edges, to: Edges): void {
  const ordinals = [...from.keys()];
  // For so few streams, indexOf is faster than a Map.
  const next = ordinals.map((ordinal) => placeOf(ordinal, from.get(ordinal) ?? 0) + 1);
  for (const place of places) {
    const stream = next.indexOf(place);
    if (stream < 0) throw incomplete(places.length, from, to);
    next[stream] = place + 1;
  }
  const ends = ordinals.map((ordinal) => placeOf(ordinal, to.get(ordinal) ?? 0) + 1);
  if (!ends.every((end, stream) => end === next[stream])) throw incomplete(places.length, from, to);
}

/** For a page with filters. @param rows that were read, those that the filters dropped included */
export function checkScanned(rows: number, from: Edges, to: Edges): void {
  if (rows !== rowsBetween(from, to)) throw incomplete(rows, from, to);
}

const incomplete = (found: number, from: Edges, to: Edges): DatabaseDamage =>
  new DatabaseDamage(
    `a page of the change stream should have ${rowsBetween(from, to)} rows, but ${found} were read, or they are not the expected ones`,
  );

const rowsBetween = (from: Edges, to: Edges): number =>
  [...from].reduce((rows, [ordinal, before]) => rows + (to.get(ordinal) ?? 0) - before, 0);

/** The last head that {@link checkHead} has checked. */
const checkedHeads = new WeakMap<Database, number>();

/** Whether this head was checked: then a poll needs no transaction. */
export const isCheckedHead = (db: Database, head: number) => checkedHeads.get(db) === head;

/**
 * Every page relies on the head, the greatest position of all rows. Call it within the snapshot in which that was read;
 * each head is checked once.
 * @throws DatabaseDamage where the streams or the last transaction record another one
 */
export function checkHead(db: Database, head: number): void {
  if (isCheckedHead(db, head)) return;
  const recorded = checkStreams(db);
  const delivered = lastDelivered(db).get()?.last_position ?? 0;
  if (recorded !== head || delivered !== head)
    throw new DatabaseDamage(
      `the end of the streams disagrees: position ${recorded} in the table of streams, ${head} in the index, ${delivered} in the last transaction`,
    );
  checkedHeads.set(db, head);
}

/** `at_place`, `next`: position of the row at the place, and of the next one; null: none. */
type Edge = Readonly<{ place: number; at_place: number | null; next: number | null }>;

/** The last place of a stream at or before a position, and the rows there. */
const edgeOf = (ordinal: string) => `
  SELECT place, (SELECT position FROM stream_row AS row WHERE row.place = edge.place) AS at_place,
      (SELECT position FROM stream_row AS row WHERE row.place = edge.place + 1) AS next
      FROM (SELECT coalesce((SELECT place FROM stream_row WHERE place >> 34 = ${ordinal} AND position <= @position
        ORDER BY position DESC LIMIT 1), ${ordinal} << 34) AS place) AS edge`;

export const edgeSql = (streams: number) => streamArms(streams, edgeOf).join(' UNION ALL ');

export const LAST_DELIVERED = 'SELECT last_position FROM delivery ORDER BY first_position DESC LIMIT 1';

const edge = statementsOf<Edge, [number]>(edgeSql);
const lastDelivered = preparedOnce<{ last_position: number }>(LAST_DELIVERED);
