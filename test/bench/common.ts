/** Shared by all measurements: the data set, results, and comparisons. */

import { openDatabase } from '../../src/store/database.ts';
import type { Measured } from './load.ts';
import { shown } from './measured.ts';

export const SUBSCRIPTIONS = [7001, 7002, 7003, 7004];
export const CONNECTIONS = 8;

export interface Row {
  readonly what: string;
  readonly against: string;
  readonly unit: string;
  readonly appliance: number;
  readonly limit: number;
  /** The lowest acceptable ratio. */
  readonly reach: number;
}

/** This program's figure. */
export interface Figure {
  readonly what: string;
  readonly unit: string;
  /** Null: nothing to compare with. */
  readonly before: number | null;
  readonly now: number;
  /** Lower is better. */
  readonly isCost?: boolean;
}

/** How many times better this program is. */
export function timesAsGood({ before, now, isCost = false }: Figure): number | null {
  if (before === null) return null;
  return isCost ? before / now : now / before;
}

export function figureTable(other: string, figures: readonly Figure[]): string {
  const lines = figures.map((figure) => {
    const { what, unit, before, now } = figure;
    const ratio = timesAsGood(figure)?.toFixed(2) ?? '';
    return `| ${what} | ${unit} | ${before === null ? '' : shown(before)} | ${shown(now)} | ${ratio} |`;
  });
  return [`| | | ${other} | now | times as good |`, '|---|---|---|---|---|', ...lines].join('\n');
}

/** The earliest and latest first_detected_at of a database, in epoch seconds. */
export function rangeOf(database: string): { first: number; last: number } {
  const db = openDatabase(database, 'read');
  const range = 'SELECT min(first_detected_at) AS first, max(first_detected_at) AS last FROM detection';
  const found = db.prepare<unknown[], { first: number; last: number }>(range).get();
  db.close();
  return found ?? { first: 0, last: 0 };
}

/** A request for a period that covers all rows of a database. */
export function periodOf(database: string): string {
  const { first, last } = rangeOf(database);
  const [from, to] = [first, last + 1].map((second) => new Date(second * 1000).toISOString());
  return `/v1/detections?from=${from}&to=${to}&limit=1000`;
}

/** The number at the end of a bare server's response: the next page starts after it. */
export function lastNumber(answer: Buffer | null): string {
  return answer === null ? '0' : (/\d+$/.exec(answer.toString('latin1', answer.length - 20))?.[0] ?? '0');
}

export interface Bench {
  readonly folder: string;
  readonly data: string;
  readonly rows: number;
  readonly rounds: number;
  key: string;
}

/** Measures both in turn, so that noise affects both. The first round warms up. */
export async function rounds(
  bench: Bench,
  ours: () => Promise<Measured>,
  limit: () => Promise<Measured>,
): Promise<{ appliance: number; limit: number }> {
  const appliance: number[] = [];
  const bare: number[] = [];
  await ours();
  for (let round = 0; round < bench.rounds; round += 1) {
    bare.push((await limit()).requests_per_second);
    appliance.push((await ours()).requests_per_second);
  }
  return { appliance: median(appliance), limit: median(bare) };
}

export function authorization(bench: Bench): Record<string, string> {
  return { authorization: `Bearer ${bench.key}` };
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

/** The ordinal of a subscription's text stream. */
export function ordinalIn(database: string, subscription: number): number {
  const db = openDatabase(database, 'read');
  try {
    const select =
      "SELECT ordinal FROM stream WHERE subscription_id = ? AND content_type = 'text' AND removed = 0";
    return db.prepare<unknown[], number>(select).pluck().get(subscription) ?? 0;
  } finally {
    db.close();
  }
}
