/**
 * What the console's server and its app say to each other: every answer as a type, and every endpoint. Nothing else
 * defines it, and neither file imports anything but types, so both halves can.
 *
 * What is listed one by one (customers, detections, history, manual) stands in api-records.ts.
 *
 * All paths begin with `/console/`. Answers are JSON. Times are UTC text with a `Z`, as the contract writes them.
 * `next` is what to give as `after` for the rest of a list; null when there is no more. Every request but `POST
 * session` needs the cookie of a session. Errors are problems: 400 a parameter is wrong, 401 there is no session (any
 * more), 403 the request came from another site or the session may only read, 404 there is no such thing, 409 the action
 * could not be done (the detail says why and what to do), 429 too many attempts to log in, 503 the database cannot be
 * read now.
 */

import type { JobKind } from './action-table.ts';
import type { DetectionEntry } from './api-records.ts';

export type Time = string;
export type ExportName = 'newswire' | 'imagewire';

export interface Problem {
  readonly title: string;
  readonly status: number;
  readonly detail: string;
}

/**
 * `POST session` {token}: redeems a link (`/#login=TOKEN`) and sets the cookie; 401 when it was used or has expired.
 * `GET session`: the session. `POST session/end` {}: ends it.
 */
export interface Session {
  readonly name: string;
  readonly read_only: boolean;
  readonly expires_at: Time;
  readonly version: string;
  /** Of an appliance with sample data. */
  readonly demo: boolean;
  /** Of a lab: then there is `GET lab`. */
  readonly lab: boolean;
  /** The clock of the server. */
  readonly now: Time;
  /** Where clients reach the API. */
  readonly base_url: string;
}

/** An action that can be done now, with the body that `POST actions/<kind>` takes. */
export type Action =
  | { readonly kind: 'ingest-pause' | 'ingest-resume' | 'backup' | 'scrub' }
  | {
      readonly kind: 'window-reset' | 'window-accept' | 'window-expect';
      readonly export: ExportName;
      readonly window_start: Time;
    }
  /** Files first applied in `[from, to)`; without either, all. */
  | { readonly kind: 'ingest-replay'; readonly from?: Time; readonly to?: Time }
  | {
      readonly kind: 'key-create';
      readonly account: string;
      readonly name: string;
      readonly scopes: readonly string[];
      /** As the command takes them: `7001`, `7002:text`. */
      readonly subscriptions: readonly string[];
      readonly expires_at?: Time;
      readonly allow_addresses?: readonly string[];
      readonly daily_rows?: number;
    }
  /** `overlap`: how long the old key goes on, such as `7d`, `12h`, `30m`, `0`; 7d where it is left out. */
  | { readonly kind: 'key-rotate'; readonly id: string; readonly overlap?: string }
  | { readonly kind: 'key-revoke'; readonly id: string }
  | { readonly kind: 'account-suspend' | 'account-resume'; readonly id: string };

/**
 * `POST actions/<kind>`, the body an {@link Action} without `kind`. 409 when it cannot be done.
 *
 * What takes long is a job: it goes on when the console is closed, and `GET jobs` tells how far it is.
 */
export interface ActionResult {
  /** What was done, in a sentence. */
  readonly text: string;
  /** A new key, this one time. */
  readonly key?: { readonly id: string; readonly key: string };
  readonly job?: Job;
}

/** `GET jobs`: those begun from consoles since the start of the appliance, the newest first, at most 20. */
export interface Job {
  readonly id: number;
  readonly kind: JobKind;
  /** What it is done to: `newswire 2026-11-21T10:10:00Z`; empty where that is the appliance. */
  readonly subject: string;
  readonly by: string;
  readonly started_at: Time;
  readonly state: 'running' | 'done' | 'failed';
  /** How far it is, or what came of it, in a sentence; empty at the beginning. */
  readonly text: string;
}

export interface Jobs {
  readonly jobs: readonly Job[];
}

/** `GET overview` */
export interface Overview {
  readonly at: Time;
  readonly version: string;
  readonly health: {
    readonly status: 'ok' | 'degraded';
    readonly paused_since: Time | null;
    /** Why it is as it is, in a sentence. */
    readonly reason: string;
  };
  readonly exports: Readonly<Record<ExportName, ExportState>>;
  readonly alerts: readonly AlertState[];
  readonly ingest: IngestState;
  /** Files of the last day that failed, were refused or are held, the newest first, at most 20. */
  readonly not_applied: readonly FileEntry[];
  /** Of the last 24 hours, oldest first; the last minute is not over yet. */
  readonly minutes: Minutes;
  readonly disks: readonly { readonly folder: string; readonly free_bytes: number; readonly bytes: number }[];
  readonly database: {
    readonly bytes: number;
    readonly wal_bytes: number;
    readonly log_bytes: number;
    /** Rows of all streams: versions of detections. */
    readonly versions: number;
    /** Why nothing can be read of it now: then exports and files are empty. */
    readonly unreadable: string | null;
  };
  /** Null where none is scheduled. */
  readonly backup: {
    readonly folder: string;
    readonly newest_at: Time | null;
    readonly rehearsed_at: Time | null;
  } | null;
  /** Null: not yet. */
  readonly scrub: {
    readonly at: Time;
    readonly findings: number;
    readonly not_compared: string | null;
  } | null;
  readonly keys: {
    readonly active: number;
    readonly used_in_last_day: number;
    readonly last_used_at: Time | null;
    /** Active keys whose follower is behind, see {@link Follower}. */
    readonly behind: number;
  };
}

export interface ExportState {
  readonly enabled: boolean;
  /** End of the newest window that was read. */
  readonly newest_done: Time | null;
  /** How long after its end that window was read, in seconds; null where none is. */
  readonly newest_late_seconds: number | null;
  /** Windows of the last 90 days, before the newest that was read, that brought nothing, by why. */
  readonly not_read: {
    readonly failed: number;
    readonly missing: number;
    readonly abandoned: number;
    readonly not_arrived: number;
  };
}

export interface AlertState {
  readonly name: string;
  readonly page_worthy: boolean;
  readonly since: Time;
  readonly detail: string;
  readonly what_to_do: string;
  readonly actions: readonly Action[];
}

export interface IngestState {
  readonly drop: string;
  /** Export files that wait in the drop folder, and the first names. */
  readonly waiting: number;
  readonly waiting_files: readonly string[];
  readonly reading: { readonly file: string; readonly rows: number } | null;
  /** Backfills that are applied bit by bit. */
  readonly applying: readonly {
    readonly file: string;
    readonly rows: number;
    readonly rows_applied: number;
  }[];
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
 * `GET windows`: both exports, 90 days, as far as today reaches. One query gives the map, the list of windows that did
 * not bring anything, and what can be done about each.
 */
export interface WindowMap {
  readonly at: Time;
  /** Midnight (UTC) with which the map begins. */
  readonly from: Time;
  /** One letter a window, ten minutes each, from `from` on, see {@link WindowLetter}. */
  readonly exports: Readonly<
    Record<
      ExportName,
      {
        readonly enabled: boolean;
        readonly windows: string;
        /** Rows of the file of each window, as many as letters; 0 where there is none. */
        readonly rows: readonly number[];
      }
    >
  >;
  /** Windows that are failed, missing, abandoned, late or held, the newest first, at most 1000 an export. */
  readonly open: readonly OpenWindow[];
}

/**
 * `d` done; `e` done, with an empty file; `f` failed; `m` missing; `a` abandoned; `l` late: overdue though a later one was
 * read; `w` waited for: due, or its file is being read; `n` not due yet; `-` not expected.
 */
export type WindowLetter = 'd' | 'e' | 'f' | 'm' | 'a' | 'l' | 'w' | 'n' | '-';

export interface OpenWindow {
  readonly export: ExportName;
  readonly window_start: Time;
  readonly window_end: Time;
  readonly letter: WindowLetter;
  readonly since: Time | null;
  /** A file waits in held/. */
  readonly held: boolean;
  readonly reason: string | null;
  readonly actions: readonly Action[];
}

/** `GET window?export=newswire&window_start=2026-11-21T10:10:00Z` */
export interface WindowDetail {
  readonly export: ExportName;
  readonly window_start: Time;
  readonly window_end: Time;
  /** When its file is due. */
  readonly due_at: Time;
  readonly letter: WindowLetter;
  readonly since: Time | null;
  readonly held: boolean;
  /** Every file that came for it, the newest first, at most 20. */
  readonly files: readonly FileEntry[];
  /** New versions that the newest applied file brought, by stream. */
  readonly streams: readonly {
    readonly subscription_id: number;
    readonly content_type: 'text' | 'image';
    readonly rows: number;
  }[];
  /** Of the detections that came of it: the first 20; they can be asked for by their ids. */
  readonly detections: readonly DetectionEntry[];
  readonly actions: readonly Action[];
}

/** `GET files?outcome=failed,held&name=2026&export=newswire&after=…`: the newest first, 50 at a time; `name` is a part of the name. */
export interface FilesPage {
  readonly files: readonly FileEntry[];
  readonly next: string | null;
}

export type FileOutcome = 'applying' | 'applied' | 'repeated' | 'failed' | 'refused' | 'held';

export interface FileEntry {
  readonly number: number;
  readonly file: string;
  readonly outcome: FileOutcome;
  readonly export: ExportName | null;
  readonly window_start: Time | null;
  /** Of a backfill. */
  readonly label: string | null;
  readonly taken_at: Time;
  readonly finished_at: Time | null;
  /** Where it is now, in the drop folder. */
  readonly destination: string | null;
  readonly sha256: string | null;
  readonly bytes: number;
  readonly report: FileReport;
}

/** What became of its rows; a member that is not known is absent. */
export interface FileReport {
  readonly rows?: number;
  readonly created?: number;
  readonly updated?: number;
  readonly rescored?: number;
  readonly unchanged?: number;
  /** Rows that were left out because they break the format. */
  readonly bad_rows?: number;
  /** Rows that were left out since there is no such stream, by `7001:text`. */
  readonly unknown_rows?: Readonly<Record<string, number>>;
  readonly ignored_columns?: readonly string[];
  readonly names_without_id?: number;
  /** Why it failed, was refused or is held. */
  readonly reason?: string;
  /** The first errors, and how many there are in all. */
  readonly errors?: readonly {
    readonly line: number;
    readonly column: string | null;
    readonly expected: string;
    readonly value: unknown;
  }[];
  readonly errors_total?: number;
  readonly error_groups?: readonly {
    readonly column: string | null;
    readonly expected: string;
    readonly count: number;
    readonly lines: readonly number[];
    readonly value: unknown;
  }[];
}

/**
 * `GET events`: an event stream (text/event-stream). Each event is named for what should be asked for again, and its data
 * is `{}`; `end` tells that the session has ended. At most 20 streams; another one is 503.
 */
export const EVENTS = ['overview', 'windows', 'detections', 'customers', 'jobs', 'end'] as const;
export type EventName = (typeof EVENTS)[number];
