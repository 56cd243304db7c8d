/** One part of the torture: what it is told, and what it says of itself afterwards. */

export interface Order {
  /** The same seed, the same run. */
  readonly seed: number;
  /** How much of the whole part is done: 1 in `npm run torture`, less in `npm run test:long`. */
  readonly share: number;
  /** A folder of its own, empty; removed afterwards where nothing failed. */
  readonly folder: string;
  /** How far it is, for a person who waits. */
  tell(progress: string): void;
}

export interface Outcome {
  /** What was done, counted: `{ kills: 812, 'kills that fired': 812 }`. */
  readonly figures: Readonly<Record<string, number | string>>;
  /** One sentence for each promise that did not hold, with what repeats it; none: all held. */
  readonly failures: readonly string[];
  /** A file of its folder that is of use afterwards, also where all held. */
  readonly kept?: string;
}

export interface Part {
  /** As `--only` takes it. */
  readonly name: string;
  /** For the usage: what is done to the program, in a line. */
  readonly about: string;
  /** On two cores, in minutes; seen, not promised. */
  readonly minutes: number;
  /** Commands that must be on the PATH. */
  readonly needs: readonly string[];
  run(order: Order): Promise<Outcome>;
}
