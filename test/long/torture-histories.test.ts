/** A smaller form of the part `histories` of the torture. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { histories } from '../torture/histories.ts';

test('random histories end as the model has it', { timeout: 900_000 }, async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'wirewatch-histories-'));
  try {
    const { figures, failures } = await histories.run({ seed: 1, share: 0.02, folder, tell: () => {} });
    context.diagnostic(JSON.stringify(figures));
    assert.deepEqual(failures, []);
    for (const step of [
      'drop and kill',
      'set the clock',
      'restore',
      'put the database back',
      'put the folder back',
      'remove a subscription',
      'several commands at once',
    ])
      assert.ok(Number(figures[step]) > 0, step);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
