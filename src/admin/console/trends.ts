/** What was read and delivered over 24 hours, 7 or 90 days (api.ts): the curves of the overview. */
import { EXPORT_NAMES, type ExportName, perExport } from '../../detection/content-type.ts';
import { defaulted, readParameters } from '../../query/parameters.ts';
import { integer } from '../../query/value-kinds.ts';
import type { Database } from '../../store/database.ts';
import { DAY_MS, formatMs, HOUR_MS, SECOND_MS, WINDOW_MS } from '../../time.ts';
import { customerRows } from './customer-rows.ts';
import type { Read, Sources } from './sources.ts';

const STEPS_MS: ReadonlyMap<number, number> = new Map([
  [1, HOUR_MS],
  [7, 6 * HOUR_MS],
  [90, DAY_MS],
]);
const DAYS = { days: defaulted(integer(1, 90), 1) };

export const APPLIED_FILES = `
  SELECT finished_at / CAST(:step AS INTEGER) AS step, export,
    sum(coalesce(report ->> '$.created', 0)) AS created,
    sum(coalesce(report ->> '$.updated', 0)) AS updated,
    avg(iif(EXISTS (
      SELECT 1 FROM ingest_file AS earlier INDEXED BY ingest_file_by_window
      WHERE earlier.export = ingest_file.export AND earlier.window_start = ingest_file.window_start
        AND earlier.outcome = 'applied' AND earlier.number < ingest_file.number
    ), NULL, max(0, finished_at - window_start - ${WINDOW_MS}))) AS late
  FROM ingest_file INDEXED BY ingest_file_by_outcome
  WHERE outcome = 'applied' AND finished_at >= :from AND export IS NOT NULL
  GROUP BY step, export`;

interface Step {
  readonly step: number;
  readonly export: ExportName;
  readonly created: number;
  readonly updated: number;
  /** Milliseconds; null: only backfills. */
  readonly late: number | null;
}

/** `?days=7`: other numbers of days than 1, 7 and 90 are shown in steps of a day. */
export function readTrends(sources: Sources, { query }: Read, nowMs: number) {
  const { days } = readParameters(query, DAYS);
  const stepMs = STEPS_MS.get(days) ?? DAY_MS;
  const first = Math.floor(nowMs / stepMs) - (days * DAY_MS) / stepMs + 1;
  const steps = appliedSince(sources.detections(), first * stepMs, stepMs);
  const ofExport = (name: ExportName) => {
    const own = new Map(steps.filter((step) => step.export === name).map((step) => [step.step, step]));
    const values = (value: (step: Step | undefined) => number) =>
      Array.from({ length: (days * DAY_MS) / stepMs }, (_, at) => value(own.get(first + at)));
    return {
      /** New detections in each step. */
      created: values((step) => step?.created ?? 0),
      updated: values((step) => step?.updated ?? 0),
      /** From the end of a window to the end of its first reading, on average; 0 where nothing was read. */
      late_seconds: values((step) => Math.round((step?.late ?? 0) / SECOND_MS)),
    };
  };
  const starts = Array.from({ length: (days * DAY_MS) / stepMs }, (_, at) => (first + at) * stepMs);
  return {
    from: formatMs(first * stepMs),
    step_seconds: stepMs / SECOND_MS,
    exports: perExport(ofExport),
    customers: customerRows(sources.detections(), sources.access(), [...starts, nowMs]),
    enabled: EXPORT_NAMES.filter((name) => sources.enabled.has(name)),
  };
}

function appliedSince(db: Database, from: number, step: number): Step[] {
  return db.prepare<unknown[], Step>(APPLIED_FILES).all({ from, step });
}
