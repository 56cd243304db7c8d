/** /metrics: the rows that it reads, and its labels. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { GaugeSources } from '../../src/admin/gauges.ts';
import { createMetrics } from '../../src/admin/metrics.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { COUNT_WINDOWS } from '../../src/windows/ledger.ts';
import { createTestStore, type TestStore } from '../support/store.ts';

test('counting windows reads only the counted ones', () => {
  const store = createTestStore();
  const plan = store.reader
    .prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${COUNT_WINDOWS}`)
    .all({ export: 'newswire', status: 'done', from: 0 });
  store.close();
  assert.match(
    plan.map(({ detail }) => detail).join(),
    /USING COVERING INDEX export_window_by_status \(export=\? AND status=\? AND window_start>\?\)/,
  );
});

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

/** Without the uses of keys. */
function sourcesOf({ folder }: Pick<TestStore, 'folder'>): Omit<GaugeSources, 'keyUses'> {
  return {
    monitor: {
      health: () => ({
        status: 'ok',
        exports: { newswire: { newest_done: null }, imagewire: { newest_done: null } },
        alerts: { open: 0, page_worthy: 0, paused: 0 },
        role: 'writer',
      }),
      alerts: () => [],
    },
    status: async () => null,
    folder: dataFolder(folder),
    dailyRows: { used: () => 0 },
    certificateExpiresMs: () => null,
    connections: () => 0,
    now: Date.now,
  };
}

test('accounts and the status are read once per scrape; without a status the rest is answered', async () => {
  const store = createTestStore();
  const metrics = createMetrics({ answered() {}, refuse() {} });
  const reads = { uses: 0, status: 0 };
  metrics.addGauges({
    ...sourcesOf(store),
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
  store.close();
});
