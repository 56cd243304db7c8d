/** The statuses of windows over time (contract: States and transitions), as pure rules. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DAY_MS, MINUTE_MS, WINDOW_MS } from '../../src/time.ts';
import { setWindow } from '../../src/windows/ledger.ts';
import { NOTHING_READ, reachText, readReach } from '../../src/windows/reach.ts';
import {
  arrival,
  isLookDue,
  type Known,
  overdueBeforeMs,
  statusAfter,
  statusAfterSearch,
  WINDOW_STATUSES,
  type WindowStatus,
} from '../../src/windows/window-states.ts';
import { createTestStore } from '../support/store.ts';

const START = Date.parse('2026-11-01T10:10:00Z');
/** A window lasts ten minutes, is due ten minutes after its end, and missing a day later. */
const MISSING_FROM = START + WINDOW_MS + 10 * MINUTE_MS + DAY_MS;

function onSearch(
  known: Known | undefined,
  nowMs: number,
  isWaiting = false,
  expectedFromMs: number | null = START,
) {
  return statusAfterSearch(known, START, { nowMs, expectedFromMs, isWaiting });
}

describe('an unknown window', () => {
  test('is missing exactly a day after it was due', () => {
    assert.equal(onSearch(undefined, MISSING_FROM - 1), undefined);
    assert.equal(onSearch(undefined, MISSING_FROM), 'missing');
  });

  test('is not missing while its file waits in the drop folder', () => {
    assert.equal(onSearch(undefined, MISSING_FROM + 90 * DAY_MS, true), undefined);
  });

  test('is not expected before the first finished window, nor while none has finished', () => {
    const later = MISSING_FROM + 90 * DAY_MS;
    assert.equal(onSearch(undefined, later, false, START + WINDOW_MS), undefined);
    assert.equal(onSearch(undefined, later, false, null), undefined);
    assert.equal(onSearch(undefined, later, false, START), 'missing');
  });

  test('the bound of the search is the same rule', () => {
    assert.equal(overdueBeforeMs(MISSING_FROM - 1), START);
    assert.equal(overdueBeforeMs(MISSING_FROM), START + WINDOW_MS);
    assert.equal(overdueBeforeMs(MISSING_FROM + WINDOW_MS - 1), START + WINDOW_MS);
  });
});

describe('a known window', () => {
  test('is abandoned 30 days after it became missing, whatever its age', () => {
    const since = MISSING_FROM + 200 * DAY_MS;
    assert.equal(onSearch({ status: 'missing', since }, since + 30 * DAY_MS - 1), 'missing');
    assert.equal(onSearch({ status: 'missing', since }, since + 30 * DAY_MS), 'abandoned');
  });

  test('stays missing while its file waits', () => {
    assert.equal(onSearch({ status: 'missing', since: START }, START + 60 * DAY_MS, true), 'missing');
  });

  test('done, failed and abandoned do not change', () => {
    for (const status of ['done', 'failed', 'abandoned'] as const) {
      assert.equal(onSearch({ status, since: START }, START + 400 * DAY_MS), status);
    }
  });
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
  const store = createTestStore();
  const set = (count: number, status: WindowStatus) =>
    setWindow(store.writer, {
      export: 'newswire',
      window_start: START + count * WINDOW_MS,
      status,
      since: START,
      file: null,
    });
  const reach = () => reachText(readReach(store.reader, 'newswire', START + DAY_MS));
  try {
    assert.equal(reach(), 'no window finished yet');
    assert.deepEqual(readReach(store.reader, 'imagewire', START), NOTHING_READ);
    set(0, 'done');
    assert.equal(reach(), 'read up to 2026-11-01T10:20:00Z');
    for (const count of [1, 2]) set(count, 'failed');
    set(8, 'done');
    set(6, 'missing');
    assert.equal(
      reach(),
      'read up to 2026-11-01T11:40:00Z, except 7 windows: 2 failed, 1 missing, 4 not arrived',
    );
    for (const count of [1, 2, 3, 4, 5, 6]) set(count, 'done');
    assert.equal(reach(), 'read up to 2026-11-01T11:40:00Z; 1 window before it has not arrived');
  } finally {
    store.close();
  }
});
