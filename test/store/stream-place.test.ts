/** The places of rows in the change stream, and the ordinals of streams. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ordinalOf, placeOf, placesOf, sequenceOf } from '../../src/store/stream-place.ts';
import { forAll } from '../support/for-all.ts';
import { createHistory, type HistoryRow } from '../support/history.ts';
import { createTestStore } from '../support/store.ts';

const ordinal = fc.integer({ min: 1, max: 2 ** 19 - 1 });
const sequence = fc.integer({ min: 0, max: 2 ** 34 - 1 });

test('a place is a safe integer of ordinal and sequence, as in SQL; places of streams do not overlap', () => {
  using store = createTestStore();
  const shift = store.reader.prepare<unknown[], number>('SELECT ? >> 34').pluck();
  forAll(100, ordinal, sequence, (stream, row) => {
    const place = placeOf(stream, row);
    assert.ok(Number.isSafeInteger(place));
    assert.deepEqual([ordinalOf(place), sequenceOf(place), shift.get(place)], [stream, row, stream]);
    const { first, end } = placesOf(stream);
    assert.ok(first <= place && place < end);
    if (stream < 2 ** 19 - 1) assert.equal(end, placesOf(stream + 1).first);
  });
  for (const stream of [0, 2 ** 19]) assert.throws(() => placeOf(stream, 1), RangeError);
  for (const row of [2 ** 34, -1]) assert.throws(() => placeOf(1, row), RangeError);
});

test('the database itself refuses ordinals and sequence numbers beyond the limits', () => {
  using store = createTestStore();
  const sql = `INSERT INTO stream (ordinal, subscription_id, content_type, sequence, position)
    VALUES (?, ?, 'text', ?, 0)`;
  const insert = (...values: number[]) => store.writer.prepare(sql).run(...values);
  insert(2 ** 19 - 1, 1, 2 ** 34 - 1);
  const isRefused = (...values: number[]) =>
    assert.throws(() => insert(...values), { code: 'SQLITE_CONSTRAINT_CHECK' });
  for (const stream of [0, 2 ** 19]) isRefused(stream, 2, 0);
  for (const row of [2 ** 34, -1]) isRefused(1, 2, row);
});

test('ordinals follow the order in which streams first appear, and are never reused', async () => {
  using history = await createHistory();
  const row = (subscription_id: number, content_type: HistoryRow['content_type']): HistoryRow => ({
    content_type,
    row: { subscription_id },
  });
  history.apply([row(8, 'image'), row(7, 'text'), row(8, 'text')]);
  await history.remove(8);
  await history.restart();
  history.apply([row(9, 'text'), row(8, 'text')]);
  await history.remove(8);
  history.apply([row(8, 'text')]);
  const select =
    "SELECT ordinal || ' ' || subscription_id || ':' || content_type || iif(removed, ' removed', '') FROM stream";
  const places = '1 8:image removed, 2 7:text, 3 8:text removed, 4 9:text, 5 8:text removed, 6 8:text';
  assert.equal(history.db().prepare<[], string>(select).pluck().all().join(', '), places);
});
