/** What every step of ingest works with: the writing connection, the folder, the other thread, the clock. */
import type { ExportName } from '../detection/content-type.ts';
import type { Database } from '../store/database.ts';
import type { DataFolder } from '../store/folder.ts';
import { formatMs, type Now, WINDOW_MS } from '../time.ts';
import type { DropFolder } from './drop-folder.ts';
import { type ExportFileName, latestTime } from './export-name.ts';
import type { DealtWith, IngestSettings, LogLevel, TroubleName } from './ingest-settings.ts';
import type { OrderWithoutSession, ReaderClient } from './reader-client.ts';
import type { StreamWriter } from './stream-writer.ts';
import { readSubscribers } from './subscribers.ts';

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
  /** Told of every file that was dealt with, once. */
  readonly dealtWith: (file: DealtWith) => void;
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

/**
 * How a file is to be read, with what holds at this moment.
 */
export function readingOrder(
  workshop: Workshop,
  path: string,
  file: ExportFileName,
  options: Pick<OrderWithoutSession, 'rows_to_skip' | 'check_only' | 'skipped_path'>,
): OrderWithoutSession {
  const { settings } = workshop;
  const readAtMs = workshop.now();
  const subscribers = readSubscribers(workshop.access, (exportName) => isEnabled(workshop, exportName));
  return {
    path,
    file,
    earliest: settings.earliest_time,
    latest: latestTime(file.kind === 'window' ? file.window_start + WINDOW_MS : readAtMs),
    exported_at_default: formatMs(readAtMs),
    require_trailer: settings.require_trailer,
    bad_rows: settings.bad_rows,
    streams: subscribers.streams,
    licensed: subscribers.licensed,
    ...options,
  };
}
