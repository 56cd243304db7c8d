/** How far an export was read, in words. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { reachText } from '../../src/operations/status-lines.ts';
import { DAY_MS, WINDOW_MS } from '../../src/time.ts';
import { NOTHING_READ, readReach } from '../../src/windows/reach.ts';
import type { WindowStatus } from '../../src/windows/window-states.ts';
import { createTestStore } from '../support/store.ts';

const START = Date.parse('2026-11-01T10:10:00Z');

test('the progress of an export names the earlier windows that were not read', () => {
  using store = createTestStore();
  const set = (count: number, status: WindowStatus) =>
    store.setWindow(status, START + count * WINDOW_MS, START);
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
