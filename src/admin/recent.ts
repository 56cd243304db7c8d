/** Rows of each of the last sixty minutes, for the status page: counted in memory, forgotten at a stop. */
import { MINUTE_MS, type Now } from '../time.ts';

export const MINUTES = 60;

export type RowKind = 'served' | 'ingested';

export interface Recent {
  add(kind: RowKind, rows: number): void;
  /** Of each minute, oldest first; the last one is not over yet. */
  minutes(kind: RowKind): number[];
}

export function createRecent(now: Now): Recent {
  const counts = { served: new Map<number, number>(), ingested: new Map<number, number>() };
  const minute = () => Math.floor(now() / MINUTE_MS);
  return {
    add(kind, rows) {
      const of = counts[kind];
      const current = minute();
      of.set(current, (of.get(current) ?? 0) + rows);
      if (of.size <= MINUTES) return;
      // Others than the last sixty are there after a clock was set back, too.
      for (const at of of.keys()) if (at <= current - MINUTES || at > current) of.delete(at);
    },
    minutes(kind) {
      const last = minute();
      return Array.from({ length: MINUTES }, (_, index) => counts[kind].get(last - MINUTES + 1 + index) ?? 0);
    },
  };
}
