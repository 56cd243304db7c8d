/** A fifth of the planted faults turn a test red, and the whole list still fits the source; `npm run torture` plants all. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { planted } from '../torture/planted.ts';

const FAULTS_MIN = 50;

test('every planted fault is seen', { timeout: 3_600_000 }, async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'wirewatch-planted-'));
  try {
    const { figures, failures } = await planted.run({ seed: 1, share: 0.2, folder, tell: () => {} });
    context.diagnostic(JSON.stringify(figures));
    assert.deepEqual(failures, []);
    assert.ok(Number(figures.planted) >= FAULTS_MIN, `${figures.planted}`);
    assert.equal(figures.caught, figures.planted);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
