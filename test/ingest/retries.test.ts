/** Files that cannot be read or moved have one alert together, which names the first. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stuckFiles } from '../../src/ingest/threads/retry-pauses.ts';

test('the alert names the file that has been stuck longest, and counts the others', async () => {
  const alerts: (string | null)[] = [];
  const stuck = stuckFiles({ setCondition: (_, detail) => alerts.push(detail), log() {} });
  const fail = (key: string, message = 'denied') => {
    const error = Object.assign(new Error(message), { code: 'EACCES' });
    return stuck.attempt('dropped', key, key, () => Promise.reject(error));
  };
  await fail('a');
  assert.equal(alerts.at(-1), 'a: denied');
  await fail('b');
  await fail('c');
  assert.equal(alerts.at(-1), 'a and 2 more files: denied');
  await fail('a', 'a retry comes later');
  assert.equal(alerts.at(-1), 'a and 2 more files: denied');
  stuck.keepOnly('dropped', ['b', 'c']);
  assert.equal(alerts.at(-1), 'b and 1 more file: denied');
  stuck.keepOnly('dropped', []);
  assert.equal(alerts.at(-1), null);
});
