/**
 * Rows of the change stream for the console: the newest of all streams, and the versions of one detection. Each call
 * scans a limited number of rows, and does not check that it is complete, as pages for clients do.
 */
import { streamName } from '../detection/content-type.ts';
import { isDetectionId, streamOfId } from '../detection/id.ts';
import { type Database, reading } from '../store/database.ts';
import { requireChecksum, type StoredText } from '../store/row-checksum.ts';
import { ordinalOf, placeOf, sequenceOf } from '../store/stream-place.ts';
import { AHEAD_MS_MAX, SECOND_MS } from '../time.ts';
import { type DetectionFilters, filterSql, type StreamSelection } from './filters.ts';
import { type StoredStream, storedStreams } from './stored-streams.ts';

/** `body`: JSON text, with the mark for the base address. */
export type StreamRow = StoredText & Readonly<{ position: number; version: number; body: string }>;

/** Rows that one call scans. */
const SCANNED_MAX = 10_000;
const COLUMNS = 'place, position, version, body, checksum';

export const newestOfStream = (conditions: string) => `
  SELECT ${COLUMNS} FROM (
    SELECT * FROM stream_row WHERE place >> 34 = @ordinal ORDER BY position DESC LIMIT @scanned)
  WHERE true${conditions} LIMIT @limit`;

export const VERSIONS_BETWEEN = `
  SELECT ${COLUMNS} FROM stream_row WHERE place BETWEEN :low AND :high AND article_id = :article_id ORDER BY place`;
export const FIRST_PLACE = `
  SELECT place FROM stream_row WHERE place >> 34 = :ordinal AND position >= :position ORDER BY position LIMIT 1`;
const SELECT_NEWEST_PLACE = 'SELECT place, first_detected_at FROM detection WHERE id = ?';

/**
 * The newest rows that pass the filters, newest first. Only the `limit` streams with the newest rows are read: without
 * filters these have all of them.
 */
export const newestRows = (db: Database, wanted: StreamSelection & DetectionFilters, limit: number) =>
  reading(db, () => {
    const streams = knownStreams(db, wanted)
      .sort((a, b) => b.position - a.position)
      .slice(0, limit);
    const filter = filterSql(wanted);
    const scanned = Math.max(limit, Math.floor(SCANNED_MAX / Math.max(1, streams.length)));
    const select = db.prepare<unknown[], StreamRow>(newestOfStream(filter.sql));
    const rows = streams.flatMap(({ ordinal }) => select.all({ ...filter.values, ordinal, scanned, limit }));
    rows.forEach(requireChecksum);
    return rows.sort((a, b) => b.position - a.position).slice(0, limit);
  });

/** Places that a search for versions has not scanned yet. */
export type VersionSpan = Readonly<Record<'low' | 'high', number>>;

/**
 * Versions of a detection. They have no index, so its stream is scanned from both ends, where most are: from its first
 * detection, and from its newest version.
 * @param span `next` of the previous call; null for the first
 * @returns `next`: null when everything was scanned; null where there is no such detection
 */
export function versionRows(db: Database, id: string, span: VersionSpan | null) {
  if (!isDetectionId(id)) return null;
  return reading(db, () => {
    const found = db.prepare<unknown[], { place: number; first_detected_at: number }>(SELECT_NEWEST_PLACE);
    const newest = found.get(id);
    if (newest === undefined || storedStreams(db, [streamOfId(id)]).length === 0) return null;
    const { low, high } = span ?? wholeSpan(db, newest);
    if (low < placeOf(ordinalOf(newest.place), 1) || high > newest.place) return null;
    const isAll = high - low < 2 * SCANNED_MAX;
    const rest = { low: low + SCANNED_MAX, high: high - SCANNED_MAX };
    const ends = [low, rest.high + 1].map((start) => ({ low: start, high: start + SCANNED_MAX - 1 }));
    const spans = isAll ? [{ low, high }] : ends;
    const article_id = Number(id.slice(id.lastIndexOf('.') + 1));
    const select = db.prepare<unknown[], StreamRow>(VERSIONS_BETWEEN);
    const rows = spans.flatMap((some) => select.all({ ...some, article_id }));
    rows.forEach(requireChecksum);
    return { rows: rows.filter(({ body }) => body.startsWith(`{"id":"${id}",`)), next: isAll ? null : rest };
  });
}

/** Rows are placed by the clock, and an export may be ahead of it: no version precedes the first detection by more. */
function wholeSpan(db: Database, newest: { place: number; first_detected_at: number }): VersionSpan {
  const ordinal = ordinalOf(newest.place);
  const position = (newest.first_detected_at - AHEAD_MS_MAX / SECOND_MS) * 1_000_000;
  const first = db.prepare<unknown[], { place: number }>(FIRST_PLACE).get({ ordinal, position })?.place;
  const low = first === undefined || first > newest.place ? newest.place : first;
  return { low: sequenceOf(low) === 0 ? placeOf(ordinal, 1) : low, high: newest.place };
}

const SELECT_KNOWN = `
  SELECT ordinal, subscription_id, content_type, sequence, position FROM stream
  WHERE removed = 0 ORDER BY ordinal`;

/** Every stream that has rows, the oldest first. */
export function knownStreams(db: Database, selection: StreamSelection): StoredStream[] {
  const { subscription_id: ids, content_type: type } = selection;
  return db
    .prepare<[], Omit<StoredStream, 'name'> & { subscription_id: number }>(SELECT_KNOWN)
    .all()
    .filter((stream) => ids === null || ids.includes(stream.subscription_id))
    .filter((stream) => type === null || type === stream.content_type)
    .map((stream) => ({ ...stream, name: streamName(stream.subscription_id, stream.content_type) }));
}
