/** The figures for the documents, in `test/bench/measured.json`: `npm run bench -- --record` replaces them. */
import type { Figure } from './common.ts';
import recorded from './measured.json' with { type: 'json' };

export interface MeasuredFigure extends Omit<Figure, 'isCost'> {
  /** How many times better than the baseline; null: none. */
  readonly ratio: number | null;
}

export interface MeasuredGroup {
  /** The command. */
  readonly how: string;
  readonly commit: string;
  readonly day: string;
  readonly machine: string;
  readonly figures: readonly MeasuredFigure[];
}

/** Against an earlier version, with millions of rows, against other programs, what the copy costs. */
export type GroupName = 'earlier' | 'growth' | 'peers' | 'copy';

export const MEASURED: Readonly<Record<GroupName, MeasuredGroup>> = recorded;

/** A figure with its significant digits. */
export const shown = (value: number): string =>
  value < 10 ? value.toFixed(2) : Math.round(value).toLocaleString('en-US');
