/**
 * The protocol between the console's server and its app: every endpoint, with the type of its answer. It imports only
 * types, so both halves can use it. Customers, detections, history, manual and lab are in api-records.ts.
 *
 * All paths begin with `/console/`. Answers are JSON. Times are UTC text with a `Z`, as in the contract. `next` is the
 * `after` of a list's next page; null at its end. Every request but `POST session` needs `Authorization: Bearer SECRET`
 * with the secret of a session. Errors are problems: 400 a parameter is wrong, 401 no session, 403 the request came from another site or the session may only
 * read, 404 not found, 409 the action is not possible (the detail says why and what to do), 429 too many attempts to log
 * in, 503 the database cannot be read now.
 */

import type { ContentType, ExportName } from '../../detection/content-type.ts';
import type { AlertDocument } from '../../health/alert-texts.ts';
import type { FileDocument } from '../../ingest/file-record.ts';
import type { IngestStatus } from '../../ingest/ingest-status.ts';
import type { Job } from '../../operations/jobs.ts';
import type { Reach } from '../../windows/reach.ts';
import type { DetectionEntry } from './api-records.ts';

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
      /** As in the command: `7001`, `7002:text`. */
      readonly subscriptions: readonly string[];
      readonly expires_at?: Time;
      readonly allow_addresses?: readonly string[];
      readonly daily_rows?: number;
    }
  /** `overlap`: how long the old key continues to work, such as `7d`, `12h`, `30m`, `0`; default 7d. */
  | { readonly kind: 'key-rotate'; readonly id: string; readonly overlap?: string }
  | { readonly kind: 'key-revoke'; readonly id: string }
  | { readonly kind: 'account-suspend' | 'account-resume'; readonly id: string };

/**
 * `POST actions/<kind>`, the body an {@link Action} without `kind`. 409 when it is not possible.
 *
 * A long action is a job: it continues when the console is closed, and `GET jobs` has its progress.
 */
export interface ActionResult {
  /** What was done, in a sentence. */
  readonly text: string;
  /** A new key, shown only once. */
  readonly key?: { readonly id: string; readonly key: string };
  readonly job?: Job;
}

/** `GET jobs`: the newest first, at most 20. */
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
    /** The reason, in a sentence. */
    readonly reason: string;
  };
  readonly exports: Readonly<Record<ExportName, ExportState>>;
  readonly alerts: readonly AlertState[];
  readonly ingest: Pick<IngestStatus, 'drop' | 'waiting' | 'waiting_files' | 'reading' | 'applying'>;
  /** Files of the last day that failed, were refused or are held, the newest first, at most 20. */
  readonly not_applied: readonly FileEntry[];
  /** The last 24 hours, oldest first, including the current minute. */
  readonly minutes: Minutes;
  readonly disks: readonly { readonly folder: string; readonly free_bytes: number; readonly bytes: number }[];
  readonly database: {
    readonly bytes: number;
    readonly wal_bytes: number;
    readonly log_bytes: number;
    /** Rows of all streams: versions of detections. */
    readonly versions: number;
    /** Why it cannot be read now: then exports and files are empty. */
    readonly unreadable: string | null;
  };
  /** Null where none is scheduled. */
  readonly backup: {
    readonly folder: string;
    readonly newest_at: Time | null;
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
    /** Active keys with a follower that is behind, see {@link Follower}. */
    readonly behind: number;
  };
}

export interface ExportState extends Reach {
  readonly enabled: boolean;
  /** How long after its end the newest window was read, in seconds; null without one. */
  readonly newest_late_seconds: number | null;
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
        /** Rows of each window's file; 0 without one. */
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
  /** A file waits in held/. */
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

/** `GET files?outcome=failed,held&name=2026&export=newswire&after=…`: the newest first, 50 at a time; `name` is a part of the name. */
export interface FilesPage {
  readonly files: readonly FileEntry[];
  readonly next: string | null;
}

export type FileEntry = FileDocument;

/**
 * `GET events`: an event stream (text/event-stream). The name of an event says what to read again; its data is `{}`.
 * `end`: the session has ended. At most 20 streams; another one is 503.
 */
export const EVENTS = ['overview', 'windows', 'detections', 'customers', 'jobs', 'end'] as const;
export type EventName = (typeof EVENTS)[number];
