/** Which windows have the files that arrive for them held until an operator resets or accepts the window. */
import type { ExportName } from '../detection/content-type.ts';
import type { Database } from '../store/database.ts';
import { findWindow, resettableWindows } from './ledger.ts';
import { arrival, type ResettableStatus } from './window-states.ts';

/** The operator's settings. */
export interface HoldRules {
  readonly failed_windows: 'hold' | 'read';
  /** Files of the other exports are refused, whatever their window. */
  readonly enabled_exports: readonly ExportName[];
}

/** The name of a window's file, or that of a backfill. */
type Named = { readonly export: ExportName } & (
  | { readonly kind: 'window'; readonly window_start: number }
  | { readonly kind: 'backfill' }
);

/** The status that has a file held; null: it is read when it is ready. */
export type HeldBy = (file: Named) => ResettableStatus | null;

/** For any number of files, as of the first that is asked for. */
export function heldBy(db: Database, rules: HoldRules): HeldBy {
  const windows = new Map<ExportName, Map<number, ResettableStatus>>();
  return (file) => {
    if (file.kind !== 'window' || !rules.enabled_exports.includes(file.export)) return null;
    const known = windows.get(file.export) ?? resettableWindows(db, file.export);
    windows.set(file.export, known);
    const status = known.get(file.window_start);
    return status !== undefined && arrival(status, rules.failed_windows) === 'hold' ? status : null;
  };
}

/** For one file, as of now. */
export function isHeld(db: Database, rules: HoldRules, file: Named): boolean {
  if (file.kind !== 'window') return false;
  return arrival(findWindow(db, file.export, file.window_start)?.status, rules.failed_windows) === 'hold';
}
