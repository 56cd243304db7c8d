/**
 * The protocol between the console's server and its app. It imports only types, so both halves can use it: the answer to
 * `GET PATH` is what the function for that path in reads.ts returns.
 *
 * All paths begin with `/console/`. Answers are JSON. Times are UTC text with a `Z`, as in the API. `next` is the
 * `after` of a list's next page; null at its end. Every request but `POST session` needs `Authorization: Bearer SECRET`
 * with the secret of a session. Errors are problem documents.
 */
import type { OutcomeDocument } from '../../operations/problem.ts';
import type { READERS } from './reads.ts';

export type { AuditedChange } from '../../auth/audit.ts';
export type { FileDocument as FileEntry, FileOutcome, FileReport } from '../../ingest/files/file-record.ts';
export type { DetectionEntry, DetectionsPage } from './detections.ts';
export type { Action, WindowLetter } from './windows.ts';

/**
 * `POST session` {token}: redeems a link (`/#login=TOKEN`); 401 when it was used or has expired. The secret is shown only
 * once. The app keeps it for its origin, host and port, and sends it with every request.
 */
export type SessionBegun = Readonly<{ secret: string }>;

/** `GET session`: the session. `POST session/end` {}: ends it. */
export interface Session {
  readonly name: string;
  readonly read_only: boolean;
  readonly expires_at: string;
  readonly version: string;
  /** It has sample data. */
  readonly demo: boolean;
  /** It is a lab: then there is `GET lab`. */
  readonly lab: boolean;
}

/** The answer of `POST /operations/NAME`; with `Prefer: respond-async`, of one that may take long, its job. */
export type Outcome = OutcomeDocument;

type Reads = typeof READERS;
type View<Path extends keyof Reads> = Awaited<ReturnType<Reads[Path]>>;

export type Changes = View<'changes'>;
export type Operations = View<'operations'>;
export type Overview = View<'overview'>;
export type Trends = View<'trends'>;
export type WindowMap = View<'windows'>;
export type OpenWindow = WindowMap['open'][number];
export type WindowDetail = View<'window'>;
export type FilesPage = View<'files'>;
export type Customers = View<'customers'>;
export type AccountEntry = Customers['accounts'][number];
export type KeyEntry = AccountEntry['keys'][number];
export type DetectionDetail = View<'detections/one'>;
export type AuditPage = View<'history/audit'>;
export type Jobs = View<'jobs'>;
export type ManualTopics = View<'manual'>;
export type ManualTopic = View<'manual/topic'>;

/** `GET lab`: what a lab does to its clients. 404 unless it is a lab. */
export interface LabState {
  readonly now: string;
  readonly seed: string;
  /** In the order in which they were added: the first that matches a request takes effect. */
  readonly faults: readonly {
    readonly id: string;
    /** Its effect and its conditions, as in `lab fault add`. */
    readonly members: Readonly<Record<string, unknown>>;
    readonly fired: number;
    readonly left: number;
  }[];
}
