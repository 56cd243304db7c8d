/** The statuses of windows over time (contract: States and transitions), as pure rules. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DAY_MS, MINUTE_MS, WINDOW_MS } from '../../src/time.ts';
import { setWindow } from '../../src/windows/ledger.ts';
import { NOTHING_READ, reachText, readReach } from '../../src/windows/reach.ts';
import {
  arrival,
  isLookDue,
  overdueBeforeMs,
  statusAfter,
  WINDOW_STATUSES,
  type WindowStatus,
} from '../../src/windows/window-states.ts';
import { createTestStore } from '../support/store.ts';

const START = Date.parse('2026-11-01T10:10:00Z');
/** A window lasts ten minutes, is due ten minutes after its end, and missing a day later. */
const MISSING_FROM = START + WINDOW_MS + 10 * MINUTE_MS + DAY_MS;

test('a window is missing exactly a day after it was due', () => {
  assert.equal(overdueBeforeMs(MISSING_FROM - 1), START);
  assert.equal(overdueBeforeMs(MISSING_FROM), START + WINDOW_MS);
  assert.equal(overdueBeforeMs(MISSING_FROM + WINDOW_MS - 1), START + WINDOW_MS);
});

test('a file is read for an unknown, missing or done window, and held for a failed or abandoned one', () => {
  const read = [undefined, ...WINDOW_STATUSES].filter((status) => arrival(status) === 'read');
  assert.deepEqual(read, [undefined, 'done', 'missing']);
});

test('the operator can choose that files for failed windows are read', () => {
  assert.equal(arrival('failed', 'read'), 'read');
  assert.equal(arrival('abandoned', 'read'), 'hold');
});

test('a good file makes any window done; a bad one makes it failed, unless it is done', () => {
  const after = (outcome: 'applied' | 'failed') =>
    Object.fromEntries(WINDOW_STATUSES.map((status) => [status, statusAfter(status, outcome)]));
  const all = (status: WindowStatus) => ({
    done: status,
    failed: status,
    missing: status,
    abandoned: status,
  });
  assert.deepEqual(after('applied'), all('done'));
  assert.deepEqual(after('failed'), { ...all('failed'), done: 'done' });
  assert.equal(statusAfter(undefined, 'failed'), 'failed');
});

test('windows are searched once a day, and at once if the last search is in the future', () => {
  assert.equal(isLookDue(null, START), true);
  assert.equal(isLookDue(START, START + DAY_MS - 1), false);
  assert.equal(isLookDue(START, START + DAY_MS), true);
  assert.equal(isLookDue(START + 1, START), true);
});

test('the progress of an export names the earlier windows that were not read', () => {
  using store = createTestStore();
  const set = (count: number, status: WindowStatus) =>
    setWindow(store.writer, {
      export: 'newswire',
      window_start: START + count * WINDOW_MS,
      status,
      since: START,
      file: null,
    });
  const reach = () => reachText(readReach(store.reader, 'newswire', START + DAY_MS));
  assert.equal(reach(), 'no window finished yet');
  assert.deepEqual(readReach(store.reader, 'imagewire', START), NOTHING_READ);
  set(0, 'done');
  assert.equal(reach(), 'read up to 2026-11-01T10:20:00Z');
  for (const count of [1, 2]) set(count, 'failed');
  set(8, 'done');
  set(6, 'missing');
  assert.equal(
    reach(),
    'read up to 2026-11-01T11:40:00Z, except 2 failed windows, 1 missing window, 4 windows not arrived',
  );
  for (const count of [1, 2, 3, 4, 5, 6]) set(count, 'done');
  assert.equal(reach(), 'read up to 2026-11-01T11:40:00Z, except 1 window not arrived');
});
