/** The figures that `npm run bench -- --record` recorded for the documents. */
import recorded from './measured.json' with { type: 'json' };

export interface MeasuredFigure {
  readonly what: string;
  /** The baseline, if it differs by figure. */
  readonly against?: string;
  readonly unit: string;
  readonly now: number;
  /** The baseline's figure; null: none. */
  readonly before: number | null;
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

export interface MeasuredGroups {
  /** Against the minimum cost of each path. */
  readonly limits?: MeasuredGroup;
  /** With a copy and a standby. */
  readonly copy?: MeasuredGroup;
  /** Against an earlier version. */
  readonly earlier?: MeasuredGroup;
  /** With millions of rows. */
  readonly growth?: MeasuredGroup;
  /** Against other programs. */
  readonly peers?: MeasuredGroup;
}

export const MEASURED: MeasuredGroups = recorded;

/** A figure with its significant digits. */
export function shown(value: number): string {
  return value < 10 ? value.toFixed(2) : Math.round(value).toLocaleString('en-US');
}
