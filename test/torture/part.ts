/** A part of the torture tests: its options, and what it counts and finds. */

export interface PartOptions {
  /** The same seed repeats the same choices. */
  readonly seed: number;
  /** How much of the part to run: 1 in `npm run torture`, less in `npm run test:long`. */
  readonly share: number;
  /** An empty folder, removed afterwards if nothing failed. */
  readonly folder: string;
  readonly tally: Tally;
  /** Prints progress. */
  onProgress(progress: string): void;
}

export interface Part {
  /** The name for `--only`. */
  readonly name: string;
  /** One line for the usage text. */
  readonly about: string;
  run(options: PartOptions): Promise<void>;
}

/** The outcome of a part, which grows while it runs. */
export class Tally {
  /** Counts of what happened: `{ cases: 812, fired: 812 }`. */
  readonly figures: Record<string, number | string> = {};
  /** One sentence for each broken promise, with the seed or case that repeats it; empty if all held. */
  readonly failures: string[] = [];

  count(what: string, by = 1): void {
    this.figures[what] = Number(this.figures[what] ?? 0) + by;
  }
}

/** How many of so many cases belong to the share, but at least `min`. */
export const shareOf = ({ share }: PartOptions, count: number, min = 1): number =>
  Math.max(min, Math.round(count * share));

/** Processes a list, with one worker in each place. */
export async function inEach<Place, Item>(
  places: readonly Place[],
  items: readonly Item[],
  work: (place: Place, item: Item) => Promise<void>,
): Promise<void> {
  const waiting = items.values();
  const worker = async (place: Place) => {
    for (const item of waiting) await work(place, item);
  };
  await Promise.all(places.map(worker));
}

/** A random history, which its seed and number repeat. */
export interface History {
  /** What it did so far. */
  readonly steps: readonly string[];
  run(): Promise<void>;
  end(isSound: boolean): void;
}

/** Runs a share of so many histories, or those whose numbers are in the list TORTURE_CASE. */
export async function runHistories(
  { share, tally, onProgress }: PartOptions,
  count: number,
  make: (number: number) => History,
): Promise<void> {
  const { TORTURE_CASE } = process.env;
  const all = Array.from({ length: Math.ceil(count * share) }, (_, number) => number);
  const numbers: readonly number[] = TORTURE_CASE === undefined ? all : JSON.parse(TORTURE_CASE);
  for (const number of numbers) {
    const history = make(number);
    const failed = (error: unknown) =>
      error instanceof Error ? (error.stack ?? error.message) : String(error);
    const said = await history.run().then(() => null, failed);
    history.end(said === null);
    const steps = history.steps.join(', ');
    if (said !== null)
      tally.failures.push(`TORTURE_CASE='[${number}]', after ${steps}: ${said.slice(0, 900)}`);
    tally.count('histories');
    onProgress(`history ${number + 1}: ${steps}`);
  }
}

const NAMES = ['process_resident_memory_bytes', 'process_open_fds'] as const;

/**
 * Memory and open files of a running appliance, by its metrics.
 *
 * @param admin the address of the administration port
 * @throws Error if a metric is missing: those of the process exist only on Linux
 */
export async function readProcess(admin: string): Promise<{ memoryMib: number; files: number }> {
  // On a new connection: a synchronous command may block this process for longer than an idle connection stays open.
  const response = await fetch(`${admin}/metrics`, { headers: { connection: 'close' } });
  const text = await response.text();
  const [memory, files] = NAMES.map((name) => new RegExp(`^${name} (\\S+)`, 'm').exec(text)?.[1]);
  if (memory === undefined || files === undefined) throw new Error(`${NAMES} are missing: expected Linux`);
  return { memoryMib: Number(memory) / 2 ** 20, files: Number(files) };
}
