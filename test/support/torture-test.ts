/** A small share of a part of the torture, as a test. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Part } from '../torture/part.ts';

const SEED = 20261122;

/** @param fired figures that must not be missing: what was to happen did */
export function tortureTest(part: Part, { share, fired }: { share: number; fired: readonly string[] }): void {
  test(`${part.about} (a share of ${share}, seed ${SEED})`, async (context) => {
    const folder = mkdtempSync(join(tmpdir(), 'wirewatch-test-'));
    try {
      const tell = (progress: string) => context.diagnostic(progress);
      const { figures, failures } = await part.run({ seed: SEED, share, folder, tell });
      assert.deepEqual(failures, []);
      const missing = fired.filter((what) => !Object.keys(figures).some((figure) => figure.trim() === what));
      assert.deepEqual(missing, [], `did not fire: ${JSON.stringify(figures, null, 1)}`);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
}
