/**
 * Streams in `detections.db`, by name, and statements over several of them. A page over a stream that is not found skips
 * all its rows, so the table is checked before one counts as missing. Call everything within the snapshot of the page.
 */
import { BoundedMap } from '../bounded-map.ts';
import { type ContentType, type StreamName, streamName, streamParts } from '../detection/content-type.ts';
import { getOrMake } from '../get-or-make.ts';
import { type Database, preparedOnce, type Statement } from '../store/database.ts';
import { DatabaseDamage } from '../store/database-errors.ts';
import type { DetectionFilters } from './filters.ts';
import type { Projection } from './projection.ts';

export interface StoredStream {
  readonly name: StreamName;
  /** Part of the places of its rows (store/stream-place.ts). */
  readonly ordinal: number;
  readonly content_type: ContentType;
  /** Its number of rows; their sequence numbers are 1, 2, … */
  readonly sequence: number;
  readonly position: number;
}

/** What both lists are asked for. */
export interface PageQuery {
  readonly streams: readonly StreamName[];
  /** What `as_of` covers. */
  readonly content_types: readonly ContentType[];
  readonly filters: DetectionFilters;
  readonly limit: number;
  /** Null: every field. */
  readonly projection: Projection | null;
  /** As JSON text has it. */
  readonly baseUrl: Buffer;
}

/** With the streams of it that are stored. */
export type Stored<Query extends PageQuery> = Omit<Query, 'streams'> & {
  readonly streams: readonly StoredStream[];
};

export const NO_ROWS = { data: Buffer.alloc(0), rows: 0 };

/**
 * A bound number that does not influence the query plan. SQLite reads a bare parameter after LIMIT, or compared with the
 * first column of an index, to choose the plan, and compiles the statement again each time it is bound. For a page over
 * eight streams that took as long as reading it. It does not do so for a sum.
 */
export const asItComes = (parameter: string): string => `(${parameter} + 0)`;

/** Found by the index, read from the table: if the names differ, one of them is damaged. */
export const FIND_STREAM = `
  SELECT stream.ordinal AS ordinal, stream.subscription_id AS subscription_id, stream.content_type AS content_type,
    stream.sequence AS sequence, stream.position AS position, stream.removed AS removed
  FROM (SELECT ordinal FROM stream
      WHERE subscription_id = ${asItComes('@subscription_id')} AND content_type = (@content_type || '') AND removed = 0) AS found
    CROSS JOIN stream ON stream.ordinal = found.ordinal`;

/** Ordinals have no gaps, and the index has every stream that was not removed. */
export const CHECK_STREAMS = `
  SELECT count(*) AS streams, coalesce(max(ordinal), 0) AS last, coalesce(max(position), 0) AS position,
    total(removed = 0 AND ordinal IS NOT (
      SELECT ordinal FROM stream AS found INDEXED BY stream_by_name
      WHERE found.subscription_id = stream.subscription_id AND found.content_type = stream.content_type
        AND found.removed = 0)) AS lost
  FROM stream NOT INDEXED`;

const findStream = preparedOnce<Omit<StoredStream, 'name'> & { subscription_id: number; removed: number }>(
  FIND_STREAM,
);
const NO_STREAMS = { streams: 0, last: 0, position: 0, lost: 0 };
const checkTable = preparedOnce<typeof NO_STREAMS>(CHECK_STREAMS);

/** @returns those that exist; the others have no rows yet. @throws DatabaseDamage */
export function storedStreams(db: Database, names: readonly StreamName[]): StoredStream[] {
  const streams: StoredStream[] = [];
  for (const name of names) {
    const found = findStream(db).get(streamParts(name));
    if (found === undefined) continue;
    if (streamName(found.subscription_id, found.content_type) !== name || found.removed !== 0)
      throw new DatabaseDamage(`the index of streams returned another stream for ${name}`);
    streams.push({ ...found, name });
  }
  if (streams.length < names.length) checkStreams(db);
  return streams;
}

/** @returns the greatest position that a stream records; 0: none. @throws DatabaseDamage */
export function checkStreams(db: Database): number {
  const { streams, last, position, lost } = checkTable(db).get() ?? NO_STREAMS;
  if (streams !== last || lost > 0)
    throw new DatabaseDamage(
      `the table of streams has ${streams} rows instead of ${last}, and the index by name misses ${lost} of them`,
    );
  return position;
}

const SHAPES_MAX = 100;

/** A piece of SQL for each stream. @param arm receives an expression of the stream's ordinal */
export const streamArms = (streams: number, arm: (ordinal: string) => string): string[] =>
  Array.from({ length: streams }, (_, index) => arm(asItComes(`@stream${index}`)));

/** The values of the names in {@link streamArms}. */
export function streamValues(streams: readonly { readonly ordinal: number }[]): Record<string, number> {
  const values: Record<string, number> = {};
  for (const [index, { ordinal }] of streams.entries()) values[`stream${index}`] = ordinal;
  return values;
}

/** Prepared statements, cached for each database. @param render by what they differ in, such as the number of streams */
export function statementsOf<Row, Shape extends readonly unknown[]>(render: (...shape: Shape) => string) {
  const byShape = new BoundedMap<string, (db: Database) => Statement<Row>>(SHAPES_MAX);
  return (db: Database, ...shape: Shape) =>
    getOrMake(byShape, shape.join(' '), () => preparedOnce<Row>(render(...shape)))(db);
}
