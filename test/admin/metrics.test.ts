/** /metrics: the rows that it reads, and its labels. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMetrics } from '../../src/admin/metrics.ts';
import type { ExportName } from '../../src/detection/content-type.ts';
import { evaluateHealth } from '../../src/health/rules.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { createTestStore } from '../support/store.ts';

const PAUSED = {
  newest_done: { newswire: null, imagewire: null },
  enabled: new Set<ExportName>(),
  is_paused: true,
};

test('accounts and the status are read once per scrape; without a status the rest is answered', async () => {
  using store = createTestStore();
  const metrics = createMetrics({ answered() {}, refuse() {} });
  const reads = { uses: 0, status: 0 };
  metrics.addGauges({
    monitor: { health: () => evaluateHealth(PAUSED, [], 0), alerts: () => [] },
    folder: dataFolder(store.folder),
    dailyRows: { used: () => 0 },
    certificateExpiresMs: () => null,
    connections: () => 0,
    now: Date.now,
    async status() {
      reads.status += 1;
      return null;
    },
    keyUses: {
      all() {
        reads.uses += 1;
        return [];
      },
    },
  });
  const text = await metrics.text();
  assert.deepEqual(reads, { uses: 1, status: 1 });
  assert.match(text, /^wirewatch_healthy 1$/m);
  assert.doesNotMatch(text, /^wirewatch_(database_bytes|windows|follower_lag_seconds)\b/m);
  await metrics.text();
  assert.deepEqual(reads, { uses: 2, status: 2 });
});
