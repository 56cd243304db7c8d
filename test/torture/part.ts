/** A part of the torture tests: its options and its result. */

export interface PartOptions {
  /** The same seed repeats the same choices. */
  readonly seed: number;
  /** How much of the part to run: 1 in `npm run torture`, less in `npm run test:long`. */
  readonly share: number;
  /** An empty folder, removed afterwards if nothing failed. */
  readonly folder: string;
  /** Prints progress. */
  onProgress(progress: string): void;
}

export interface Outcome {
  /** Counts of what happened: `{ cases: 812, fired: 812 }`. */
  readonly figures: Readonly<Record<string, number | string>>;
  /** One sentence for each broken promise, with the seed or case that repeats it; empty if all held. */
  readonly failures: readonly string[];
  /** Whether Ctrl-C ended it early. */
  readonly isInterrupted?: boolean;
  /** A file in the folder to keep even if everything held. */
  readonly kept?: string;
}

export interface Part {
  /** The name for `--only`. */
  readonly name: string;
  /** One line for the usage text. */
  readonly about: string;
  /** Measured on two cores. */
  readonly minutes: number;
  /** Commands that must be on the PATH. */
  readonly needs: readonly string[];
  run(options: PartOptions): Promise<Outcome>;
}
