/** /metrics: the rows that it reads, and its labels. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMetrics } from '../../src/admin/metrics.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { COUNT_WINDOWS } from '../../src/windows/ledger.ts';
import { createTestStore } from '../support/store.ts';

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
  const metrics = createMetrics({ add() {}, refuse() {} });
  for (const status of [200, 204, 400, 431, 503]) metrics.answered('/v1/me', status, 0.001, 0);
  const text = await metrics.text();
  const found = [...text.matchAll(/seconds_count\{endpoint="\/v1\/me",status="(\w+)"\}/g)].map(
    ([, one]) => one,
  );
  assert.deepEqual(found.sort(), ['2xx', '4xx', '5xx']);
});

test('accounts are read once per scrape', async () => {
  const store = createTestStore();
  const metrics = createMetrics({ add() {}, refuse() {} });
  let reads = 0;
  metrics.addGauges({
    monitor: {
      health: () => ({
        status: 'ok',
        exports: { newswire: { newest_done: null }, imagewire: { newest_done: null } },
        alerts: { open: 0, page_worthy: 0, paused: 0 },
      }),
      alerts: () => [],
      noteFault: assert.ifError,
      isDamaged: () => false,
      close() {},
    },
    detections: () => store.reader,
    folder: dataFolder(store.folder),
    enabled: new Set(),
    backup: { folder: store.folder, every_minutes: 0 },
    drop: store.folder,
    dailyRows: { used: () => 0 },
    keyUses: {
      unwritten() {
        reads += 1;
        return [];
      },
    },
    certificateExpiresMs: () => null,
    connections: () => 0,
    now: Date.now,
  });
  await metrics.text();
  assert.equal(reads, 1);
  await metrics.text();
  assert.equal(reads, 2);
  store.close();
});
