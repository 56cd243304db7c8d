/** Requests and refusals over time, for the console. Counted in memory; usage.ts has them written. */
import { type Static, Type } from '@sinclair/typebox';
import { BoundedMap } from '../bounded-map.ts';
import { DAY_MS, MINUTE_MS } from '../time.ts';

const Count = Type.Integer({ minimum: 0 });

export const MinuteCounts = Type.Object({
  /** Minutes since 1970-01-01. */
  minute: Type.Integer(),
  requests: Count,
  refused: Count,
  rows_served: Count,
  rows_ingested: Count,
});
type MinuteCounts = Static<typeof MinuteCounts>;

export const Refusals = Type.Object({
  /** Days since 1970-01-01. */
  day: Type.Integer(),
  key_id: Type.String(),
  code: Type.String(),
  count: Count,
  /** Epoch milliseconds. */
  last_at: Type.Integer(),
});
export type Refusals = Static<typeof Refusals>;

/** A day of 1,440 complete minutes, and the current one. */
export const MINUTES_KEPT = DAY_MS / MINUTE_MS + 1;
const REFUSAL_DAYS_KEPT = 7;

export type RequestCounts = ReturnType<typeof createRequestCounts>;

export function createRequestCounts(
  now: () => number,
  stored: { readonly minutes: MinuteCounts[]; readonly refusals: Refusals[] } = { minutes: [], refusals: [] },
) {
  const minutes = new BoundedMap<number, MinuteCounts>(MINUTES_KEPT);
  for (const counts of stored.minutes) minutes.set(counts.minute, { ...counts });
  const refusals = new Map(stored.refusals.map((refusal) => [nameOf(refusal), { ...refusal }]));

  return {
    add(counted: Exclude<keyof MinuteCounts, 'minute'>, count: number): void {
      const minute = Math.floor(now() / MINUTE_MS);
      const known = minutes.get(minute) ?? {
        minute,
        requests: 0,
        refused: 0,
        rows_served: 0,
        rows_ingested: 0,
      };
      known[counted] += count;
      if (!minutes.has(minute)) minutes.set(minute, known);
    },
    /** Counts a refused request that named this key, which must exist: a request can invent key ids. */
    refuse(key_id: string, code: string): void {
      const nowMs = now();
      const refused = { day: Math.floor(nowMs / DAY_MS), key_id, code };
      const known = refusals.get(nameOf(refused)) ?? { ...refused, count: 0, last_at: 0 };
      known.count += 1;
      known.last_at = Math.max(known.last_at, nowMs);
      refusals.set(nameOf(known), known);
    },
    /** The minutes of the last day, and the refusals of the last seven. */
    history() {
      const nowMs = now();
      const today = Math.floor(nowMs / DAY_MS);
      // Also those in the future, from a clock that was ahead.
      for (const [name, { day }] of refusals)
        if (Math.abs(day - today) >= REFUSAL_DAYS_KEPT) refusals.delete(name);
      const last = Math.floor(nowMs / MINUTE_MS);
      const kept = [...minutes.values()].filter(({ minute }) => Math.abs(minute - last) < MINUTES_KEPT);
      return { minutes: kept, refusals: [...refusals.values()] };
    },
  };
}

function nameOf({ day, key_id, code }: Pick<Refusals, 'day' | 'key_id' | 'code'>): string {
  return `${day} ${key_id} ${code}`;
}
