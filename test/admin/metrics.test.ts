/** /metrics: the rows that it reads, and its labels. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { GaugeSources } from '../../src/admin/gauges.ts';
import { createMetrics } from '../../src/admin/metrics.ts';
import { revokeKey } from '../../src/auth/keys.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { COUNT_WINDOWS } from '../../src/windows/ledger.ts';
import { db, makeKey, NOW_MS, root } from '../support/access-store.ts';
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
  const metrics = createMetrics({ add() {}, refuse() {} });
  for (const status of [200, 204, 400, 431, 503]) metrics.answered('/v1/me', status, 0.001, 0);
  const text = await metrics.text();
  const found = [...text.matchAll(/seconds_count\{endpoint="\/v1\/me",status="(\w+)"\}/g)].map(
    ([, one]) => one,
  );
  assert.deepEqual(found.sort(), ['2xx', '4xx', '5xx']);
});

/** Without the uses of keys. */
function sourcesOf({ folder, reader }: Pick<TestStore, 'folder' | 'reader'>): Omit<GaugeSources, 'keyUses'> {
  return {
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
    detections: () => reader,
    folder: dataFolder(folder),
    enabled: new Set(),
    backup: { folder, every_minutes: 0 },
    drop: folder,
    dailyRows: { used: () => 0 },
    certificateExpiresMs: () => null,
    connections: () => 0,
    now: Date.now,
  };
}

test('accounts are read once per scrape', async () => {
  const store = createTestStore();
  const metrics = createMetrics({ add() {}, refuse() {} });
  let reads = 0;
  metrics.addGauges({
    ...sourcesOf(store),
    keyUses: {
      unwritten() {
        reads += 1;
        return [];
      },
    },
  });
  await metrics.text();
  assert.equal(reads, 1);
  await metrics.text();
  assert.equal(reads, 2);
  store.close();
});

test('a key that is revoked or has expired has no follower: its lag would only grow', async () => {
  const detections = createTestStore();
  const keys = ['following', 'expired', 'revoked'] as const;
  const ids = keys.map((name) => makeKey({ name, expires_at: name === 'expired' ? NOW_MS + 1 : null }).id);
  const [following = '', , revoked = ''] = ids;
  const scrape = async (nowMs: number) => {
    const metrics = createMetrics({ add() {}, refuse() {} });
    const unwritten = () => ids.map((key_id) => ({ key_id, last_used_at: NOW_MS, position: 0 }));
    const sources = sourcesOf({ folder: root, reader: detections.reader });
    metrics.addGauges({ ...sources, keyUses: { unwritten }, now: () => nowMs });
    return metrics.text();
  };
  const followers = (text: string) =>
    [...text.matchAll(/^wirewatch_follower_lag_seconds\{.*key_id="(\w+)"/gm)].map(([, id]) => id);
  assert.deepEqual(followers(await scrape(NOW_MS)).sort(), ids.toSorted());
  revokeKey(db, revoked, NOW_MS);
  const text = await scrape(NOW_MS + 1);
  assert.deepEqual(followers(text), [following]);
  assert.match(text, /^wirewatch_account_last_request_timestamp_seconds\{account="acme"\} /m);
  detections.close();
});
