/** How long the test files of a run took. */
import path from 'node:path';

const SLOWEST = 10;

/** The first and the last sign of life of each test file. */
export class FileTimes {
  readonly #tests: string;
  readonly #times = new Map<string, { began: number; ended: number }>();

  /** @param tests the folder of all tests: its folders are the rooms */
  constructor(tests: string) {
    this.#tests = tests;
  }

  begin(file: string): void {
    const now = performance.now();
    this.#times.set(file, { began: now, ended: now });
  }

  end(file: string): void {
    const times = this.#times.get(file);
    if (times !== undefined) times.ended = performance.now();
  }

  /** The ten slowest files and the time of each room, in seconds, a line each. Rooms run at the same time. */
  text(): string {
    const files = [...this.#times].map(([file, { began, ended }]) => ({
      name: path.relative(this.#tests, file),
      seconds: (ended - began) / 1000,
    }));
    const rooms = Map.groupBy(files, ({ name }) => path.dirname(name).split(path.sep)[0] ?? '');
    const sums = [...rooms].map(([name, of]) => ({
      name: name === '.' ? 'test' : name,
      seconds: of.reduce((sum, { seconds }) => sum + seconds, 0),
    }));
    return `\nSlowest files:\n${lines(files).slice(0, SLOWEST).join('')}Rooms:\n${lines(sums).join('')}`;
  }
}

function lines(times: { name: string; seconds: number }[]): string[] {
  const slowestFirst = times.toSorted((left, right) => right.seconds - left.seconds);
  return slowestFirst.map(({ name, seconds }) => `${seconds.toFixed(1).padStart(8)} s  ${name}\n`);
}
