/**
 * The daily row allowance of accounts and keys.
 *
 * A request is accepted while the used rows are below the allowance, and is then served completely. The allowance is the
 * current one of the account and the key; only the rows are stored.
 */
import { counted } from '../counted.ts';
import { Refused } from '../refused.ts';
import { DAY_MS, formatMs, SECOND_MS } from '../time.ts';
import { accountUsageId, type DailyRows, dayOf, type RowHolder } from './daily-rows.ts';

/** The members of a credential that matter here. */
export interface RowReader {
  readonly key_id: string;
  /** The key's own allowance; null: only that of the account applies. */
  readonly daily_rows: number | null;
  /** `daily_rows` null: that of the setting. */
  readonly account: {
    readonly id: string;
    /** Epoch milliseconds. */
    readonly created_at: number;
    readonly daily_rows: number | null;
  };
}

export interface Throttle {
  /** `account` if both are used up. */
  readonly by: RowHolder;
  /** Rows a day. */
  readonly allowance: number;
  /** Rows read today: more than the allowance, since the last request was served completely. */
  readonly used: number;
  /** The next 00:00 UTC, epoch milliseconds. */
  readonly until_ms: number;
}

export interface DailyAllowance {
  /** The allowance of the account. */
  rowsOf(reader: RowReader): number;
  /** Null while reads are accepted. */
  throttle(reader: RowReader, nowMs: number): Throttle | null;
  /** @throws Refused `daily_allowance` */
  require(reader: RowReader, nowMs: number): void;
  /** Counts rows for the day on which the request was accepted. */
  count(reader: RowReader, rows: number, nowMs: number): void;
}

/** @param defaultRows the setting `[limits] daily_rows` */
export function createDailyAllowance(rows: DailyRows, defaultRows: number): DailyAllowance {
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
    require(reader, nowMs) {
      const throttled = throttle(reader, nowMs);
      if (throttled !== null) throw allowanceUsed(throttled, nowMs);
    },
    count(reader, count, nowMs) {
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
