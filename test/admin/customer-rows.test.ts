/** The rows of customers over time, as the overview's curves show them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { customerRows } from '../../src/admin/console/customer-rows.ts';
import { addSubscription } from '../../src/auth/subscriptions.ts';
import { db, NOW_MS } from '../support/access-store.ts';
import { createTestStore } from '../support/store.ts';

test('each customer has the rows that were delivered between two times, most first; a silent one is left out', () => {
  const other = {
    id: 7009,
    account_id: 'other',
    name: null,
    time_zone: 'UTC',
    content_types: ['text' as const],
  };
  addSubscription(db, other, NOW_MS);
  const store = createTestStore();
  try {
    const rows = (subscription_id: number, count: number, content_type: 'text' | 'image' = 'text') =>
      Array.from({ length: count }, (_, at) => ({
        content_type,
        version: 1,
        row: { subscription_id, article_id: at + 1 },
      }));
    store.deliver(rows(7001, 2), 100);
    store.deliver([...rows(7001, 3, 'image'), ...rows(7002, 1)], 200);
    store.deliver(rows(7002, 1, 'image'), 300);
    const steps = [101, 201, 201, 301];
    assert.deepEqual(customerRows(store.reader, db, steps), [
      { id: 'acme', name: 'Acme News', rows: [4, 0, 1] },
    ]);
    store.deliver(rows(7009, 20), 400);
    assert.deepEqual(
      customerRows(store.reader, db, [...steps, 401]).map(({ id, rows: counts }) => [id, counts]),
      [
        ['other', [0, 0, 0, 20]],
        ['acme', [4, 0, 1, 0]],
      ],
    );
  } finally {
    store.close();
  }
});
