/** Which cursors prove that a part of the history is lost, and what they say of the history that issued them. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { isOfLostHistory, lostHistoryOf, positionBeyond } from '../../src/history/version-epoch.ts';
import { DAY_MS, HOUR_MS } from '../../src/time.ts';
import { createTestStore, type TestStore } from '../support/store.ts';

const NOW_MS = Date.UTC(2026, 10, 20);
const YEAR_MS = 3.2e10;
const at = (ms: number) => ms * 1000;

let store: TestStore;
beforeEach(() => {
  store = createTestStore();
});
afterEach(() => store.close());

function deliver(first: number, last: number, deliveredAtMs: number | null): void {
  store.writer
    .prepare('INSERT INTO delivery (first_position, last_position, delivered_at) VALUES (?, ?, ?)')
    .run(first, last, deliveredAtMs);
}

/** @returns the position after which it continues */
function begin(atMs: number, ...known: number[]): number {
  const position = positionBeyond(known, atMs);
  store.writer
    .prepare(
      "INSERT INTO version_epoch (number, at, reason, position, orphans) SELECT count(*) + 1, ?, '', ?, 'left' FROM version_epoch",
    )
    .run(atMs, position);
  return position;
}

const lost = (position: number) =>
  isOfLostHistory(store.writer, position) ? lostHistoryOf(store.writer, position, NOW_MS) : null;

test('a position within a delivery, or before the first epoch was known, proves nothing', () => {
  const end = at(NOW_MS - DAY_MS);
  deliver(end - 10, end, NOW_MS - DAY_MS);
  assert.equal(lost(end), null);
  const epoch = begin(NOW_MS - HOUR_MS, end);
  deliver(epoch + 1, epoch + 5, NOW_MS - HOUR_MS);
  for (const position of [end + 1, at(NOW_MS - HOUR_MS), epoch + 1, epoch + 5])
    assert.equal(lost(position), null, `${position - end} after the end`);
});

test('a position soon after the end is of the end that was lost: histories part there', () => {
  const end = at(NOW_MS - DAY_MS);
  deliver(end - 10, end, NOW_MS - DAY_MS);
  assert.deepEqual(lost(end + 1), { parted: end, epochs: 0 });
  assert.deepEqual(lost(at(NOW_MS + HOUR_MS)), { parted: end, epochs: 0 });
  const epoch = begin(NOW_MS - HOUR_MS, end);
  deliver(epoch + 1, epoch + 5, NOW_MS - HOUR_MS);
  assert.deepEqual(lost(epoch + 6), { parted: epoch + 5, epochs: 0 });
});

test('a position a year ahead is of another epoch: what it has in common is unknown, each year may be an epoch', () => {
  const end = at(NOW_MS - DAY_MS);
  deliver(end - 10, end, NOW_MS - DAY_MS);
  const other = at(NOW_MS - HOUR_MS + YEAR_MS);
  assert.deepEqual(lost(other + 3), { parted: 0, epochs: 1 });
  assert.deepEqual(lost(other + at(2 * YEAR_MS)), { parted: 0, epochs: 3 });
  // A later state was restored somewhere else, too, where nobody knew of that one.
  const epoch = begin(NOW_MS, end);
  assert.deepEqual(lost(other + 3), { parted: 0, epochs: 1 });
  deliver(epoch + 1, epoch + 5, NOW_MS);
  assert.deepEqual(lost(other + 3), { parted: 0, epochs: 1 });
});

test('the epoch that begins for it covers every cursor of that history', () => {
  const end = at(NOW_MS - DAY_MS);
  deliver(end - 10, end, NOW_MS - DAY_MS);
  const other = at(NOW_MS - HOUR_MS + YEAR_MS);
  begin(NOW_MS, end, other + 3);
  for (const position of [end + 1, other, other + 3, other + 1_000_000]) assert.equal(lost(position), null);
});
