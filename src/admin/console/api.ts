/**
 * The protocol between the console's server and its app. It imports only types, so both halves can use it: the answer to
 * `GET PATH` is what the function for that path in reads.ts returns.
 *
 * All paths begin with `/console/`. Answers are JSON. Times are UTC text with a `Z`, as in the API. `next` is the
 * `after` of a list's next page; null at its end. Every request but `POST session` needs `Authorization: Bearer SECRET`
 * with the secret of a session. Errors are problem documents.
 */
import type { ContentType, ExportName } from '../../detection/content-type.ts';
import type { OutcomeDocument } from '../../operations/problem.ts';
import type { READERS } from './reads.ts';

export type { AuditedChange } from '../../auth/audit.ts';
export type { AlertDocument } from '../../health/alert-texts.ts';
export type { FileDocument as FileEntry, FileOutcome, FileReport } from '../../ingest/file-record.ts';
export type { Question } from '../../operations/operation.ts';
export type { ExportName };

export type Time = string;

/** `POST session` {token}: redeems a link (`/#login=TOKEN`); 401 when it was used or has expired. */
export interface SessionBegun {
  /** Shown only once. The app keeps it for its origin, host and port, and sends it with every request. */
  readonly secret: string;
}

/** `GET session`: the session. `POST session/end` {}: ends it. */
export interface Session {
  /** Who made its link. */
  readonly name: string;
  readonly read_only: boolean;
  readonly expires_at: Time;
  readonly version: string;
  /** It has sample data. */
  readonly demo: boolean;
  /** It is a lab: then there is `GET lab`. */
  readonly lab: boolean;
  /** The clock of the server. */
  readonly now: Time;
  /** Where clients reach the API. */
  readonly base_url: string;
}

/** An act that can be done now: `POST /operations/NAME` takes what is given, and what its form asks for. */
export interface Action {
  /** Its name in the table of operations: `window reset`. */
  readonly operation: string;
  readonly given: Readonly<Record<string, string | number | readonly string[]>>;
}

/** The answer of `POST /operations/NAME`; with `Prefer: respond-async`, of one that may take long, its job. */
export type Outcome = OutcomeDocument;

type Reads = typeof READERS;
type View<Path extends keyof Reads> = Awaited<ReturnType<Reads[Path]>>;

export type Operations = View<'operations'>;
export type Overview = View<'overview'>;
export type WindowMap = View<'windows'>;
export type OpenWindow = WindowMap['open'][number];
export type WindowDetail = View<'window'>;
export type FilesPage = View<'files'>;
export type Customers = View<'customers'>;
export type AccountEntry = Customers['accounts'][number];
export type KeyEntry = AccountEntry['keys'][number];
export type DetectionDetail = View<'detections/one'>;
export type AuditPage = View<'history/audit'>;
export type OperationsPage = View<'history/operations'>;
export type Jobs = View<'jobs'>;
export type ManualTopics = View<'manual'>;
export type ManualTopic = View<'manual/'>;

/**
 * `d` done; `e` done, with an empty file; `f` failed; `m` missing; `a` abandoned; `l` late: overdue although a later one
 * was read; `w` due, or its file is being read; `n` not due yet; `-` not expected.
 */
export type WindowLetter = 'd' | 'e' | 'f' | 'm' | 'a' | 'l' | 'w' | 'n' | '-';

/** A detection as clients see it, with `event` in the live stream. */
export interface DetectionEntry {
  readonly id: string;
  readonly version: number;
  readonly event?: 'created' | 'updated';
  readonly content_type: ContentType;
  readonly subscription_id: number;
  readonly first_detected_at: Time;
  readonly first_detected_estimated: boolean;
  readonly last_scored_at: Time;
  readonly exported_at: Time;
  readonly source: Readonly<Record<string, unknown>> & { readonly id: string | null };
  readonly strength: Readonly<Record<string, unknown>> & { readonly score: number; readonly band: string };
  readonly article: Readonly<Record<string, unknown>> & {
    readonly id: number;
    readonly url: string | null;
    readonly domain: string | null;
    readonly headline: string | null;
    readonly publisher: { readonly id: number | null; readonly name: string | null } | null;
  };
  readonly [member: string]: unknown;
}

/** `GET detections/live` and `GET detections/search`, which make its text of stored ones. */
export interface DetectionsPage {
  readonly detections: readonly DetectionEntry[];
  readonly next: string | null;
  /** How far back a search has come: a step may find none and still have a `next`. */
  readonly searched_to: Time | null;
  /** The same call of the API, for `/bin/sh`; the key is `$WIREWATCH_KEY`. */
  readonly curl: string;
}

/** `GET lab`: what a lab does to its clients. 404 unless it is a lab. */
export interface LabState {
  /** The lab's clock, and the machine's. */
  readonly now: Time;
  readonly real_now: Time;
  readonly seed: string;
  /** In the order in which they were added: the first that matches a request takes effect. */
  readonly faults: readonly {
    readonly id: string;
    /** Its effect and its conditions, as in `lab fault add`. */
    readonly members: Readonly<Record<string, unknown>>;
    readonly fired: number;
    /** Requests to its endpoint since it was added. */
    readonly seen: number;
    /** Null: no limit. */
    readonly left: number | null;
  }[];
  /** Requests that a fault affected, the newest first, at most 100. */
  readonly fired: readonly {
    readonly number: number;
    readonly at: Time;
    readonly fault: string;
    readonly endpoint: string | null;
    /** What the client got; null: no answer. */
    readonly status: number | null;
    readonly user_agent: string | null;
  }[];
}

/**
 * `GET events`: an event stream (text/event-stream). The name of an event says what to read again; its data is `{}`.
 * `end`: the session has ended. At most 20 streams; another one is 503.
 */
export const EVENTS = ['overview', 'windows', 'detections', 'customers', 'jobs', 'end'] as const;
export type EventName = (typeof EVENTS)[number];
