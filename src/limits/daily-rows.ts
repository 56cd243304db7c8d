/**
 * The daily row allowance of accounts and keys, and the rows that each has read, by UTC day. Counted in memory; usage.ts
 * has them written. The counts of a few days are kept: if the clock is set back, or was ahead for a while, the rows that
 * were already used on that day still count.
 */
import { type Static, Type } from '@sinclair/typebox';
import { counted } from '../counted.ts';
import { Refused } from '../refused.ts';
import { DAY_MS, formatMs, SECOND_MS } from '../time.ts';

export const ROW_HOLDERS = ['key', 'account'] as const;
export type RowHolder = (typeof ROW_HOLDERS)[number];

export const UsedRows = Type.Object({
  /** Days since 1970-01-01, UTC. */
  day: Type.Integer(),
  holder: Type.Union(ROW_HOLDERS.map((holder) => Type.Literal(holder))),
  /** For an account: {@link accountUsageId}; for a key: its id, which is never used again. */
  id: Type.String(),
  rows: Type.Integer({ minimum: 0 }),
});
export type UsedRows = Static<typeof UsedRows>;

/** An account that was removed and added again has another `created_at`, and starts at zero. */
export function accountUsageId(account: { readonly id: string; readonly created_at: number }): string {
  return `${account.id}@${account.created_at}`;
}

/** Today and its neighbours: more would only help if the clock was wrong by days. */
const DAYS_MAX = 3;

export type DailyRows = ReturnType<typeof createDailyRows>;

export function createDailyRows(stored: readonly UsedRows[] = []) {
  // Bounded by the number of accounts and keys: only verified keys read rows.
  const counts = new Map(stored.map((count) => [nameOf(count.day, count.holder, count.id), { ...count }]));
  let lastDay = Number.NaN;

  function forgetDays(today: number): void {
    const days = new Set([today, ...counts.values().map(({ day }) => day)]);
    const nearestFirst = [...days].sort((a, b) => Math.abs(a - today) - Math.abs(b - today));
    for (const [name, { day }] of counts) if (nearestFirst.indexOf(day) >= DAYS_MAX) counts.delete(name);
  }

  return {
    used: (holder: RowHolder, id: string, nowMs: number) =>
      counts.get(nameOf(dayOf(nowMs), holder, id))?.rows ?? 0,
    add(holder: RowHolder, id: string, rows: number, nowMs: number): void {
      if (rows === 0) return;
      const day = dayOf(nowMs);
      if (day !== lastDay) forgetDays(day);
      lastDay = day;
      const name = nameOf(day, holder, id);
      const count = counts.get(name) ?? { day, holder, id, rows: 0 };
      count.rows += rows;
      counts.set(name, count);
    },
    all: () => [...counts.values()],
  };
}

export function dayOf(ms: number): number {
  return Math.floor(ms / DAY_MS);
}

function nameOf(day: number, holder: RowHolder, id: string): string {
  return `${day} ${holder}:${id}`;
}

export interface RowReader {
  readonly key_id: string;
  /** The key's own allowance; null: only that of the account applies. */
  readonly daily_rows: number | null;
  /** `daily_rows` null: that of the setting. */
  readonly account: { readonly id: string; readonly created_at: number; readonly daily_rows: number | null };
}

interface Throttle {
  /** `account` if both are used up. */
  readonly by: RowHolder;
  readonly allowance: number;
  /** Rows read today: more than the allowance, since the last request was served completely. */
  readonly used: number;
  readonly until_ms: number;
}

export type DailyAllowance = ReturnType<typeof createDailyAllowance>;

/** A request is accepted while the used rows are below the allowance, and is then served completely. */
export function createDailyAllowance(rows: DailyRows, defaultRows: number) {
  const rowsOf = ({ account }: RowReader) => account.daily_rows ?? defaultRows;

  function throttle(reader: RowReader, nowMs: number): Throttle | null {
    const until_ms = nextDayMs(nowMs);
    const ofAccount = rowsOf(reader);
    const usedByAccount = rows.used('account', accountUsageId(reader.account), nowMs);
    if (usedByAccount >= ofAccount)
      return { by: 'account', allowance: ofAccount, used: usedByAccount, until_ms };
    const ofKey = reader.daily_rows;
    if (ofKey === null) return null;
    const usedByKey = rows.used('key', reader.key_id, nowMs);
    return usedByKey < ofKey ? null : { by: 'key', allowance: ofKey, used: usedByKey, until_ms };
  }

  return {
    rowsOf,
    throttle,
    require(reader: RowReader, nowMs: number): void {
      const throttled = throttle(reader, nowMs);
      if (throttled !== null) throw allowanceUsed(throttled, nowMs);
    },
    /** Counts rows for the day on which the request was accepted. */
    count(reader: RowReader, count: number, nowMs: number): void {
      rows.add('account', accountUsageId(reader.account), count, nowMs);
      rows.add('key', reader.key_id, count, nowMs);
    },
  };
}

export function allowanceUsed({ by, allowance, used, until_ms }: Throttle, nowMs: number): Refused {
  return new Refused(
    'daily_allowance',
    `The ${by} has used its daily allowance of ${counted(allowance, 'row')} (${counted(used, 'row')} read today). ` +
      `The allowance resets at ${formatMs(until_ms)}. Cursors stay valid.`,
    { retryAfterSeconds: Math.ceil((until_ms - nowMs) / SECOND_MS) },
  );
}

/** When the used rows count from zero again: the next 00:00 UTC, epoch milliseconds. */
export function nextDayMs(nowMs: number): number {
  return (dayOf(nowMs) + 1) * DAY_MS;
}
