/** Which cursors prove that a part of the history is lost, and what they say of the history that issued them. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import {
  epochAt,
  epochTimes,
  numberOfEpoch,
  partingOf,
  positionBeyond,
  positionOfClock,
} from '../../src/log/version-epoch.ts';
import { Refused } from '../../src/refused.ts';
import { DAY_MS, HOUR_MS } from '../../src/time.ts';
import { createTestStore, type TestStore } from '../support/store.ts';

const NOW_MS = Date.UTC(2026, 10, 20);
const END = positionOfClock(NOW_MS - DAY_MS);

let store: TestStore;
beforeEach(() => {
  store = createTestStore();
  deliver(END - 10, END);
});
afterEach(() => store.close());

const deliver = (first: number, last: number) =>
  store.writer.prepare('INSERT INTO delivery (first_position, last_position) VALUES (?, ?)').run(first, last);

function insert(at: number, position: number, announcedAfter: number | null = null): void {
  const sql = `INSERT INTO version_epoch (number, at, reason, position, announced_after, orphans)
    SELECT count(*) + 1, ?, '', ?, ?, 'left' FROM version_epoch`;
  store.writer.prepare(sql).run(at, position, announcedAfter);
}

/** @returns the position after which it continues, and its name */
function begin(atMs: number, number: number): { position: number; epoch: number } {
  const position = positionBeyond(END, atMs, number);
  insert(atMs, position);
  return { position, epoch: epochAt(store.writer, position + 1) };
}

const parting = (position: number, epoch: number) => partingOf(store.writer, { position, epoch });

test('a position within a delivery of its epoch, or lost before the next epoch began, proves nothing', () => {
  assert.equal(parting(END, 0), null);
  const { position, epoch } = begin(NOW_MS - HOUR_MS, 1);
  deliver(position + 1, position + 5);
  for (const lost of [END, END + 1, positionOfClock(NOW_MS)]) assert.equal(parting(lost, 0), null);
  for (const here of [position + 1, position + 5]) assert.equal(parting(here, epoch), null);
});

test('a position after the end is of the end that was lost: histories part there', () => {
  assert.equal(parting(END + 1, 0), END);
  const { position, epoch } = begin(NOW_MS - HOUR_MS, 1);
  deliver(position + 1, position + 5);
  assert.equal(parting(position + 6, epoch), position + 5);
  deliver(position + 10, position + 12);
  assert.equal(parting(position + 6, epoch), position + 5, 'between two deliveries');
  assert.equal(parting(position + 6, 0), END, 'of a clock that was more than a year fast');
});

test('a position of an unknown epoch is of another state, even where a delivery covers it', () => {
  const other = 1 * 65_536 + 17;
  assert.equal(parting(END, other), 0);
  const { position, epoch } = begin(NOW_MS - HOUR_MS, 1);
  deliver(position + 1, position + 5);
  for (const at of [position - 1, position + 1, position + 5, position + 6])
    assert.equal(parting(at, other), 0);
  assert.notEqual(epoch, other);
});

test('versions are raised for epochs of abandoned histories, too', () => {
  insert(NOW_MS - HOUR_MS, END + 1);
  store.writer.prepare('UPDATE version_epoch SET number = 3').run();
  insert(NOW_MS, END + 2);
  store.writer.prepare('UPDATE version_epoch SET number = 4 WHERE number = 2').run();
  assert.deepEqual(epochTimes(store.writer), [...Array(3).fill(NOW_MS - HOUR_MS), NOW_MS]);
});

test('once everything was announced again, in higher versions, cursors before that prove nothing', () => {
  const [first, second] = [1, 2].map((number) => number * 65_536 + 17);
  assert.ok(first !== undefined && second !== undefined);
  const { position, epoch } = begin(NOW_MS - HOUR_MS, 1);
  assert.equal(numberOfEpoch(epoch), 1);
  const beyond = positionBeyond(position, NOW_MS, 2);
  insert(NOW_MS, beyond, 0);
  assert.equal(parting(position + 1, first), null);
  assert.equal(parting(beyond + 1, first), 0, 'later than the epoch');
  assert.equal(parting(position + 1, second), 0, 'its versions were raised as often');
  assert.equal(parting(position + 1, 0), null, 'of a fast clock');
});

test('positions go on a year ahead of the clock after each epoch, and follow it then', () => {
  const first = positionBeyond(END, NOW_MS, 1);
  assert.ok(first > positionOfClock(NOW_MS + 365 * DAY_MS));
  assert.equal(positionOfClock(NOW_MS, 1), first);
  assert.equal(positionBeyond(first, NOW_MS, 2), positionOfClock(NOW_MS, 2));
  assert.ok(positionBeyond(first, 0, 2) > first, 'with a clock that was set back');
  assert.ok(Number.isSafeInteger(positionBeyond(END, Date.UTC(2200), 50)));
});

test('no epoch begins where two positions would be the same number, and positions stop following the clock', () => {
  let [position, epochs] = [END, 0];
  const beginAll = () => {
    for (; epochs < 1_000; epochs += 1) {
      position = positionBeyond(position, NOW_MS, epochs + 1);
      assert.ok(Number.isSafeInteger(position + 3e13), `epoch ${epochs + 1}`);
    }
  };
  assert.throws(beginAll, { name: 'Refused', message: /no room .* empty data folder/ });
  assert.ok(epochs > 200);
  assert.ok(positionOfClock(NOW_MS, epochs) <= position);
  assert.equal(positionOfClock(NOW_MS, 1_000), 0);
  assert.throws(() => positionBeyond(END, NOW_MS, 1_000), Refused);
  assert.throws(() => positionBeyond(Number.MAX_SAFE_INTEGER - 1e13, NOW_MS, 1), Refused);
});
