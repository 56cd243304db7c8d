/** What the views of the console read from. */
import type { ExportName } from '../../detection/content-type.ts';
import type { Jobs } from '../../operations/jobs.ts';
import type { Live } from '../../operations/operation.ts';
import type { Database } from '../../store/database.ts';
import type { DataFolder } from '../../store/folder.ts';
import type { AskView, OperationsSettings } from '../thread-messages.ts';

/** A request to read. */
export type Read = AskView;

export interface Sources {
  readonly settings: OperationsSettings;
  readonly live: Live;
  readonly folder: DataFolder;
  /** Exports that are switched on. */
  readonly enabled: ReadonlySet<ExportName>;
  readonly jobs: Jobs;
  /** Differs when accounts or detections have changed. */
  readonly version: () => string;
  /** A reader on `detections.db`. @throws Refused `unavailable` while it must not be read */
  readonly detections: () => Database;
  /** A reader on `access.db`. @throws Refused `unavailable` */
  readonly access: () => Database;
}

/** For views that are useful without detections.db: null while it cannot be read. */
export function readableOrNull(sources: Sources): Database | null {
  try {
    return sources.detections();
  } catch {
    return null;
  }
}
