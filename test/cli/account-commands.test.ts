/** `wirewatch account` and `subscription`, as an operator runs them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { failing, INSTANT, json, prepareAccess, printed } from '../support/access-commands.ts';

prepareAccess();

test('account add, show, set, suspend and resume print the account', async () => {
  const added = await json('account', 'add', 'Life.1_-', '--name', '  Life  ', '--daily-rows', '7');
  assert.match(added.created_at, INSTANT);
  const { created_at } = added;
  const expected = { id: 'Life.1_-', name: 'Life', daily_rows: 7, print_metadata: false, status: 'active' };
  assert.deepEqual(added, { ...expected, suspended_at: null, created_at });
  assert.deepEqual(await json('account', 'show', 'Life.1_-'), added);

  const changed = await json('account', 'set', 'Life.1_-', '--print-metadata', 'on', '--daily-rows', 'none');
  assert.deepEqual(changed, { ...added, print_metadata: true, daily_rows: null });
  const renamed = await json('account', 'set', 'Life.1_-', '--name', 'Leben');
  assert.deepEqual(renamed, { ...changed, name: 'Leben' });

  const suspended = await json('account', 'suspend', 'Life.1_-');
  assert.equal(suspended.status, 'suspended');
  assert.match(suspended.suspended_at, INSTANT);
  assert.deepEqual(await json('account', 'suspend', 'Life.1_-'), suspended);
  assert.deepEqual(await json('account', 'resume', 'Life.1_-'), renamed);
  const told = await printed('account', 'add', 'second', '--name', 'Second');
  assert.match(told, /\nNext, .*: wirewatch subscription add NUMBER --account second$/m);
  const ids = (await json('account', 'list')).map((account: { id: string }) => account.id);
  assert.ok(ids.includes('acme') && ids.includes('Life.1_-'), ids.join());
});

test('adding an existing account, or changing an unknown one, is exit code 1', async () => {
  const found = await json('account', 'show', 'acme');
  await failing(1, /already.*account set acme/, 'account', 'add', 'acme', '--name', 'Else');
  assert.deepEqual(await json('account', 'show', 'acme'), found);
  const unknown = /account nobody does not exist.*wirewatch account add nobody --name/;
  for (const verb of ['show', 'suspend', 'resume']) await failing(1, unknown, 'account', verb, 'nobody');
  await failing(1, /account nobody does not exist/, 'account', 'set', 'nobody', '--name', 'x');
});

test('subscription add, show and set print the subscription', async () => {
  const place = ['--account', 'acme', '--time-zone', 'europe/berlin'];
  const added = await json('subscription', 'add', '999999999999999', ...place);
  const { created_at } = added;
  assert.match(created_at, INSTANT);
  const expected = { id: 999_999_999_999_999, account: 'acme', name: null, time_zone: 'Europe/Berlin' };
  assert.deepEqual(added, { ...expected, content_types: ['text', 'image'], created_at });
  const args = ['subscription', 'set', '999999999999999'];
  const changed = await json(...args, '--name', 'Wire', '--content-types', 'image,text,image');
  assert.deepEqual(changed, { ...added, name: 'Wire' });
  const ofImages = await json(...args, '--account', 'acme', '--content-types', 'image');
  assert.deepEqual(ofImages, { ...changed, content_types: ['image'] });
  assert.equal((await json(...args, '--name', '')).name, null);
  await failing(1, /cannot be moved/, ...args, '--account', 'other', '--name', 'Mine');
  assert.equal((await json('subscription', 'show', '999999999999999')).name, null);
});

test('a subscription needs its account and is added once', async () => {
  await failing(1, /account nobody does not exist/, 'subscription', 'add', '9001', '--account', 'nobody');
  await failing(1, /already exists, in account other/, 'subscription', 'add', '8001', '--account', 'acme');
  await failing(1, /subscription 9001 does not exist.*subscription add 9001/, 'subscription', 'show', '9001');
  const ids = (await json('subscription', 'list')).map((one: { id: number }) => one.id);
  assert.ok(ids.includes(7001) && !ids.includes(9001), ids.join());
});
