/** Export windows that have contributed no detections. */
import { type ContentType, TYPE_RULES } from '../detection/content-type.ts';
import { DATA_GAP_AGE_MAX_MS, DATA_GAPS_MAX } from '../limits/contract-limits.ts';
import { type Database, preparedOnce } from '../store/database.ts';

export interface DataGap {
  /** Epoch milliseconds. */
  readonly window_start: number;
  readonly status: GapStatus;
}

export const GAP_STATUSES = ['missing', 'abandoned', 'failed'] as const;
type GapStatus = (typeof GAP_STATUSES)[number];

/**
 * Each status by itself, as the index has them: at most @limit rows of each are read, even where an export was silent
 * all the time.
 */
export const DATA_GAPS = `
  SELECT window_start, status FROM (${GAP_STATUSES.map(gapsOf).join(' UNION ALL ')})
  ORDER BY window_start DESC LIMIT @limit`;

const dataGaps = preparedOnce<DataGap>(DATA_GAPS);

/** Newest first, of the last 90 days, at most 200. */
export function readDataGaps(db: Database, contentType: ContentType, nowMs: number): DataGap[] {
  return dataGaps(db).all({
    export: TYPE_RULES[contentType].export,
    from: nowMs - DATA_GAP_AGE_MAX_MS,
    to: nowMs,
    limit: DATA_GAPS_MAX,
  });
}

/** The statuses are constants of the program. */
function gapsOf(status: GapStatus): string {
  return `SELECT window_start, status FROM (
    SELECT window_start, status FROM export_window
    WHERE export = @export AND status = '${status}' AND window_start BETWEEN @from AND @to
    ORDER BY window_start DESC LIMIT @limit)`;
}
