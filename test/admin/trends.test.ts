/** Rows of customers and lag of keys over time, as the overview's curves show them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { customerRows } from '../../src/admin/console/trends.ts';
import { addSubscription } from '../../src/auth/subscriptions.ts';
import { streamName } from '../../src/detection/content-type.ts';
import { lagsAt } from '../../src/operations/followers.ts';
import { readStreamHead } from '../../src/query/as-of.ts';
import { db, NOW_MS } from '../support/access-store.ts';
import { createTestStore, textRow, textRows } from '../support/store.ts';

test('each customer has the rows that were delivered between two times, most first; a silent one is left out', () => {
  addSubscription(db, { id: 7009, account_id: 'other' }, NOW_MS);
  using store = createTestStore();
  const rows = (subscription_id: number, count: number, content_type: 'text' | 'image' = 'text') =>
    textRows(count, { subscription_id }).map((row) => ({ ...row, content_type }));
  store.deliver(rows(7001, 2), 100);
  store.deliver([...rows(7001, 3, 'image'), ...rows(7002, 1)], 200);
  store.deliver(rows(7002, 1, 'image'), 300);
  const steps = [101, 201, 201, 301];
  const acme = { id: 'acme', name: 'Acme News' };
  assert.deepEqual(customerRows(store.reader, db, steps), [{ ...acme, rows: [4, 0, 1] }]);
  store.deliver(rows(7009, 20), 400);
  assert.deepEqual(customerRows(store.reader, db, [...steps, 401]), [
    { id: 'other', name: 'Other', rows: [0, 0, 0, 20] },
    { ...acme, rows: [4, 0, 1, 0] },
  ]);
});

test('a key is behind by the age of the oldest change of its streams that it has not been given', () => {
  using store = createTestStore();
  const row = (subscription_id: number, article_id: number) => textRow({ subscription_id, article_id });
  const at = (seconds: number) => seconds * 1000;
  const positions = [100, 200, 300].map((seconds, index) => {
    store.deliver([row(7001, index + 1), row(7002, index + 1)], at(seconds));
    return readStreamHead(store.reader).position;
  });
  store.deliver([row(7002, 9)], at(400));
  const [first = 0, , third = 0] = positions;
  const marks = [
    { atMs: at(50), position: null },
    { atMs: at(150), position: first },
    { atMs: at(250), position: first },
    { atMs: at(310), position: third },
    { atMs: at(500), position: third },
  ];
  const lags = (ids: readonly number[]) => {
    const streams = ids.map((id) => streamName(id, 'text'));
    return lagsAt(store.reader, streams, marks);
  };
  assert.deepEqual(lags([7001]), [null, 0, 50, 0, 0]);
  assert.deepEqual(lags([7001, 7002, 7999]), [null, 0, 50, 0, 100]);
});
