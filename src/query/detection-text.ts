/**
 * The text of a detection, as SQL: its newest row in the change stream without the member `event`, unless it has been
 * scored again since.
 *
 * Cut as bytes: in a text SQLite counts characters from the beginning. What precedes `event` is ASCII, and its length
 * depends only on id and version (`renderStreamRow`).
 */

/** What precedes `event`, without id and version. */
const BEFORE_EVENT = '{"id":"","version":,'.length;
const EVENT = '"event":"created",'.length;

/** @param id a column of {@link detectionTables} */
export function detectionText(id: string): string {
  return `iif(rescored.body IS NULL, ${withoutEvent(id)}, rescored.body)`;
}

/** One detection: subqueries take half the time of a join. @param id a parameter */
export function oneDetectionText(id: string): string {
  return `SELECT coalesce((SELECT body FROM rescored WHERE rescored.place = row.place), ${withoutEvent(id)}) AS body
    FROM stream_row AS row WHERE row.place = (SELECT place FROM detection WHERE id = ${id})`;
}

function withoutEvent(id: string): string {
  const before = `length(${id}) + length(row.version) + ${BEFORE_EVENT}`;
  const body = 'CAST(row.body AS BLOB)';
  return `substr(${body}, 1, ${before}) || substr(${body}, ${before} + ${EVENT + 1})`;
}

/** @param table has the column `place` of a detection */
export function detectionTables(table: string): string {
  return `${table} CROSS JOIN stream_row AS row ON row.place = ${table}.place
    LEFT JOIN rescored ON rescored.place = ${table}.place`;
}
