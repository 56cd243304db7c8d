/** /metrics: the rows that it reads, and its labels. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMetrics } from '../../src/admin/metrics.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { LIVE } from '../support/live.ts';
import { createTestStore } from '../support/store.ts';

test('labels are bounded', async () => {
  const metrics = createMetrics({ answered() {}, refuse() {} });
  for (const status of [200, 204, 400, 431, 503])
    metrics.answered({ endpoint: '/v1/me', status, seconds: 0.001, rows: 0, key_id: null });
  const text = await metrics.text();
  const found = [...text.matchAll(/seconds_count\{endpoint="\/v1\/me",status="(\w+)"\}/g)].map(
    ([, one]) => one,
  );
  assert.deepEqual(found.sort(), ['2xx', '4xx', '5xx']);
});

test('accounts and the status are read once per scrape; without a status the rest is answered', async () => {
  using store = createTestStore();
  const metrics = createMetrics({ answered() {}, refuse() {} });
  const reads = { uses: 0, status: 0 };
  metrics.addGauges({
    monitor: { health: () => LIVE.health, alerts: () => [] },
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
