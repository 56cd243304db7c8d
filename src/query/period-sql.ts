/**
 * The statements of the period endpoint, by the number of streams and the conditions of the filters.
 *
 * Each stream is an arm of its own; SQLite merges what the arms' indexes give, in order, as it is asked for, and
 * reads no further than the limit. `@low` and `@high` are seconds outside of what is read, `@second` is the one
 * that is read between the ids `@after` (not included) and `@upto` (included).
 */
import { detectionTables, detectionText } from './detection-text.ts';
import type { PeriodSort } from './period-parameters.ts';
import { asItComes, streamArms } from './statements.ts';

const DIRECTION: Readonly<Record<PeriodSort, string>> = { ascending: 'ASC', descending: 'DESC' };
/** Of the seconds of a part, the one that comes last. */
const LAST: Readonly<Record<PeriodSort, string>> = { ascending: 'max', descending: 'min' };

const KEY = 'detection.place AS place, first_detected_at AS second, id';
const AFTER = `first_detected_at = ${asItComes('@second')} AND id > @after`;
const WITHIN = `${AFTER} AND id <= @upto`;
const BETWEEN = 'first_detected_at > @low AND first_detected_at < @high';
const LIMIT = `LIMIT ${asItComes('@limit')}`;

export function withinTextSql(streams: number, conditions: string): string {
  return textOf(within(streams, conditions), 'max');
}

export function withinRowsSql(streams: number, conditions: string): string {
  return rowsOf(within(streams, conditions));
}

export function betweenTextSql(sort: PeriodSort, streams: number, conditions: string): string {
  return textOf(whole(sort, streams, conditions), LAST[sort]);
}

export function betweenRowsSql(sort: PeriodSort, streams: number, conditions: string): string {
  return rowsOf(whole(sort, streams, conditions));
}

/** A page newest first: the index has that order, so the rest of a second and whole seconds are merged in one go. */
export function newestTextSql(streams: number): string {
  return textOf(newest(streams, [AFTER, BETWEEN]), LAST.descending);
}

export function newestRowsSql(streams: number): string {
  return rowsOf(newest(streams, [AFTER, BETWEEN]));
}

/** The first of such pages begins with a whole second. */
export function firstNewestTextSql(streams: number): string {
  return textOf(newest(streams, [BETWEEN]), LAST.descending);
}

export function firstNewestRowsSql(streams: number): string {
  return rowsOf(newest(streams, [BETWEEN]));
}

/** The second of the row behind `@skipped` others: it is the same in whatever order those of one second stand. */
export function secondAtSql(sort: PeriodSort, streams: number): string {
  const arms = [AFTER, BETWEEN].map((where) => union(streams, 'first_detected_at AS second', where));
  return `SELECT second FROM (${arms.join(' UNION ALL ')} ORDER BY second ${DIRECTION[sort]}) LIMIT 1 OFFSET ${asItComes('@skipped')}`;
}

/** How many rows the rest of a second and whole seconds have. */
export function rowsBeforeSql(streams: number): string {
  const counts = [AFTER, BETWEEN].map((where) => union(streams, 'count(*) AS rows', where));
  return `SELECT sum(rows) AS rows FROM (${counts.join(' UNION ALL ')})`;
}

/** The id of the row behind `@skipped` others of its second. */
export function idAtSql(streams: number): string {
  return `SELECT id FROM (${union(streams, 'id', WITHIN)} ORDER BY id) LIMIT 1 OFFSET ${asItComes('@skipped')}`;
}

export function moreSql(streams: number): string {
  // Whole seconds first: there nearly always are some, and the first that is found ends the search.
  const exists = [BETWEEN, AFTER].flatMap((where) =>
    streamArms(
      streams,
      (ordinal) => `EXISTS (SELECT 1 FROM detection WHERE place >> 34 = ${ordinal} AND ${where})`,
    ),
  );
  return `SELECT ${exists.join(' OR ')} AS more`;
}

/** Whether the records of any stream begin by a second. */
export function begunSql(streams: number): string {
  const exists = streamArms(
    streams,
    (ordinal) =>
      `EXISTS (SELECT 1 FROM detection WHERE place >> 34 = ${ordinal} AND first_detected_at <= @second)`,
  );
  return `SELECT ${exists.join(' OR ')} AS begun`;
}

function within(streams: number, conditions: string): string {
  return `${union(streams, KEY, WITHIN, conditions)} ORDER BY id ${LIMIT}`;
}

function whole(sort: PeriodSort, streams: number, conditions: string): string {
  return `${union(streams, KEY, BETWEEN, conditions)} ORDER BY second ${DIRECTION[sort]}, id ${LIMIT}`;
}

function newest(streams: number, parts: readonly string[]): string {
  const arms = parts.map((where) => union(streams, KEY, where));
  return `${arms.join(' UNION ALL ')} ORDER BY second DESC, id ${LIMIT}`;
}

/** What filters ask for stands in the newest version. */
function union(streams: number, columns: string, where: string, conditions = ''): string {
  const newestRow = conditions === '' ? '' : ' CROSS JOIN stream_row AS row ON row.place = detection.place';
  return streamArms(
    streams,
    (ordinal) =>
      `SELECT ${columns} FROM detection${newestRow} WHERE detection.place >> 34 = ${ordinal} AND ${where}${conditions}`,
  ).join(' UNION ALL ');
}

/** The rows as one text: nothing is parsed, and no row becomes an object. */
function textOf(page: string, lastSecond: string): string {
  return `SELECT CAST(group_concat(${detectionText('page.id')}, ',') AS BLOB) AS data, count(*) AS rows,
      ${lastSecond}(page.second) AS second
    ${detections(page)}`;
}

function rowsOf(page: string): string {
  return `SELECT page.second AS second, page.id AS id, ${detectionText('page.id')} AS body ${detections(page)}`;
}

/** The detections behind places, taken in the order of these. */
function detections(page: string): string {
  return `FROM (${page}) AS ${detectionTables('page')}`;
}
