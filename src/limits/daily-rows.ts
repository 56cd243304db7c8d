/**
 * Rows read by each account and key, by UTC day. Counted in memory;
 * usage-keeper.ts has them written.
 *
 * The counts of a few days are kept: if the clock is set back, or was ahead for a while, the rows that were already used
 * on that day still count.
 */
import { type Static, Type } from '@sinclair/typebox';
import { DAY_MS } from '../time.ts';

export const ROW_HOLDERS = ['key', 'account'] as const;
export type RowHolder = (typeof ROW_HOLDERS)[number];

/** One count as stored. */
export const UsedRows = Type.Object({
  /** Days since 1970-01-01, UTC. */
  day: Type.Integer(),
  holder: Type.Union([Type.Literal('key'), Type.Literal('account')]),
  /** For an account: {@link accountUsageId}; for a key: its id, which is never used again. */
  id: Type.String(),
  rows: Type.Integer({ minimum: 0 }),
});
export type UsedRows = Static<typeof UsedRows>;

/**
 * The id under which the rows of an account are counted. An account that was removed and added again has the same id but
 * another `created_at`, so it starts at zero, and the running appliance need not know of the removal.
 */
export function accountUsageId(account: { readonly id: string; readonly created_at: number }): string {
  return `${account.id}@${account.created_at}`;
}

export interface DailyRows {
  /** Rows read on the day of `nowMs`. */
  used(holder: RowHolder, id: string, nowMs: number): number;
  add(holder: RowHolder, id: string, rows: number, nowMs: number): void;
  /** The counts of the days that are kept. */
  all(): UsedRows[];
}

/** Today and its neighbours: more would only help if the clock was wrong by days. */
const DAYS_MAX = 3;

/** @param stored the counts of earlier runs */
export function createDailyRows(stored: readonly UsedRows[] = []): DailyRows {
  // Bounded by the number of accounts and keys: only verified keys read rows.
  const days = new Map<number, Map<string, UsedRows>>();
  for (const count of stored) countsOf(count.day).set(nameOf(count.holder, count.id), { ...count });

  function countsOf(day: number): Map<string, UsedRows> {
    let counts = days.get(day);
    if (counts === undefined) {
      counts = new Map();
      days.set(day, counts);
    }
    return counts;
  }

  function forgetDays(today: number): void {
    const farthestFirst = [...days.keys()].sort((a, b) => Math.abs(b - today) - Math.abs(a - today));
    for (const day of farthestFirst.slice(0, -DAYS_MAX)) days.delete(day);
  }

  return {
    used: (holder, id, nowMs) => days.get(dayOf(nowMs))?.get(nameOf(holder, id))?.rows ?? 0,
    add(holder, id, rows, nowMs) {
      if (rows === 0) return;
      const day = dayOf(nowMs);
      const isNewDay = !days.has(day);
      const counts = countsOf(day);
      if (isNewDay) forgetDays(day);
      const name = nameOf(holder, id);
      const count = counts.get(name) ?? { day, holder, id, rows: 0 };
      count.rows += rows;
      counts.set(name, count);
    },
    all: () => [...days.values()].flatMap((counts) => [...counts.values()]),
  };
}

/** Days since 1970-01-01, UTC. */
export function dayOf(ms: number): number {
  return Math.floor(ms / DAY_MS);
}

function nameOf(holder: RowHolder, id: string): string {
  return `${holder}:${id}`;
}
