/** What `npm run bench -- --record` has measured: the figures of the documents come from there. */
import recorded from './measured.json' with { type: 'json' };

export interface MeasuredFigure {
  readonly what: string;
  /** What it is compared with, where that is another one for each figure. */
  readonly against?: string;
  readonly unit: string;
  readonly now: number;
  /** Of what it is compared with; null: nothing. */
  readonly before: number | null;
  /** How many times as good; null: there is nothing to compare with. */
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

export interface MeasuredGroups {
  /** Against the least that each path could cost. */
  readonly limits?: MeasuredGroup;
  /** Against an earlier version. */
  readonly earlier?: MeasuredGroup;
  /** With millions of rows. */
  readonly growth?: MeasuredGroup;
  /** Against other programs. */
  readonly peers?: MeasuredGroup;
}

export const MEASURED: MeasuredGroups = recorded;

/** A figure with as many digits as say something. */
export function shown(value: number): string {
  return value < 10 ? value.toFixed(2) : Math.round(value).toLocaleString('en-US');
}
