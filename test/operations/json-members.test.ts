/** Members as JSON, which has a null: what it takes away, and where it means nothing. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readMembers } from '../../src/operations/member.ts';
import { operationAt } from '../../src/operations/table.ts';

function read(path: string, given: object): object {
  const operation = operationAt(path);
  assert.ok(operation);
  return readMembers(operation.members, given);
}

test('null takes away what can be taken away', () => {
  const id = 'abcdefghij23';
  for (const name of ['daily_rows', 'expires'])
    assert.deepEqual(read('key-set', { id, [name]: null }), { id, [name]: null });
  assert.deepEqual(read('key-set', { id, allow_address: null }), { id, allow_address: [] });
  assert.deepEqual(read('subscription-set', { id: 7001, name: null }), { id: 7001, name: null });
});

test('null and true are no texts: nothing gets the name "none" or "on"', () => {
  for (const [path, given] of [
    ['account-add', { id: 'acme', name: null }],
    ['account-add', { id: null, name: 'Acme' }],
    ['account-set', { id: 'acme', name: null }],
    ['subscription-add', { id: 7001, account: 'acme', name: null }],
    ['key-set', { id: 'abcdefghij23', name: null }],
    ['console', { as: null }],
    ['account-add', { id: true, name: 'Acme' }],
    ['console', { as: false }],
  ] as const)
    assert.throws(() => read(path, given), /(name|id|as): expected a text, found (null|true|false)$/, path);
});
