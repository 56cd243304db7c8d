/** Requests and refusals over time, for the console. Counted in memory; usage.ts has them written. */
import { type Static, Type } from '@sinclair/typebox';
import { BoundedMap } from '../bounded-map.ts';
import { getOrMake } from '../get-or-make.ts';
import { DAY_MS, HOUR_MS, parseInstant, SECOND_MS } from '../time.ts';

/** Counts of an hour; of older hours, of a step (see {@link STEPS}). */
export interface HourCounts {
  /** Hours since 1970-01-01: the first one. */
  readonly hour: number;
  /** Null: of this machine, with the requests of no key. */
  readonly key_id: string | null;
  requests: number;
  refused: number;
  /** Of this machine: how far its copy, or as a standby it itself, was behind at most. Absent: there is no copy. */
  behind_seconds?: number;
  /** Of a key: the position of the last change stream cursor given to it. Absent: it got none. */
  position?: number;
}

export const Refusals = Type.Object({
  /** Days since 1970-01-01. */
  day: Type.Integer(),
  key_id: Type.String(),
  code: Type.String(),
  count: Type.Integer({ minimum: 0 }),
  /** Epoch milliseconds. */
  last_at: Type.Integer(),
});
export type Refusals = Static<typeof Refusals>;

/** As fine as the console's curves: hours of the last day, six hours of the last week, days of the last 90. */
const STEPS = [
  { age: 24, hours: 1 },
  { age: 7 * 24, hours: 6 },
  { age: 90 * 24, hours: 24 },
] as const;
/** 75 keys that are used around the clock for 90 days; with more keys, the oldest counts go first. */
const COUNTS_MAX = 10_000;
const REFUSAL_DAYS_KEPT = 7;

export type RequestCounts = ReturnType<typeof createRequestCounts>;

export interface Answered {
  readonly status: number;
  /** Null: no key was verified. */
  readonly key_id: string | null;
  readonly position?: number | undefined;
}

export function createRequestCounts(
  now: () => number,
  stored: { readonly hours: readonly HourCounts[]; readonly refusals: readonly Refusals[] },
) {
  const hourNow = () => Math.floor(now() / HOUR_MS);
  let coarsenedAt = hourNow();
  let hours = coarsened(stored.hours, coarsenedAt);
  const refusals = new Map(stored.refusals.map((refusal) => [nameOf(refusal), { ...refusal }]));

  const countsOf = (key_id: string | null) => countsIn(hours, hourNow(), key_id);

  return {
    answered({ status, key_id, position }: Answered): void {
      const all = countsOf(null);
      all.requests += 1;
      if (status >= 400 && status < 500) all.refused += 1;
      if (key_id === null) return;
      const own = countsOf(key_id);
      own.requests += 1;
      if (position !== undefined) own.position = position;
    },
    /** @param copy null: none is kept or followed */
    behind(copy: { readonly behind_since: string | null } | null): void {
      if (copy === null) return;
      const counts = countsOf(null);
      const sinceMs = parseInstant(copy.behind_since ?? '') ?? now();
      const seconds = Math.floor(Math.max(0, now() - sinceMs) / SECOND_MS);
      counts.behind_seconds = Math.max(counts.behind_seconds ?? 0, seconds);
    },
    /** Counts a refused request that named this key, which must exist: a request can invent key ids. */
    refuse(key_id: string, code: string): void {
      countsOf(key_id).refused += 1;
      const nowMs = now();
      const none = { day: Math.floor(nowMs / DAY_MS), key_id, code, count: 0, last_at: 0 };
      const refused = getOrMake(refusals, nameOf(none), () => none);
      refused.count += 1;
      refused.last_at = Math.max(refused.last_at, nowMs);
    },
    /** The counts of 90 days, and the refusals of the last seven. */
    history() {
      const nowMs = now();
      // Once an hour: with 10,000 counts it takes ten milliseconds or more.
      const hour = hourNow();
      if (hour !== coarsenedAt) hours = coarsened([...hours.values()], hour);
      coarsenedAt = hour;
      const today = Math.floor(nowMs / DAY_MS);
      // Also those in the future, from a clock that was ahead.
      for (const [name, { day }] of refusals)
        if (Math.abs(day - today) >= REFUSAL_DAYS_KEPT) refusals.delete(name);
      return { hours: [...hours.values()], refusals: [...refusals.values()] };
    },
  };
}

/** Joins the counts of each step, and forgets those that are too old, or too many. @returns by hour and key, oldest first */
function coarsened(all: readonly HourCounts[], nowHour: number): BoundedMap<string, HourCounts> {
  const joined = new BoundedMap<string, HourCounts>(COUNTS_MAX);
  for (const counts of all.toSorted((a, b) => a.hour - b.hour)) {
    const step = STEPS.find(({ age }) => Math.abs(nowHour - counts.hour) < age);
    if (step === undefined) continue;
    const sum = countsIn(joined, counts.hour - (counts.hour % step.hours), counts.key_id);
    sum.requests += counts.requests;
    sum.refused += counts.refused;
    if (counts.position !== undefined) sum.position = counts.position;
    if (counts.behind_seconds !== undefined)
      sum.behind_seconds = Math.max(sum.behind_seconds ?? 0, counts.behind_seconds);
  }
  return joined;
}

const countsIn = (all: Map<string, HourCounts>, hour: number, key_id: string | null): HourCounts =>
  getOrMake(all, `${hour} ${key_id}`, () => ({ hour, key_id, requests: 0, refused: 0 }));

const nameOf = ({ day, key_id, code }: Pick<Refusals, 'day' | 'key_id' | 'code'>): string =>
  `${day} ${key_id} ${code}`;
