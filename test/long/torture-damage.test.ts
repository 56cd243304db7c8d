/** A smaller form of the part `damage` of the torture: every way of damage, on everything that can be damaged. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { damage } from '../torture/damage.ts';

test('what is damaged is refused or made good, and never served', { timeout: 900_000 }, async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'wirewatch-damage-'));
  try {
    const { figures, failures } = await damage.run({ seed: 1, share: 0.1, folder, tell: () => {} });
    context.diagnostic(JSON.stringify(figures));
    assert.deepEqual(failures, []);
    const fired = [
      ...['bit', 'block', 'page', 'torn end', 'lost', 'doubled', 'swapped'].flatMap((spoil) =>
        ['log beside its database', 'log without a database', 'log, compared', 'backup'].map(
          (target) => `${target}, ${spoil}`,
        ),
      ),
      ...['bit', 'block', 'page', 'torn end', 'lost'].flatMap((spoil) =>
        ['detections.db', 'access.db and its log'].map((target) => `${target}, ${spoil}`),
      ),
      'log beside its database: refused',
      'log beside its database: as it was',
      'log without a database: refused',
      'log, compared: told',
      'detections.db: told',
      'detections.db: as it was',
      'access.db and its log: refused',
      'access.db and its log: as it was',
      'backup: refused',
      'change stream: refused',
    ];
    for (const name of fired) assert.ok(Number(figures[name]) > 0, name);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
