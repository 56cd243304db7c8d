/** Common to the commands on accounts, subscriptions and keys: wrong values, missing folders, concurrency. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  failing,
  json,
  prepareAccess,
  printed,
  READ_7001,
  root,
  wirewatch,
} from '../support/access-commands.ts';
import { words } from '../support/words.ts';

prepareAccess();

test('malformed values are exit code 2', async () => {
  const lines = `
    account add a+b --name x
    account add ${'a'.repeat(65)} --name x
    account add long --name ${'x'.repeat(201)}
    account add nameless
    account set acme
    account set acme --daily-rows 0
    account set acme --daily-rows 01
    account set acme --daily-rows 1e3
    account set acme --print-metadata yes
    subscription add 0 --account acme
    subscription add 1000000000000000 --account acme
    subscription add 9 --account acme --time-zone +01:00
    subscription add 9 --account acme --content-types video
    key set abcdefghij23`;
  const options = `
    --scopes detections:write
    --scopes detections:read,
    --expires 2099-02-01
    --subscriptions 7001,7001:text
    --subscriptions 7001:video
    --expires 2020-01-01T00:00:00Z
    --expires 2099-02-30T00:00:00Z
    --allow-address 10.0.0.0/33
    --allow-address 10.0.0.1 --allow-address none
    --daily-rows -1`;
  const listed = (text: string) => text.trim().split('\n').map(words);
  const cases = [
    ['account', 'add', 'blank', '--name', '  '],
    ...listed(lines),
    ...listed(options).map((more) => ['key', 'create', ...READ_7001, ...more]),
  ];
  const before = await json('key', 'list');
  const ends = await Promise.all(cases.map((args) => wirewatch(...args)));
  for (const [at, end] of ends.entries())
    assert.equal(end.status, 2, `${cases[at]?.join(' ')}: ${end.stderr}`);
  assert.deepEqual(await json('key', 'list'), before);
});

test('a missing option is wrong usage', () =>
  failing(2, /required option '--name <name>' not specified\nTry: /, 'account', 'add', 'third'));

test('without a data folder, commands that create no installation are exit code 78, with a hint', async () => {
  const empty = join(root, 'empty');
  const lines = `account list, account suspend acme, subscription show 7001, key list, alert list, status,
    ingest status, ingest resume, ingest explain newswire.20261121T1010Z.ndjson, verify, compact,
    window reset newswire 20261121T1010Z`;
  const commands = [
    ...lines.split(',').map(words),
    ['key', 'create', ...READ_7001],
    ['backup', join(root, 'copy')],
    ['ingest', 'explain', join(import.meta.dirname, 'access-commands.test.ts')],
  ];
  for (const args of commands)
    await failing(78, /no installation in .*wirewatch account add/, ...args, '--data', empty);
  assert.ok(!existsSync(empty));
});

test('several commands at once on a new folder all succeed', async () => {
  const fresh = join(root, 'fresh');
  const ids = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
  await Promise.all(ids.map((id) => printed('account', 'add', id, '--name', id, '--data', fresh)));
  const idsOf = (entries: { id: string }[]) => entries.map(({ id }) => id);
  assert.deepEqual(idsOf(await json('account', 'list', '--data', fresh)), ids);
  const audited = idsOf(await json('audit', '--data', fresh)).filter((id) => ids.includes(id));
  assert.deepEqual(audited.sort(), ids);
  assert.ok(!readdirSync(fresh).some((name) => name.includes('.new-')), 'no draft is left');
});

test('ingest can be paused before the first start, and a new installation is told as such', async () => {
  const paused = join(root, 'paused');
  const created = /^Created a new installation in \S+paused\. If you meant another one, .* --data\.\nIngest /;
  assert.match(await printed('ingest', 'pause', '--data', paused), created);
  assert.match(await printed('ingest', 'pause', '--data', paused), /^Ingest has been paused since /);
});
