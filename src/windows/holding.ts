/** Which windows have the files that arrive for them held until an operator resets or accepts the window. */
import type { ExportName } from '../detection/content-type.ts';
import type { Database } from '../store/database.ts';
import { resettableWindows } from './ledger.ts';
import { arrival, type ResettableStatus } from './window-states.ts';

export interface HoldRules {
  readonly failed_windows: 'hold' | 'read';
  /** Files of the other exports are refused, whatever their window. */
  readonly enabled_exports: readonly ExportName[];
}

/** The status that has the file of a window, or a backfill, held; null: it is read when it is ready. */
export type HeldBy = (file: {
  readonly kind: 'window' | 'backfill';
  readonly export: ExportName;
  readonly window_start?: number;
}) => ResettableStatus | null;

/** For any number of files, as of the first that is asked for. */
export function heldBy(db: Database, { failed_windows, enabled_exports }: HoldRules): HeldBy {
  const windows = new Map<ExportName, Map<number, ResettableStatus>>();
  return ({ export: exportName, window_start }) => {
    if (window_start === undefined || !enabled_exports.includes(exportName)) return null;
    const known = windows.get(exportName) ?? resettableWindows(db, exportName);
    windows.set(exportName, known);
    const status = known.get(window_start);
    return status !== undefined && arrival(status, failed_windows) === 'hold' ? status : null;
  };
}
