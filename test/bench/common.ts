/** Shared by all measurements: the data set, the program's figures, and how they are shown. */
import { statSync } from 'node:fs';
import { openDatabase } from '../../src/store/database.ts';
import { shown } from './measured.ts';

export const SUBSCRIPTIONS = [7001, 7002, 7003, 7004];

export interface Bench {
  /** For everything that a measurement writes. */
  readonly folder: string;
  readonly rows: number;
  readonly rounds: number;
}

/** A figure of this program. */
export interface Figure {
  readonly what: string;
  readonly unit: string;
  /** Of what it is compared with; null: nothing. */
  readonly before: number | null;
  readonly now: number;
  /** Lower is better. */
  readonly isCost?: boolean;
}

export function cost(what: string, unit: string, now: number, before: number | null = null): Figure {
  return { what, unit, before, now, isCost: true };
}

/** @param measured what it is compared with, and this program: `inTurn` */
export function rate(what: string, unit: string, measured: readonly (readonly number[])[]): Figure {
  const [before = 0, now = 0] = measured.map(median);
  return { what, unit, before, now };
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

/** Measures all sides in turn, so that noise affects all. @param warmUps rounds that do not count @returns by side */
export async function inTurn<Side, Result>(
  sides: readonly Side[],
  { rounds, warmUps = 1 }: { readonly rounds: number; readonly warmUps?: number },
  measure: (side: Side) => Promise<Result>,
): Promise<Result[][]> {
  const results: Result[][] = sides.map(() => []);
  for (let round = -warmUps; round < rounds; round += 1)
    for (const [which, side] of sides.entries()) {
      const result = await measure(side);
      if (round >= 0) results[which]?.push(result);
    }
  return results;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

export async function secondsOf(work: () => unknown): Promise<number> {
  const startMs = performance.now();
  await work();
  return (performance.now() - startMs) / 1000;
}

export const bytesOf = (paths: readonly string[]) =>
  paths.reduce((sum, path) => sum + statSync(path).size, 0);

/** The earliest and latest first_detected_at of a database, in epoch seconds. */
export function rangeOf(database: string): { first: number; last: number } {
  using db = openDatabase(database, 'read');
  const range = 'SELECT min(first_detected_at) AS first, max(first_detected_at) AS last FROM detection';
  return db.prepare<[], { first: number; last: number }>(range).get() ?? { first: 0, last: 0 };
}
