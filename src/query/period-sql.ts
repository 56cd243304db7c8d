/**
 * The statements of the period endpoint, by the number of streams and the conditions of the filters.
 *
 * Each stream is an arm of its own; SQLite merges their index entries and reads no further than the limit. The index has
 * the newest second first, and the ids of a second in order. Seconds between `@low` and `@high`, both excluded, are read
 * whole; of `@second` the ids from `@after` (excluded) to `@upto` (included).
 */
import { DETECTIONS_COLUMNS, detectionTables } from './detection-text.ts';
import type { PeriodSort } from './period-request.ts';
import { asItComes, streamArms } from './stored-streams.ts';

const DIRECTION: Readonly<Record<PeriodSort, string>> = { ascending: 'ASC', descending: 'DESC' };

const AFTER = `first_detected_at = ${asItComes('@second')} AND id > @after`;
const WITHIN = `${AFTER} AND id <= @upto`;
const BETWEEN = 'first_detected_at > @low AND first_detected_at < @high';

/** What a page is made of: the rest of the second in which it begins, whole seconds, the beginning of the last one. */
const PARTS = {
  rest: WITHIN,
  whole: BETWEEN,
  beginning: `first_detected_at = ${asItComes('@last_second')} AND id <= @last_id`,
};
export type PagePart = keyof typeof PARTS;

/** The detections of a page as one text, for which nothing is parsed. */
export function pageSql(sort: PeriodSort, parts: readonly PagePart[], streams: number, conditions: string) {
  const columns = 'detection.place AS place, first_detected_at AS second, id';
  const arms = parts.map((part) => union(streams, columns, PARTS[part], conditions));
  const order = `ORDER BY second ${DIRECTION[sort]}, id LIMIT ${asItComes('@limit')}`;
  return `SELECT ${DETECTIONS_COLUMNS}, count(*) AS rows, ${sort === 'ascending' ? 'max' : 'min'}(page.second) AS second
    FROM (${arms.join(' UNION ALL ')} ${order}) AS ${detectionTables('page')}`;
}

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

/** The columns of filters are in the newest stream row. */
function union(streams: number, columns: string, where: string, conditions = ''): string {
  const newestRow = conditions === '' ? '' : ' CROSS JOIN stream_row AS row ON row.place = detection.place';
  return streamArms(
    streams,
    (ordinal) =>
      `SELECT ${columns} FROM detection${newestRow} WHERE detection.place >> 34 = ${ordinal} AND ${where}${conditions}`,
  ).join(' UNION ALL ');
}
