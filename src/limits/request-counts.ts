/**
 * What the console shows of requests over time: how many there were in each minute of the last day, and which keys were
 * refused and why. Counted in memory; usage-keeper.ts has it written.
 */
import { BoundedMap } from '../bounded-map.ts';
import { DAY_MS, MINUTE_MS } from '../time.ts';

export const COUNTED = ['requests', 'refused', 'rows_served', 'rows_ingested'] as const;
export type Counted = (typeof COUNTED)[number];

/** What was counted since the last write. */
export interface MinuteCount {
  /** Minutes since 1970-01-01. */
  readonly minute: number;
  readonly counted: Counted;
  readonly count: number;
}

/** Requests with one key that were refused on one UTC day, since the last write. */
export interface Refusals {
  /** Days since 1970-01-01. */
  readonly day: number;
  /** As the request named it: the key need not be there. */
  readonly key_id: string;
  /** Of the problem document. */
  readonly code: string;
  readonly count: number;
  /** Epoch milliseconds. */
  readonly last_at: number;
}

export interface UnwrittenCounts {
  readonly minutes: readonly MinuteCount[];
  readonly refusals: readonly Refusals[];
}

export interface RequestCounts {
  add(counted: Counted, count: number): void;
  /** A request that named this key was refused. */
  refuse(keyId: string, code: string): void;
  /** What was counted since it was asked for last: whoever takes it writes it, or gives it back. */
  take(): UnwrittenCounts;
  giveBack(counts: UnwrittenCounts): void;
}

/** How long they are kept. A day of 1,440 whole minutes, and the one that is not over. */
export const MINUTES_KEPT = DAY_MS / MINUTE_MS + 1;
export const REFUSAL_DAYS_KEPT = 7;
/** Ids of keys can be made up: so many are noted between two writes. */
const REFUSALS_MAX = 1000;

export function createRequestCounts(now: () => number): RequestCounts {
  let minutes = newMinutes();
  let refusals = new Map<string, Refusals>();

  function addMinute({ minute, counted, count }: MinuteCount): void {
    const name = `${minute} ${counted}`;
    minutes.set(name, { minute, counted, count: (minutes.get(name)?.count ?? 0) + count });
  }

  function addRefusals(more: Refusals): void {
    const name = `${more.day} ${more.key_id} ${more.code}`;
    const known = refusals.get(name);
    if (known === undefined && refusals.size >= REFUSALS_MAX) return;
    const last_at = Math.max(known?.last_at ?? 0, more.last_at);
    refusals.set(name, { ...more, count: (known?.count ?? 0) + more.count, last_at });
  }

  return {
    add: (counted, count) => addMinute({ minute: Math.floor(now() / MINUTE_MS), counted, count }),
    refuse(key_id, code) {
      const last_at = now();
      addRefusals({ day: Math.floor(last_at / DAY_MS), key_id, code, count: 1, last_at });
    },
    take() {
      const taken = { minutes: [...minutes.values()], refusals: [...refusals.values()] };
      minutes = newMinutes();
      refusals = new Map();
      return taken;
    },
    giveBack(counts) {
      for (const count of counts.minutes) addMinute(count);
      for (const more of counts.refusals) addRefusals(more);
    },
  };
}

/** Where nothing can be written for a day, the oldest go. */
function newMinutes(): Map<string, MinuteCount> {
  return new BoundedMap(MINUTES_KEPT * COUNTED.length);
}
