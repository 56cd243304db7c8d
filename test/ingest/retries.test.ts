/** Files that cannot be read or moved have one alert together, which names the first. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StuckFiles } from '../../src/ingest/threads/retry-pauses.ts';

function recorded() {
  const alerts: (string | null)[] = [];
  const lines: string[] = [];
  const stuck = new StuckFiles({
    setCondition: (_name, detail) => alerts.push(detail),
    log: (level, msg, { file } = {}) => lines.push(`${level} ${msg.slice(0, 20)} ${file}`),
  });
  return {
    ...{ stuck, alerts, lines },
    /** @param key another one for each attempt: a file is not tried again before its time */
    fail: (key: string, message = 'denied') =>
      stuck.attempt('dropped', key, key, () =>
        Promise.reject(Object.assign(new Error(message), { code: 'EACCES' })),
      ),
  };
}

test('the alert names the file that has been stuck longest, and counts the others', async () => {
  const { stuck, alerts, fail } = recorded();
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

test('a stuck file is logged when it begins, and when it ends; other errors are no matter of one file', async () => {
  const { stuck, lines, fail } = recorded();
  await fail('a');
  await fail('a');
  stuck.keepOnly('dropped', []);
  stuck.keepOnly('dropped', []);
  assert.deepEqual(lines, ['error a file cannot be rea a', 'info a file is no longer  a']);
  await assert.rejects(
    stuck.attempt('dropped', 'a', 'a', () => Promise.reject(new Error('a fault'))),
    /a fault/,
  );
  assert.equal(lines.length, 2);
});
