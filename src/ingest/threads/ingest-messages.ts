/** What the ingest thread is started with, the calls that it serves, and its events. */
import type { DropSettings } from '../../drop/drop-folder.ts';
import type { OwnNames } from '../../exports/file-name.ts';
import type { Mappings } from '../../exports/mapping.ts';
import type { Mark } from '../../log/format.ts';
import type { StreamPosition } from '../../log/version-epoch.ts';
import type { ThreadCalls } from '../../thread-call.ts';
import type { HoldRules } from '../../windows/ledger.ts';
import type { ProcessedFile } from '../files/file-record.ts';
import type { ReadingOrder } from '../reading/read-export.ts';
import type { ReaderSettings } from '../reading/reader-thread.ts';
import type { IngestCondition, Reporting } from '../reporting.ts';
import type { Answers, IngestRequest } from '../requests/requests.ts';
import type { DecidedEntry } from './decisions.ts';

export interface IngestSettings
  extends DropSettings,
    HoldRules,
    ReaderSettings,
    Pick<ReadingOrder, 'require_trailer' | 'bad_rows'> {
  readonly data: string;
  readonly drop: string;
  readonly photos: string;
  readonly file_names: OwnNames;
  readonly mappings: Mappings;
  readonly rescan_seconds: number;
  readonly archive_days: number;
  /** As the API writes times; null: it depends on the file. */
  readonly earliest_time: string | null;
  /** `serve`: read the drop folder. `alone`: on a stopped installation, only do what is asked. */
  readonly mode: 'serve' | 'alone';
  /** The section `[copy]`; null: no copy is kept. */
  readonly copy: CopySettings | null;
}

export interface CopySettings {
  readonly to: string;
  readonly wait: boolean;
  readonly standby: boolean;
  readonly endpoint: string;
  readonly region: string;
  readonly credentials: string;
}

export interface IngestStart {
  readonly settings: IngestSettings;
  readonly decided: DecidedEntry;
  /** Whether a thread of this process had the database open before. */
  readonly isAgain: boolean;
}

/** The answer to a request, or why it was refused. */
export type Served = { readonly answer: Answers[keyof Answers] } | { readonly refused: string };

export interface IngestCalls {
  /** Until it comes, the thread has only loaded its code. */
  start(start: IngestStart): void;
  /** A cursor is one that the log never issued: see log/version-epoch.ts. */
  endLost(cursor: StreamPosition): void;
  /** Answered when it is done. @param tell called with the progress, in words */
  ask(request: IngestRequest, tell: (progress: string) => void): Served;
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
  log(line: {
    readonly level: Parameters<Reporting['log']>[0];
    readonly msg: string;
    readonly fields: Record<string, unknown>;
  }): void;
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
