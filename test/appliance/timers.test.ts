/** Finished waits leave no timer or listener: thousands per minute would add up. */
import assert from 'node:assert/strict';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { createWaiting } from '../../src/http/waiting.ts';
import { createUsageKeeper } from '../../src/limits/usage.ts';
import { WakeableTimer } from '../../src/wakeable-timer.ts';
import { testFolder } from '../support/test-folder.ts';

/** Longer than any test: such a timer exists until it is cleared. */
const LONG_MS = 3_600_000;

const timers = () => process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;

test('a sleep that is ended early', async () => {
  const before = timers();
  const timer = new WakeableTimer();
  const sleep = timer.sleep(LONG_MS);
  assert.equal(timers(), before + 1);
  timer.wake();
  await sleep;
  assert.equal(timers(), before);
});

test('a request that waited for a change', async () => {
  const before = timers();
  const waiting = createWaiting(10);
  const socket = new Socket();
  {
    using wait = waiting.begin('key', LONG_MS, socket);
    const change = wait.forChange();
    assert.equal(timers(), before + 1);
    waiting.changed();
    assert.equal(await change, true);
  }
  assert.equal(timers(), before);
  assert.equal(socket.listenerCount('close'), 0);
  assert.equal(socket.listenerCount('end'), new Socket().listenerCount('end'));
});

test('requests that wait when the server closes', async () => {
  const before = timers();
  const waiting = createWaiting(10);
  const waits = [1, 2].map(() => waiting.begin('key', LONG_MS, new Socket()).forChange());
  waiting.close();
  assert.deepEqual([waiting.count(), timers()], [0, before]);
  assert.deepEqual(await Promise.all(waits), [false, false]);
});

test('a closed usage keeper', async ({ mock }) => {
  mock.timers.enable({ apis: ['setInterval'] });
  const textNow = mock.fn(() => 'text');
  const keeper = createUsageKeeper(join(testFolder(), 'usage'), textNow, () => {});
  mock.timers.tick(5000);
  assert.ok(textNow.mock.callCount() > 0);
  await keeper.close();
  textNow.mock.resetCalls();
  mock.timers.tick(10_000);
  assert.equal(textNow.mock.callCount(), 0);
});
