/** The second half of api.ts: customers, detections, history, manual, lab. */
import type { accountDocument } from '../../auth/accounts.ts';
import type { AuditedChange } from '../../auth/audit.ts';
import type { keyDocument } from '../../auth/keys.ts';
import type { subscriptionDocument } from '../../auth/subscriptions.ts';
import type { FollowerState } from '../../operations/followers.ts';
import type { Action, DetectionEntry, Time } from './api.ts';

/** `GET customers` */
export interface Customers {
  readonly at: Time;
  readonly accounts: readonly AccountEntry[];
}

export interface AccountEntry extends Omit<ReturnType<typeof accountDocument>, 'daily_rows'> {
  /** Its own allowance; null: that of the settings. */
  readonly allowance: number | null;
  /** The allowance that holds, and what it has read today. */
  readonly daily_rows: number;
  readonly rows_today: number;
  readonly subscriptions: readonly (ReturnType<typeof subscriptionDocument> & {
    readonly actions: readonly Action[];
  })[];
  readonly keys: readonly KeyEntry[];
  readonly actions: readonly Action[];
}

export interface KeyEntry extends Omit<ReturnType<typeof keyDocument>, 'subscriptions'> {
  /** `7001`, `7002:text` */
  readonly subscriptions: readonly string[];
  readonly last_used_at: Time | null;
  readonly rows_today: number;
  /** Refused requests of the last seven days, by reason, the most frequent first. */
  readonly refused: readonly { readonly code: string; readonly count: number; readonly last_at: Time }[];
  /** Null: it never followed the change stream. */
  readonly follower: Follower | null;
  readonly actions: readonly Action[];
}

export interface Follower extends FollowerState {
  /** When its key was last used. */
  readonly silent_since: Time;
}

/**
 * `GET detections/live?after=…` with the filters of the API (`subscription_id`, `content_type`, `publisher_id`, `domain`,
 * `min_band`, `band`, `min_score`, `print`, `source_id`, `article_id`, …, `limit`): the newest versions, newest first; with
 * `after`, only newer ones. `next` is never null here: it is the `after` for the next event `detections`.
 *
 * `GET detections/search?from=2026-11-01&to=2026-12-01` (days, `to` not included, or times) with the same filters: current
 * detections, by days from the newest to the oldest. One step reads a bounded number of rows: it may find none and still
 * have a `next`. `searched_to`: how far back it has searched.
 */
export interface DetectionsPage {
  readonly detections: readonly DetectionEntry[];
  readonly next: string | null;
  readonly searched_to: Time | null;
  /** The same call of the API, for `/bin/sh`; the key is `$WIREWATCH_KEY`. */
  readonly curl: string;
}

/** `GET detections/one?id=t.7001.1.2&after=…` */
export interface DetectionDetail {
  /** The answer to `GET /v1/detections/{id}`. */
  readonly current: DetectionEntry;
  /** The versions that were found, the newest first. */
  readonly versions: readonly {
    readonly version: number;
    /** When it was delivered; null until that is recorded. */
    readonly at: Time | null;
    readonly detection: DetectionEntry;
    /** The dotted paths that differ from the version before it in this list; empty for the first. */
    readonly changed: readonly string[];
  }[];
  /** There may be more versions: old ones are found by a search, in bounded steps. */
  readonly next: string | null;
  readonly account: { readonly id: string; readonly name: string } | null;
  readonly curl: string;
}

/**
 * `GET history/audit?from=&to=&actor=&subject=key&id=&after=…`: who changed what, the newest first, 50 at a time. `from`
 * and `to` (not included) are days or times. `actor` (the user, the one behind sudo or the
 * name of a link) and `id` must match exactly.
 */
export interface AuditPage {
  readonly entries: readonly AuditEntry[];
  readonly next: string | null;
}

export type AuditEntry = AuditedChange;

/** `GET history/operations?from=&to=&kind=file&after=…`: the log of detections, the newest first, 50 at a time. */
export interface OperationsPage {
  readonly entries: readonly {
    readonly at: Time;
    readonly entry: number;
    readonly kind: string;
    /** The members of its operation, such as file and name. */
    readonly operation: Readonly<Record<string, unknown>>;
  }[];
  readonly next: string | null;
}

/** `GET manual`: the topics. `GET manual?search=word`: those that contain every word. */
export interface ManualTopics {
  readonly topics: readonly {
    readonly name: string;
    readonly title: string;
    /** The text around the first hit of a search; empty without one. */
    readonly excerpt: string;
  }[];
}

/** `GET manual/<name>`. Part of the program, so `html` is safe. */
export interface ManualTopic {
  readonly name: string;
  readonly title: string;
  readonly html: string;
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
