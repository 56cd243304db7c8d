/**
 * Requests over time, for the console: their number in each minute of the last day, and refusals by key and reason.
 * Counted in memory; usage-keeper.ts has them written.
 */
import { BoundedMap } from '../bounded-map.ts';
import { DAY_MS, MINUTE_MS } from '../time.ts';

const COUNTED = ['requests', 'refused', 'rows_served', 'rows_ingested'] as const;
export type Counted = (typeof COUNTED)[number];

/** A count since the last write. */
export interface MinuteCount {
  /** Minutes since 1970-01-01. */
  readonly minute: number;
  readonly counted: Counted;
  readonly count: number;
}

/** Refused requests of one key on one UTC day, since the last write. */
export interface Refusals {
  /** Days since 1970-01-01. */
  readonly day: number;
  readonly key_id: string;
  /** The error code. */
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
  /** Counts a refused request that named this key, which must exist: a request can invent key ids. */
  refuse(keyId: string, code: string): void;
  /** Removes and returns the counts: the caller writes them or gives them back. */
  take(): UnwrittenCounts;
  giveBack(counts: UnwrittenCounts): void;
}

/** A day of 1,440 complete minutes, and the current one. */
export const MINUTES_KEPT = DAY_MS / MINUTE_MS + 1;
export const REFUSAL_DAYS_KEPT = 7;

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
