/** When the records of streams begin (GET /v1/detections). */
import type { StreamName } from '../detection/content-type.ts';
import { type Database, preparedOnce } from '../store/database.ts';
import { begunSql } from './period-sql.ts';
import { statementFamily, streamValues } from './statement-family.ts';
import { storedStreams } from './stored-streams.ts';

export const DATA_START = `
  SELECT min(first_detected_at) AS start FROM detection WHERE place >> 34 = @ordinal`;

const dataStart = preparedOnce<{ start: number | null }>(DATA_START);

/** @returns the earliest current `first_detected_at` of each stream, epoch seconds; null without records */
export function readDataStarts(
  db: Database,
  streams: readonly StreamName[],
): ReadonlyMap<StreamName, number | null> {
  const starts = new Map<StreamName, number | null>(streams.map((stream) => [stream, null]));
  for (const { name, ordinal } of storedStreams(db, streams))
    starts.set(name, dataStart(db).get({ ordinal })?.start ?? null);
  return starts;
}

const begun = statementFamily<{ begun: number }>(begunSql);

/**
 * Whether any of the streams has a record in this second or earlier: enough for most requests, and ten times faster than
 * finding the first records.
 *
 * @param second epoch seconds
 */
export function recordsBeginBy(db: Database, names: readonly StreamName[], second: number): boolean {
  const streams = storedStreams(db, names);
  if (streams.length === 0) return false;
  return begun(db, streams.length, '').get({ ...streamValues(streams), second })?.begun === 1;
}

/** The earliest of all; null when no stream has records. */
export function readFirstDataStart(db: Database, streams: readonly StreamName[]): number | null {
  let first: number | null = null;
  for (const start of readDataStarts(db, streams).values()) {
    if (start !== null && (first === null || start < first)) first = start;
  }
  return first;
}
