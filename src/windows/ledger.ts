/**
 * The ledger of export windows: which are done, and which stand otherwise (contract: States and transitions).
 */
import type { ExportName } from '../detection/content-type.ts';
import type { Database } from '../store/database.ts';
import { WINDOW_MS } from '../time.ts';

export const WINDOW_STATUSES = ['done', 'failed', 'missing', 'abandoned'] as const;
export type WindowStatus = (typeof WINDOW_STATUSES)[number];

export interface ExportWindow {
  readonly export: ExportName;
  /** Epoch milliseconds. */
  readonly window_start: number;
  readonly status: WindowStatus;
  /** When it came to this status, epoch milliseconds. */
  readonly since: number;
  /** The ingest number of the file that brought it there. */
  readonly file: number | null;
}

const SELECT_WINDOW = `
  SELECT export, window_start, status, since, file FROM export_window
  WHERE export = :export AND window_start = :window_start`;

const UPSERT_WINDOW = `
  INSERT INTO export_window (export, window_start, status, since, file)
  VALUES (:export, :window_start, :status, :since, :file)
  ON CONFLICT (export, window_start)
  DO UPDATE SET status = excluded.status, since = excluded.since, file = excluded.file`;

const SELECT_NEWEST_DONE = `
  SELECT max(window_start) AS window_start FROM export_window WHERE export = :export AND status = 'done'`;

const SELECT_WINDOWS = `
  SELECT export, window_start, status, since, file FROM export_window
  WHERE (:export IS NULL OR export = :export) AND (:status IS NULL OR status = :status)
  ORDER BY window_start DESC, export LIMIT :limit`;

export function findWindow(
  db: Database,
  exportName: ExportName,
  windowStart: number,
): ExportWindow | undefined {
  return db
    .prepare<unknown[], ExportWindow>(SELECT_WINDOW)
    .get({ export: exportName, window_start: windowStart });
}

export function listWindows(
  db: Database,
  wanted: {
    readonly export: ExportName | null;
    readonly status: WindowStatus | null;
    readonly limit: number;
  },
): ExportWindow[] {
  return db.prepare<unknown[], ExportWindow>(SELECT_WINDOWS).all(wanted);
}

/** The end of an export's newest finished window, epoch milliseconds; null when none is finished. */
export function newestDone(db: Database, exportName: ExportName): number | null {
  const row = db
    .prepare<unknown[], { window_start: number | null }>(SELECT_NEWEST_DONE)
    .get({ export: exportName });
  return row === undefined || row.window_start === null ? null : row.window_start + WINDOW_MS;
}

/** What to do with a file that arrives for a window in this status. */
export function arrival(status: WindowStatus | undefined): 'read' | 'hold' {
  // A failed or abandoned window waits for the operator's word: the file may be as wrong as the one before it.
  return status === 'failed' || status === 'abandoned' ? 'hold' : 'read';
}

/** The status after a file of the window was read or failed; a window that is done stays done. */
export function statusAfter(status: WindowStatus | undefined, outcome: 'applied' | 'failed'): WindowStatus {
  if (outcome === 'applied') return 'done';
  return status === 'done' ? 'done' : 'failed';
}

export function setWindow(db: Database, window: ExportWindow): void {
  db.prepare(UPSERT_WINDOW).run(window);
}
