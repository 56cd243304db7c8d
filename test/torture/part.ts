/** A part of the torture: its input and its result. */

export interface Order {
  /** The same seed, the same run. */
  readonly seed: number;
  /** How much of the part to run: 1 in `npm run torture`, less in `npm run test:long`. */
  readonly share: number;
  /** An empty folder, removed afterwards if nothing failed. */
  readonly folder: string;
  /** Prints progress. */
  tell(progress: string): void;
}

export interface Outcome {
  /** Counts of what happened: `{ cases: 812, fired: 812 }`. */
  readonly figures: Readonly<Record<string, number | string>>;
  /** One sentence for each broken promise, with the seed or case that repeats it; empty if all held. */
  readonly failures: readonly string[];
  /** A file in the folder to keep even if everything held. */
  readonly kept?: string;
}

export interface Part {
  /** As `--only` takes it. */
  readonly name: string;
  /** One line for the usage. */
  readonly about: string;
  /** Measured on two cores. */
  readonly minutes: number;
  /** Commands that must be on the PATH. */
  readonly needs: readonly string[];
  run(order: Order): Promise<Outcome>;
}
