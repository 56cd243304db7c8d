/**
 * What the ingest thread, the one writer of detections.db, is started with, what operations ask of it, the calls that it serves,
 * and its events. Requests wait in its memory: a stop ends them, and whoever asked is told so.
 */
import type { ExportName } from '../../detection/content-type.ts';
import type { DropSettings } from '../../drop/readiness.ts';
import type { OwnNames } from '../../exports/file-name.ts';
import type { Mappings } from '../../exports/mapping.ts';
import type { Compacted } from '../../log/compact.ts';
import type { Mark } from '../../log/format.ts';
import type { StreamPosition } from '../../log/version-epoch.ts';
import type { ThreadCalls } from '../../thread-call.ts';
import type { HoldRules } from '../../windows/ledger.ts';
import type { ResettableStatus, WindowStatus } from '../../windows/window-states.ts';
import type { ApplyCounts } from '../apply/apply-rows.ts';
import type { ProcessedFile } from '../files/file-record.ts';
import type { ReadingOrder } from '../reading/read-export.ts';
import type { IngestCondition, LogLevel } from '../reporting.ts';
import type { DecidedEntry } from './decisions.ts';

export interface IngestSettings
  extends DropSettings,
    HoldRules,
    Pick<ReadingOrder, 'require_trailer' | 'bad_rows'> {
  readonly data: string;
  readonly drop: string;
  readonly photos: string;
  readonly file_names: OwnNames;
  readonly mappings: Mappings;
  /** The key that signs the addresses of photos. */
  readonly photo_key: Uint8Array;
  readonly rescan_seconds: number;
  readonly archive_days: number;
  /** As the API writes times; null: it depends on the file. */
  readonly earliest_time: string | null;
  /** `serve`: read the drop folder. `alone`: on a stopped installation, only do what is asked. */
  readonly mode: 'serve' | 'alone';
  /** The section `[copy]`; null: no copy is kept. */
  readonly copy: CopySettings | null;
}

export type CopySettings = Readonly<Record<'to' | 'endpoint' | 'region' | 'credentials', string>> &
  Readonly<Record<'wait' | 'standby', boolean>>;

type OfWindow = { readonly export: ExportName; readonly window_start: number };

export type IngestRequest =
  /** Reads archived files again that were first applied in `[from, to)`, epoch milliseconds. */
  | { readonly kind: 'replay'; readonly from: number; readonly to: number }
  /** Reads the newest held file of a window, or else the failed one again; `from`: its status at the time of the request. */
  | (OfWindow & { readonly kind: 'reset'; readonly from: ResettableStatus })
  /** A failed window counts as done, without the file that failed; one that was never expected is forgotten. */
  | (OfWindow & { readonly kind: 'dismiss' })
  /** Sets from which window on those of an export are expected. */
  | (OfWindow & { readonly kind: 'expect' })
  /** For a lab: records an unknown window as if its file had not come in time. */
  | (OfWindow & { readonly kind: 'gap'; readonly status: Extract<WindowStatus, 'missing' | 'abandoned'> })
  /**
   * Deletes the rows of removed subscriptions: of those with an open removal, whether or not it names them. Without the
   * request, the ingest thread deletes them all the same.
   */
  | { readonly kind: 'remove'; readonly subscriptions: readonly number[] }
  /** Rewrites the log: see log/compact.ts. */
  | { readonly kind: 'compact' };

export interface ReplayCounts extends ApplyCounts {
  files: number;
  rows: number;
  /** Rows that are bad, or of a stream that does not exist, or was added again after their file was taken. */
  left_out: number;
  /** Files that are no longer in the archive, or that the present settings do not accept. */
  unreadable: { file: string; reason: string }[];
}

export interface Answers {
  replay: ReplayCounts;
  reset: { readonly file: string; readonly outcome: string; readonly reason: string | null };
  dismiss: null;
  /** How many windows before the start are no longer missing or abandoned. */
  expect: { readonly forgotten: number };
  gap: null;
  /** Why the log still has rows of them; null: it has none. */
  remove: { readonly left_in_log: string | null };
  compact: Compacted;
}
export type Kind = IngestRequest['kind'];
export type RequestOf<Of extends Kind> = Extract<IngestRequest, { kind: Of }>;

/** Called with the progress, in words. */
export type Tell = (progress: string) => void;

/** @throws Refused `failed` with the reason if it could not be done */
export type AskIngest = <Of extends Kind>(
  request: RequestOf<Of> & { readonly kind: Of },
  tell?: Tell,
) => Promise<Answers[Of]>;

export type Served = { readonly answer: Answers[keyof Answers] } | { readonly refused: string };

export interface IngestCalls {
  /** Before it, the thread only loads its code. `isAgain`: whether a thread of this process had the database open before. */
  start(given: Readonly<{ settings: IngestSettings; decided: DecidedEntry; isAgain: boolean }>): void;
  /** A cursor is one that the log never issued: see log/version-epoch.ts. */
  endLost(cursor: StreamPosition): void;
  /** Answered when it is done. */
  ask(request: IngestRequest, tell: Tell): Served;
  /** access.db was changed: ingest was paused or resumed, or a removal was begun. */
  wake(): void;
  /** Answered when all that waits is processed, and missing windows were searched for. */
  rested(): void;
  /** Makes a standby the writer. @param by who asked for it */
  promote(by: object): void;
  stop(): void;
}

/** What the main thread is told, without an answer. */
export interface IngestEvents {
  /** Both databases are open. No answer to `start`, which would come only after what the thread does next. */
  ready(): void;
  /** The database must first be brought to the end of the log, which may take long. */
  recovering(reason: string): void;
  log(line: Readonly<{ level: LogLevel; msg: string; fields: Record<string, unknown> }>): void;
  /** A standby read the copy; or why it could not. */
  following(failure: string | null): void;
  healed(): void;
  promoted(): void;
  /** The copy must have this entry before the transaction becomes visible: the thread stands still until then. */
  proposed(entry: Mark): void;
  delivered(delivery: { readonly first_position: number; readonly delivered_at: number }): void;
  processed(file: ProcessedFile): void;
  progress(of: { readonly file: string; readonly rows: number; readonly isDone: boolean }): void;
  condition(of: { readonly name: IngestCondition; readonly detail: string | null }): void;
}

/** The thread's end of {@link IngestEvents}. */
export type ToMain = ThreadCalls<IngestEvents>['post'];
