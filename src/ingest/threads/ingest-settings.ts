/** What the ingesting thread is started with, and what it and the main thread say to each other. */
import type { ExportName } from '../../detection/content-type.ts';
import type { RefusedCode } from '../../refused.ts';
import type { FileOutcome } from '../apply/file-record.ts';

export interface IngestSettings {
  readonly data: string;
  readonly drop: string;
  readonly quiet_ms: number;
  readonly truncated_seconds: number;
  readonly rescan_seconds: number;
  readonly require_trailer: boolean;
  readonly bad_rows: 'fail' | 'skip';
  readonly failed_windows: 'hold' | 'read';
  readonly archive_days: number;
  /** As the contract writes times. */
  readonly earliest_time: string;
  readonly enabled_exports: readonly ExportName[];
  /** The key that signs the addresses of photos. */
  readonly photo_key: Uint8Array;
  /** The version of the program. */
  readonly program: string;
  /** `serve`: watch the drop folder. `requests`: do what is asked for in `ingest_request`, then end. */
  readonly mode: 'serve' | 'requests';
}

/** What became of a file, for those who count. */
export interface DealtWith {
  readonly export: ExportName | null;
  readonly outcome: FileOutcome;
  readonly rows: Readonly<Record<RowOutcome, number>>;
}

export const ROW_OUTCOMES = ['created', 'updated', 'rescored', 'unchanged', 'left_out'] as const;
/** `left_out`: bad, or of a stream that is not there. */
export type RowOutcome = (typeof ROW_OUTCOMES)[number];

/**
 * What keeps the thread from its work at the moment. It becomes an alert of the main thread: in memory, since neither a
 * full disk nor a damaged database can take a note.
 */
export const TROUBLE_NAMES = [
  'disk full',
  'drop folder not readable',
  'drop folder not writable',
  'file stuck',
  'end of log lost',
  'removal incomplete',
] as const;
export type TroubleName = (typeof TROUBLE_NAMES)[number];

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

export type ToIngest =
  /** The first message: until it comes, the thread has only loaded its code. */
  | { readonly kind: 'start'; readonly settings: IngestSettings }
  /** A cursor of a position that the log never gave out: see history/version-epoch.ts. */
  | { readonly kind: 'end lost'; readonly position: number }
  /** Asks for `rested`, once all that waits at this moment is processed. */
  | { readonly kind: 'rest' }
  | { readonly kind: 'stop' };

export type FromIngest =
  /** The database can be read. */
  | { readonly kind: 'ready' }
  /** Before it can be read, it has to be brought to the end of the log: that may take long. */
  | { readonly kind: 'recovering'; readonly reason: string }
  | {
      readonly kind: 'log';
      readonly level: LogLevel;
      readonly msg: string;
      readonly fields: Record<string, unknown>;
    }
  /** A transaction became visible. */
  | { readonly kind: 'delivered'; readonly first_position: number; readonly delivered_at: number }
  | { readonly kind: 'dealt_with'; readonly file: DealtWith }
  /** For each `rest`, in their order. */
  | { readonly kind: 'rested' }
  | { readonly kind: 'progress'; readonly file: string; readonly rows: number; readonly isDone: boolean }
  /** Something keeps the thread from its work; detail null: no longer. */
  | { readonly kind: 'trouble'; readonly name: TroubleName; readonly detail: string | null }
  /** The thread cannot start: the detail is for the operator. */
  | { readonly kind: 'refused'; readonly code: RefusedCode; readonly detail: string };
