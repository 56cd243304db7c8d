/** The head of the streams, the time up to which exports were read, and the windows that have contributed nothing. */
import { CONTENT_TYPES, type ContentType, perContentType, TYPE_RULES } from '../detection/content-type.ts';
import { DATA_GAP_AGE_MAX_MS, DATA_GAPS_MAX } from '../limits/api-limits.ts';
import { type Database, preparedOnce } from '../store/database.ts';
import { formatMs, WINDOW_MS } from '../time.ts';

/** Export names are constants; the plan is the same as with bound values. */
const newestDone = (contentType: ContentType) => `(SELECT max(window_start) FROM export_window
      WHERE export = '${TYPE_RULES[contentType].export}' AND status = 'done')`;

export const STREAM_HEAD = `
  SELECT (SELECT max(position) FROM stream) AS head,
    ${CONTENT_TYPES.map((contentType) => `${newestDone(contentType)} AS ${contentType}`).join(',\n    ')}`;

const streamHead = preparedOnce<Readonly<Record<ContentType | 'head', number | null>>>(STREAM_HEAD);

export type StreamHead = ReturnType<typeof readStreamHead>;

/** Read by one statement, so consistent without a transaction. */
export function readStreamHead(db: Database) {
  const row = streamHead(db).get();
  return {
    /** The position of the last row of all streams, removed ones included; 0: no rows. */
    position: row?.head ?? 0,
    /** End of the newest finished window of each content type's export, epoch milliseconds; null when none is. */
    newest_done_ms: perContentType((contentType) => {
      const startMs = row?.[contentType] ?? null;
      return startMs === null ? null : startMs + WINDOW_MS;
    }),
  };
}

/** The earliest end of their newest finished windows, epoch milliseconds; null while an export has none. */
export function asOfMs({ newest_done_ms }: StreamHead, contentTypes: readonly ContentType[]): number | null {
  const ends = contentTypes.map((contentType) => newest_done_ms[contentType]);
  return ends.length > 0 && ends.every((end) => end !== null) ? Math.min(...ends) : null;
}

/** `as_of` in an answer. Never in the future, though the clock may have been set back: clients send it as `since`. */
export const formatAsOf = (asOf: number | null, nowMs: number): string | null =>
  asOf === null ? null : formatMs(Math.min(asOf, nowMs));

export const GAP_STATUSES = ['missing', 'abandoned', 'failed'] as const;
type GapStatus = (typeof GAP_STATUSES)[number];

const gapsOf = (status: GapStatus) => `SELECT window_start, status FROM (
    SELECT window_start, status FROM export_window
    WHERE export = @export AND status = '${status}' AND window_start BETWEEN @from AND @to
    ORDER BY window_start DESC LIMIT @limit)`;

/** Each status by itself, as the index has them: at most @limit rows of each are read, even of a silent export. */
export const DATA_GAPS = `
  SELECT window_start, status FROM (${GAP_STATUSES.map(gapsOf).join(' UNION ALL ')})
  ORDER BY window_start DESC LIMIT @limit`;

const dataGaps = preparedOnce<{ window_start: number; status: GapStatus }>(DATA_GAPS);

/** Export windows that have contributed no detections: newest first, of the last 90 days, at most 200. */
export const readDataGaps = (db: Database, contentType: ContentType, nowMs: number) =>
  dataGaps(db).all({
    export: TYPE_RULES[contentType].export,
    from: nowMs - DATA_GAP_AGE_MAX_MS,
    to: nowMs,
    limit: DATA_GAPS_MAX,
  });
