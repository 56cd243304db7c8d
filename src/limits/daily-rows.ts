/**
 * The daily row allowance of accounts and keys, and the rows that each has read, by UTC day. Counted in memory; usage.ts
 * has them written. The three days that were counted last are kept: if the clock is set back, or was ahead for a while, the
 * rows that were already used on that day still count.
 */
import { type Static, Type } from '@sinclair/typebox';
import { BoundedMap } from '../bounded-map.ts';
import { counted } from '../counted.ts';
import { getOrMake } from '../get-or-make.ts';
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
export const accountUsageId = (account: { readonly id: string; readonly created_at: number }): string =>
  `${account.id}@${account.created_at}`;

const DAYS_MAX = 3;

export type DailyRows = ReturnType<typeof createDailyRows>;

export function createDailyRows(stored: readonly UsedRows[] = []) {
  // Each is bounded by the number of accounts and keys: only verified keys read rows.
  const days = new BoundedMap<number, Map<string, UsedRows>>(DAYS_MAX);

  function addOn(day: number, holder: RowHolder, id: string, rows: number): void {
    if (rows === 0) return;
    const counts = days.get(day) ?? new Map<string, UsedRows>();
    days.set(day, counts);
    getOrMake(counts, `${holder}:${id}`, () => ({ day, holder, id, rows: 0 })).rows += rows;
  }

  for (const { day, holder, id, rows } of stored) addOn(day, holder, id, rows);
  return {
    used: (by: RowHolder, id: string, nowMs: number) => days.get(dayOf(nowMs))?.get(`${by}:${id}`)?.rows ?? 0,
    add: (by: RowHolder, id: string, rows: number, nowMs: number) => addOn(dayOf(nowMs), by, id, rows),
    all: () => [...days.values()].flatMap((counts) => [...counts.values()]),
  };
}

export const dayOf = (ms: number) => Math.floor(ms / DAY_MS);

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

/** A request is accepted while the used rows are below the allowance, and is then served completely. */
export function createDailyAllowance(rows: DailyRows, defaultRows: number) {
  const rowsOf = ({ account }: RowReader) => account.daily_rows ?? defaultRows;

  function throttle(reader: RowReader, nowMs: number): Throttle | null {
    const throttleBy = (by: RowHolder, id: string, allowance: number): Throttle | null => {
      const used = rows.used(by, id, nowMs);
      return used < allowance ? null : { by, allowance, used, until_ms: nextDayMs(nowMs) };
    };
    const byAccount = throttleBy('account', accountUsageId(reader.account), rowsOf(reader));
    return byAccount ?? throttleBy('key', reader.key_id, reader.daily_rows ?? Infinity);
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
    `The ${by} has used its daily allowance of ${counted(allowance, 'row')} (${counted(used, 'row')} read today). The allowance resets at ${formatMs(until_ms)}. Cursors stay valid.`,
    { retryAfterSeconds: Math.ceil((until_ms - nowMs) / SECOND_MS) },
  );
}

/** When the used rows count from zero again: the next 00:00 UTC, epoch milliseconds. */
export const nextDayMs = (nowMs: number) => (dayOf(nowMs) + 1) * DAY_MS;
