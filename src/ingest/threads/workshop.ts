/** What every step of ingest works with: the writing connection, the folder, the other thread, the clock. */
import type { ExportName } from '../../detection/content-type.ts';
import type { Database } from '../../store/database.ts';
import type { DataFolder } from '../../store/folder.ts';
import type { Now } from '../../time.ts';
import type { FileRecord } from '../apply/file-record.ts';
import type { StreamWriter } from '../apply/stream-writer.ts';
import { readSubscribers } from '../apply/subscribers.ts';
import type { DropFolder } from '../drop/drop-folder.ts';
import { type ExportFileName, timesOf } from '../format/file-name.ts';
import type { IngestSettings, LogLevel, TroubleName } from './ingest-settings.ts';
import type { ReaderClient } from './reader-client.ts';
import type { ReaderOrder } from './reader-messages.ts';

export interface Workshop {
  readonly db: Database;
  readonly access: Database;
  readonly folder: DataFolder;
  readonly drop: DropFolder;
  readonly reader: ReaderClient;
  readonly writer: StreamWriter;
  readonly settings: IngestSettings;
  readonly now: Now;
  readonly log: (level: LogLevel, msg: string, fields?: Record<string, unknown>) => void;
  /** Tells what keeps the thread from its work; null: no longer. */
  readonly trouble: (name: TroubleName, detail: string | null) => void;
  /** Logs and counts a file; called once for each that was dealt with. */
  readonly dealtWith: (record: FileRecord) => void;
  readonly progress: (file: string, rows: number, isDone: boolean) => void;
  /** Called between two transactions of long work: throws Stopping when it is to end. */
  readonly between: () => Promise<void>;
  /** Throws Stopping when the thread is to end. */
  readonly check: () => void;
  /** Gives out ingest numbers: each once, also when what it was for came to nothing. */
  readonly nextNumber: () => number;
}

/** Thrown to leave work half-way when the thread is to end: the transaction is rolled back. */
export class Stopping extends Error {}

export function isEnabled(workshop: Workshop, exportName: ExportName): boolean {
  return workshop.settings.enabled_exports.includes(exportName);
}

/** How a file is to be read, with what holds at this moment. */
export function readingOrder(
  workshop: Workshop,
  path: string,
  file: ExportFileName,
  options: Partial<ReaderOrder>,
): ReaderOrder {
  const { access, now, settings } = workshop;
  return {
    path,
    file,
    ...timesOf(file, now()),
    earliest: settings.earliest_time,
    require_trailer: settings.require_trailer,
    bad_rows: settings.bad_rows,
    rows_to_skip: 0,
    check_only: false,
    skipped_path: null,
    ...readSubscribers(access, (exportName) => isEnabled(workshop, exportName)),
    ...options,
  };
}
