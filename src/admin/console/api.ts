/**
 * The protocol between the console's server and its app: every endpoint, with the type of its answer. It imports only
 * types, so both halves can use it. Customers, detections, history, manual and lab are in api-records.ts.
 *
 * All paths begin with `/console/`. Answers are JSON. Times are UTC text with a `Z`, as in the API. `next` is the
 * `after` of a list's next page; null at its end. Every request but `POST session` needs `Authorization: Bearer SECRET`
 * with the secret of a session. Errors are problems: 400 a parameter is wrong, 401 no session, 403 the request came from another site or the session may only
 * read, 404 not found, 409 the action is not possible (the detail says why and what to do), 429 too many attempts to log
 * in, 503 the database cannot be read now.
 */

import type { ContentType, ExportName } from '../../detection/content-type.ts';
import type { AlertDocument } from '../../health/alert-texts.ts';
import type { FileDocument } from '../../ingest/file-record.ts';
import type { OperationForm } from '../../operations/forms.ts';
import type { Job } from '../../operations/jobs.ts';
import type { OutcomeDocument } from '../../operations/problem.ts';
import type { Status } from '../../operations/status.ts';

export type { FileOutcome, FileReport } from '../../ingest/file-record.ts';
export type { ExportName };

export type Time = string;

export interface Problem {
  readonly title: string;
  readonly status: number;
  readonly detail: string;
}

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

/** `GET operations`: the acts that this session may do, as forms. */
export interface Operations {
  readonly operations: readonly OperationForm[];
}

/** An act that can be done now: `POST /operations/NAME` takes what is given, and what its form asks for. */
export interface Action {
  /** Its name in the table of operations: `window reset`. */
  readonly operation: string;
  readonly given: Readonly<Record<string, string | number | readonly string[]>>;
}

/**
 * The answer of `POST /operations/NAME`, its body the members. With `Prefer: respond-async`, one that may take long
 * answers with its {@link Job}; it goes on when the console is closed. `POST /operations/NAME/question`: what has to be
 * confirmed before.
 */
export type Outcome = OutcomeDocument;
export type { Question } from '../../operations/operation.ts';

/** `GET jobs`: the newest first, at most 20. */
export interface Jobs {
  readonly jobs: readonly Job[];
}

/** `GET overview`: the status (operations/status.ts), with the actions for its alerts and counts by the minute. */
export interface Overview extends Omit<Status, 'alerts'> {
  readonly alerts: readonly AlertState[];
  /** The last 24 hours, oldest first, including the current minute. */
  readonly minutes: Minutes;
}

export interface AlertState extends AlertDocument {
  readonly actions: readonly Action[];
}

export interface Minutes {
  /** The first minute. */
  readonly from: Time;
  /** One number a minute; all arrays are equally long. */
  readonly requests: readonly number[];
  /** Answered with 4xx. */
  readonly refused: readonly number[];
  readonly rows_served: readonly number[];
  readonly rows_ingested: readonly number[];
}

/**
 * `GET windows`: both exports, 90 days including today: the map, the list of windows without data, and the actions that
 * are possible for each.
 */
export interface WindowMap {
  readonly at: Time;
  /** Midnight (UTC) at the beginning of the map. */
  readonly from: Time;
  /** One letter per window, from `from` on, see {@link WindowLetter}. */
  readonly exports: Readonly<
    Record<
      ExportName,
      {
        readonly enabled: boolean;
        readonly windows: string;
        /** Rows of all files that were applied for each window. */
        readonly rows: readonly number[];
      }
    >
  >;
  /** Windows that are failed, missing, abandoned, late or held, the newest first, at most 1000 an export. */
  readonly open: readonly OpenWindow[];
}

/**
 * `d` done; `e` done, with an empty file; `f` failed; `m` missing; `a` abandoned; `l` late: overdue although a later one
 * was read; `w` due, or its file is being read; `n` not due yet; `-` not expected.
 */
export type WindowLetter = 'd' | 'e' | 'f' | 'm' | 'a' | 'l' | 'w' | 'n' | '-';

export interface OpenWindow {
  readonly export: ExportName;
  readonly window_start: Time;
  readonly window_end: Time;
  readonly letter: WindowLetter;
  readonly since: Time | null;
  /** A file waits in the drop folder until the window is reset or accepted. */
  readonly held: boolean;
  readonly reason: string | null;
  readonly actions: readonly Action[];
}

/** `GET window?export=newswire&window_start=2026-11-21T10:10:00Z` */
export interface WindowDetail extends Omit<OpenWindow, 'reason'> {
  /** When its file is due. */
  readonly due_at: Time;
  /** Every file of it, the newest first, at most 20. */
  readonly files: readonly FileEntry[];
  /** New versions of the newest applied file, by stream. */
  readonly streams: readonly {
    readonly subscription_id: number;
    readonly content_type: ContentType;
    readonly rows: number;
  }[];
  /** The first 20 detections of it. */
  readonly detections: readonly DetectionEntry[];
}

/** `GET files?outcome=failed,refused&name=2026&export=newswire&after=…`: the newest first, 50 at a time; `name` is a part of the name. */
export interface FilesPage {
  readonly files: readonly FileEntry[];
  readonly next: string | null;
}

export type FileEntry = FileDocument;

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

/**
 * `GET events`: an event stream (text/event-stream). The name of an event says what to read again; its data is `{}`.
 * `end`: the session has ended. At most 20 streams; another one is 503.
 */
export const EVENTS = ['overview', 'windows', 'detections', 'customers', 'jobs', 'end'] as const;
export type EventName = (typeof EVENTS)[number];
