/** Files that cannot be read or moved have one alert together, which names the first. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StuckFiles } from '../../src/ingest/threads/stuck-files.ts';

test('the alert names the file that has been stuck longest, and counts the others', () => {
  let alert: string | null = null;
  const stuck = new StuckFiles((_name, detail) => {
    alert = detail;
  });
  const fail = (name: string) =>
    stuck.add(Object.assign(new Error('denied'), { code: 'EACCES' }), 'dropped', `/drop/${name}`, name);
  fail('a');
  assert.equal(alert, 'a: denied');
  fail('b');
  fail('c');
  assert.equal(alert, 'a and 2 more files: denied');
  for (const name of ['b', 'c', 'a']) {
    fail(name);
    assert.equal(alert, 'a and 2 more files: denied', 'each retry must leave it as it is');
  }
  stuck.remove('dropped', '/drop/a');
  assert.equal(alert, 'b and 1 more file: denied');
  stuck.keepOnly('dropped', ['/drop/c']);
  assert.equal(alert, 'c: denied');
  stuck.keepOnly('dropped', []);
  assert.equal(alert, null);
});

test('a stuck file is logged when it begins, when its reason changes, and when it ends', () => {
  const logged: unknown[] = [];
  const stuck = new StuckFiles(
    () => {},
    (level, msg, fields) => logged.push([level, msg, fields]),
  );
  const fail = (message: string) =>
    stuck.add(Object.assign(new Error(message), { code: 'EACCES' }), 'dropped', '/drop/a', 'a')?.message;
  assert.deepEqual(
    [fail('denied'), fail('denied'), fail('moved'), fail('moved')],
    ['denied', undefined, 'moved', undefined],
  );
  stuck.keepOnly('dropped', ['/drop/a']);
  assert.deepEqual(logged, []);
  stuck.remove('dropped', '/drop/a');
  stuck.remove('dropped', '/drop/a');
  assert.deepEqual(logged, [['info', 'a file is no longer stuck', { file: 'a' }]]);
});
