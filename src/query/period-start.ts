/** When the records of streams begin (contract: Me, `data_starts`; GET /v1/detections, rule 3). */
import type { Database } from '../store/database.ts';
import { preparedOnce } from './statements.ts';

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

/** The earliest of all; null when no stream has records. */
export function readFirstDataStart(db: Database, streams: readonly number[]): number | null {
  let first: number | null = null;
  for (const start of readDataStarts(db, streams).values()) {
    if (start !== null && (first === null || start < first)) first = start;
  }
  return first;
}
