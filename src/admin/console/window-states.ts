/**
 * In which state every window of a span is: one query, from which the map, the list and what can be done are made, so
 * they never disagree.
 */
import type { ExportName } from '../../detection/content-type.ts';
import type { Database } from '../../store/database.ts';
import { WINDOW_MS } from '../../time.ts';
import { newestDone, readExpectation, type WindowStatus } from '../../windows/ledger.ts';
import { dueAtMs, lateBeforeMs } from '../../windows/transitions.ts';
import type { WindowLetter } from './api.ts';

export interface WindowState {
  readonly export: ExportName;
  /** Epoch milliseconds. */
  readonly window_start: number;
  readonly letter: WindowLetter;
  readonly since: number | null;
  readonly rows: number;
  /** Why its file failed. */
  readonly reason: string | null;
  /** A file waits in held/. */
  readonly held: boolean;
  /** A file of it lies in held/ or failed/, from which it can be read. */
  readonly hasFile: boolean;
}

export const WINDOWS_WITH_ROWS = `
  SELECT known.window_start, status, since, coalesce(report ->> '$.rows', 0) AS rows,
    iif(status = 'failed', report ->> '$.reason', NULL) AS reason
  FROM export_window AS known LEFT JOIN ingest_file ON ingest_file.number = known.file
  WHERE known.export = :export AND known.window_start >= :from AND known.window_start < :to`;

/** As a reset and an accept choose (ingest/file-record.ts). */
export const WINDOWS_WITH_FILES_LEFT = `
  SELECT window_start, max(outcome = 'held') AS held FROM ingest_file
  WHERE outcome IN ('held', 'failed') AND destination IS NOT NULL AND destination NOT LIKE 'archive/%'
    AND export = :export AND window_start >= :from AND window_start < :to
  GROUP BY window_start`;

const LETTERS = { done: 'd', failed: 'f', missing: 'm', abandoned: 'a' } as const satisfies Record<
  WindowStatus,
  WindowLetter
>;

interface Known {
  readonly window_start: number;
  readonly status: WindowStatus;
  readonly since: number;
  readonly rows: number;
  readonly reason: string | null;
}

/** @param span epoch milliseconds, `[from, to)`; @param isEnabled whether the export is switched on */
export function windowStates(
  db: Database,
  span: { readonly export: ExportName; readonly from: number; readonly to: number },
  isEnabled: boolean,
  nowMs: number,
): WindowState[] {
  const known = new Map(
    db
      .prepare<unknown[], Known>(WINDOWS_WITH_ROWS)
      .all(span)
      .map((one) => [one.window_start, one]),
  );
  const left = new Map(
    db
      .prepare<unknown[], { window_start: number; held: 0 | 1 }>(WINDOWS_WITH_FILES_LEFT)
      .all(span)
      .map((one) => [one.window_start, one.held]),
  );
  const letterOfUnknown = unknownLetters(db, span.export, isEnabled, nowMs);
  const states: WindowState[] = [];
  for (let start = span.from; start < span.to; start += WINDOW_MS) {
    const found = known.get(start);
    states.push({
      export: span.export,
      window_start: start,
      letter: found === undefined ? letterOfUnknown(start) : letterOf(found),
      since: found?.since ?? null,
      rows: found?.rows ?? 0,
      reason: found?.reason ?? null,
      held: left.get(start) === 1,
      hasFile: left.has(start),
    });
  }
  return states;
}

function letterOf({ status, rows }: Known): WindowLetter {
  return status === 'done' && rows === 0 ? 'e' : LETTERS[status];
}

/** Of windows of which nothing is written. */
function unknownLetters(
  db: Database,
  name: ExportName,
  isEnabled: boolean,
  nowMs: number,
): (start: number) => WindowLetter {
  const expectedFrom = isEnabled ? (readExpectation(db, name)?.expected_from ?? null) : null;
  const newestEnd = newestDone(db, name) ?? 0;
  const lateBefore = Math.min(lateBeforeMs(nowMs), newestEnd - WINDOW_MS);
  return (start) => {
    if (expectedFrom === null || start < expectedFrom) return '-';
    if (nowMs < dueAtMs(start)) return 'n';
    return start < lateBefore ? 'l' : 'w';
  };
}
