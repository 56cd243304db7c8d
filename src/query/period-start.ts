/** When the records of streams begin (contract: Me, `data_starts`; GET /v1/detections, rule 3). */
import type { Database } from '../store/database.ts';
import { begunSql } from './period-sql.ts';
import { preparedOnce, statementFamily, streamValues } from './statements.ts';

export const DATA_STARTS = `
  SELECT value AS stream, (SELECT min(first_detected_at) FROM detection WHERE stream = value) AS start
  FROM json_each(@streams)`;

const dataStarts = preparedOnce<{ stream: number; start: number | null }>(DATA_STARTS);

/**
 * @param streams stream numbers
 * @returns the earliest current `first_detected_at` of each, epoch seconds; null for one without records
 */
export function readDataStarts(db: Database, streams: readonly number[]): ReadonlyMap<number, number | null> {
  const rows = dataStarts(db).all({ streams: JSON.stringify(streams) });
  return new Map(rows.map(({ stream, start }) => [stream, start]));
}

const begun = statementFamily<{ begun: number }>(begunSql);

/**
 * Whether the records of any of the streams begin in this second or earlier: what most requests for a period need
 * to know, for a tenth of what finding the beginnings costs.
 *
 * @param second epoch seconds
 */
export function recordsBeginBy(db: Database, streams: readonly number[], second: number): boolean {
  if (streams.length === 0) return false;
  return begun(db, streams.length, '').get({ ...streamValues(streams), second })?.begun === 1;
}

/** The earliest of all; null when no stream has records. */
export function readFirstDataStart(db: Database, streams: readonly number[]): number | null {
  let first: number | null = null;
  for (const start of readDataStarts(db, streams).values()) {
    if (start !== null && (first === null || start < first)) first = start;
  }
  return first;
}
