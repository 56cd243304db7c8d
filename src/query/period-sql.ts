/**
 * The statements of the period endpoint, by the number of streams and the conditions of the filters.
 *
 * Each stream is an arm of its own; SQLite merges their index entries and reads no further than the limit. Seconds
 * between `@low` and `@high`, both excluded, are read whole; of `@second` the ids from `@after` (excluded) to `@upto`
 * (included).
 */
import { DETECTIONS_COLUMNS, detectionTables } from './detection-text.ts';
import type { PeriodSort } from './period-request.ts';
import { asItComes, streamArms } from './stored-streams.ts';

const DIRECTION: Readonly<Record<PeriodSort, string>> = { ascending: 'ASC', descending: 'DESC' };

const KEY = 'detection.place AS place, first_detected_at AS second, id';
const AFTER = `first_detected_at = ${asItComes('@second')} AND id > @after`;
const WITHIN = `${AFTER} AND id <= @upto`;
const BETWEEN = 'first_detected_at > @low AND first_detected_at < @high';
const LIMIT = `LIMIT ${asItComes('@limit')}`;

type Render = (streams: number, conditions: string) => string;

/** The beginning or the rest of a second. */
export const WITHIN_SQL = partSql(
  (streams, conditions) => `${union(streams, KEY, WITHIN, conditions)} ORDER BY id ${LIMIT}`,
  'max',
);

/** Whole seconds. */
export const BETWEEN_SQL: Readonly<Record<PeriodSort, Render>> = {
  ascending: partSql(between('ASC'), 'max'),
  descending: partSql(between('DESC'), 'min'),
};

/** A page newest first: the index has that order, so one statement merges the rest of a second and whole seconds. */
export const NEWEST_SQL = partSql(newest([AFTER, BETWEEN]), 'min');

/** The first such page begins with a whole second. */
export const FIRST_NEWEST_SQL = partSql(newest([BETWEEN]), 'min');

/** The second of the row after `@skipped` others; the order within a second does not matter. */
export function secondAtSql(sort: PeriodSort, streams: number): string {
  const arms = [AFTER, BETWEEN].map((where) => union(streams, 'first_detected_at AS second', where));
  return `SELECT second FROM (${arms.join(' UNION ALL ')} ORDER BY second ${DIRECTION[sort]}) LIMIT 1 OFFSET ${asItComes('@skipped')}`;
}

/** The number of rows in the rest of a second and in whole seconds. */
export function rowsBeforeSql(streams: number): string {
  const counts = [AFTER, BETWEEN].map((where) => union(streams, 'count(*) AS rows', where));
  return `SELECT sum(rows) AS rows FROM (${counts.join(' UNION ALL ')})`;
}

/** The id of the row after `@skipped` others of its second. */
export function idAtSql(streams: number): string {
  return `SELECT id FROM (${union(streams, 'id', WITHIN)} ORDER BY id) LIMIT 1 OFFSET ${asItComes('@skipped')}`;
}

export function moreSql(streams: number): string {
  // Whole seconds first: nearly always some exist, and the first one found ends the search.
  const exists = [BETWEEN, AFTER].flatMap((where) =>
    streamArms(
      streams,
      (ordinal) => `EXISTS (SELECT 1 FROM detection WHERE place >> 34 = ${ordinal} AND ${where})`,
    ),
  );
  return `SELECT ${exists.join(' OR ')} AS more`;
}

/** Whether any stream has a record in a second or earlier. */
export function begunSql(streams: number): string {
  const exists = streamArms(
    streams,
    (ordinal) =>
      `EXISTS (SELECT 1 FROM detection WHERE place >> 34 = ${ordinal} AND first_detected_at <= @second)`,
  );
  return `SELECT ${exists.join(' OR ')} AS begun`;
}

function between(direction: string): Render {
  return (streams, conditions) =>
    `${union(streams, KEY, BETWEEN, conditions)} ORDER BY second ${direction}, id ${LIMIT}`;
}

function newest(parts: readonly string[]): Render {
  return (streams) => {
    const arms = parts.map((where) => union(streams, KEY, where));
    return `${arms.join(' UNION ALL ')} ORDER BY second DESC, id ${LIMIT}`;
  };
}

/** The columns of filters are in the newest stream row. */
function union(streams: number, columns: string, where: string, conditions = ''): string {
  const newestRow = conditions === '' ? '' : ' CROSS JOIN stream_row AS row ON row.place = detection.place';
  return streamArms(
    streams,
    (ordinal) =>
      `SELECT ${columns} FROM detection${newestRow} WHERE detection.place >> 34 = ${ordinal} AND ${where}${conditions}`,
  ).join(' UNION ALL ');
}

/**
 * A part of a page as one text, for which nothing is parsed.
 * @param part places with their seconds and ids; the detections are taken in its order. @param last gives its last second
 */
function partSql(part: Render, last: 'max' | 'min'): Render {
  return (streams, conditions) =>
    `SELECT ${DETECTIONS_COLUMNS}, count(*) AS rows, ${last}(page.second) AS second
    FROM (${part(streams, conditions)}) AS ${detectionTables('page')}`;
}
