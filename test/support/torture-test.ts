/** Runs a small share of a torture part as a test. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Part, Tally } from '../torture/part.ts';
import { testFolder } from './test-folder.ts';

const SEED = 20261122;

interface TortureTest {
  /** Another seed, if this share of the default one does not fire everything. */
  readonly seed?: number;
  /** How much of the part to run: 0.01 is a hundredth. */
  readonly share: number;
  /** Figures that must be above 0, so that the test is not vacuous. */
  readonly fired: readonly string[];
}

export function tortureTest(part: Part, { share, fired, seed = SEED }: TortureTest): void {
  test(`${part.about} (a share of ${share}, seed ${seed})`, async (context) => {
    const onProgress = (progress: string) => context.diagnostic(progress);
    const tally = new Tally();
    await part.run({ seed, share, folder: testFolder(), tally, onProgress });
    const { figures, failures } = tally;
    assert.deepEqual(failures, []);
    const counts = new Map(Object.entries(figures).map(([name, figure]) => [name.trim(), Number(figure)]));
    const missing = fired.filter((name) => !((counts.get(name) ?? 0) > 0));
    assert.deepEqual(missing, [], `did not fire: ${JSON.stringify(figures, null, 1)}`);
  });
}
