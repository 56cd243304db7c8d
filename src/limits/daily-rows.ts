/**
 * How many rows each account and each key has read, by UTC day (contract: Limits, Daily row allowance). Counted in
 * memory; usage-keeper.ts has it written.
 *
 * Each day of the clock has counts of its own, and those of the few days next to it are kept. So a clock that is set
 * back finds what the earlier day had used already, one that was ahead for a while leaves today's counts as they
 * were, and no day is given out twice.
 */
import { DAY_MS } from '../time.ts';

export type RowHolder = 'account' | 'key';

/** One count, as it is stored. */
export interface UsedRows {
  /** Days since 1970-01-01, UTC. */
  readonly day: number;
  readonly holder: RowHolder;
  /** Of an account: {@link accountUsageId}; of a key: its id, which no other key ever gets. */
  readonly id: string;
  readonly rows: number;
}

/**
 * The name under which an account's rows are counted. An account that was removed and added again has the id of
 * before, but another `created_at`, and so starts with nothing used. A running appliance needs no word of a removal,
 * and a count that it still writes for the removed account does no harm: it goes with its day.
 */
export function accountUsageId({
  id,
  created_at,
}: {
  readonly id: string;
  readonly created_at: number;
}): string {
  return `${id}@${created_at}`;
}

export interface DailyRows {
  /** Rows read on the day of `nowMs`. */
  used(holder: RowHolder, id: string, nowMs: number): number;
  add(holder: RowHolder, id: string, rows: number, nowMs: number): void;
  /** Counts that are not written yet. */
  unwritten(): UsedRows[];
  /** Takes note that these were written; what has grown since stays unwritten. */
  markWritten(counts: readonly UsedRows[]): void;
  /** The days that are kept, here and in the store. */
  days(): number[];
}

/** The clock's own day and its neighbours on both sides: more would only be kept for clocks that err by days. */
const DAYS_MAX = 3;

interface Count {
  readonly day: number;
  readonly holder: RowHolder;
  readonly id: string;
  rows: number;
}

/** @param stored what was counted before this start */
export function createDailyRows(stored: readonly UsedRows[] = []): DailyRows {
  // Only accounts and keys that have read something stand here: a key must be verified for that.
  const days = new Map<number, Map<string, Count>>();
  const unwritten = new Set<Count>();
  for (const count of stored) countsOf(count.day).set(nameOf(count.holder, count.id), { ...count });

  function countsOf(day: number): Map<string, Count> {
    let counts = days.get(day);
    if (counts === undefined) {
      counts = new Map();
      days.set(day, counts);
    }
    return counts;
  }

  function forgetDays(today: number): void {
    const farthestFirst = [...days.keys()].sort((a, b) => Math.abs(b - today) - Math.abs(a - today));
    for (const day of farthestFirst.slice(0, -DAYS_MAX)) {
      for (const count of days.get(day)?.values() ?? []) unwritten.delete(count);
      days.delete(day);
    }
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
      unwritten.add(count);
    },
    unwritten: () => [...unwritten].map((count) => ({ ...count })),
    markWritten(counts) {
      for (const { day, holder, id, rows } of counts) {
        const count = days.get(day)?.get(nameOf(holder, id));
        if (count !== undefined && count.rows === rows) unwritten.delete(count);
      }
    },
    days: () => [...days.keys()].sort((a, b) => a - b),
  };
}

/** The next 00:00 UTC, epoch milliseconds. */
export function nextDayMs(nowMs: number): number {
  return (dayOf(nowMs) + 1) * DAY_MS;
}

/** Days since 1970-01-01, UTC. */
export function dayOf(ms: number): number {
  return Math.floor(ms / DAY_MS);
}

/** A holder has no colon: no two are alike. */
function nameOf(holder: RowHolder, id: string): string {
  return `${holder}:${id}`;
}
