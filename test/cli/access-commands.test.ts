/** `wirewatch key`, `account` and `subscription`, as an operator runs them: also wrong values, missing folders, concurrency. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { createAccessReader } from '../../src/auth/access-reader.ts';
import { authenticate, readCredential } from '../../src/auth/credential-check.ts';
import { parseKey } from '../../src/auth/key-form.ts';
import { decodeLines, framesOf } from '../../src/log/frame.ts';
import { openAccess } from '../support/access.ts';
import { createKey, failing, INSTANT, json, printed, READ_7001, root } from '../support/access-commands.ts';
import { filesBelow } from '../support/test-folder.ts';
import { words } from '../support/words.ts';

const reader = createAccessReader(join(root, 'access.db'));
after(reader.close);

/** @returns the id of the key as which a request is answered */
const readsAs = (key: string, nowMs = Date.now()) =>
  authenticate(reader, readCredential(`Bearer ${key}`), '10.1.2.3', nowMs).key_id;

test('key create prints the key once, and only its hash is stored', async () => {
  const made = await createKey(
    ...words('--subscriptions 7002:text,7001 --scopes reports:read,detections:read --daily-rows 500'),
    ...words('--expires 2099-01-01T02:00:00+02:00 --allow-address 10.0.0.0/8 --allow-address 2001:DB8::1'),
  );
  const { id, key, created_at, ...rest } = made;
  assert.equal(parseKey(key)?.id, id);
  assert.match(created_at, INSTANT);
  assert.deepEqual(rest, {
    name: 'Test',
    account: 'acme',
    scopes: ['detections:read', 'reports:read'],
    subscriptions: [
      { id: 7001, content_types: null },
      { id: 7002, content_types: ['text'] },
    ],
    expires_at: '2099-01-01T00:00:00Z',
    status: 'active',
    revoked_at: null,
    allow_addresses: ['10.0.0.0/8', '2001:db8::1'],
    daily_rows: 500,
    last_used_at: null,
    rows_today: 0,
  });
  assert.deepEqual(await json('key', 'show', id), { id, ...rest, created_at });
  const secret = key.slice(-52);
  for (const path of filesBelow(root)) {
    const bytes = readFileSync(path);
    const content = path.endsWith('.zst') ? [...framesOf(bytes, path)].flatMap(decodeLines).join() : bytes;
    assert.ok(!content.includes(secret), `${path} contains the secret`);
  }
  using db = openAccess(root);
  const stored = db.prepare<[string], { hash: Buffer }>('SELECT hash FROM api_key WHERE id = ?').get(id);
  assert.deepEqual(stored?.hash, createHash('sha256').update(key).digest());
});

test('key create as text: the key, a note that it is shown once, and a ready-to-run call', async () => {
  const told = await printed('key', 'create', ...READ_7001);
  const key = /^ {2}(ww_live_\S+)$/m.exec(told)?.[1] ?? '';
  assert.notEqual(parseKey(key), null, told);
  assert.match(told, /It is shown only once/);
  const call = `curl -H 'Authorization: Bearer ${key}' 'http://127.0.0.1:8080/v1/detections/changes?since=`;
  assert.ok(told.includes(call), told);
});

test("a key reads its own account's subscriptions and the types they have", async () => {
  const count = (await json('key', 'list')).length;
  const create = (...more: string[]) => ['key', 'create', ...READ_7001, ...more];
  await failing(1, /8001 belongs to account other/, ...create('--subscriptions', '7001,8001'));
  await failing(1, /subscription 9999 does not exist/, ...create('--subscriptions', '9999'));
  await failing(1, /only the content type text, not image/, ...create('--subscriptions', '7002:image'));
  await failing(1, /account nobody does not exist/, ...create('--account', 'nobody'));
  assert.equal((await json('key', 'list')).length, count, 'a refused key was stored');
});

test('key set changes only the given members', async () => {
  const { key, ...made } = await createKey('--allow-address', '10.0.0.1', '--daily-rows', '5');
  const set = (...more: string[]) => json('key', 'set', made.id, ...more);
  const renamed = { ...made, name: 'Renamed' };
  assert.deepEqual(await set('--name', 'Renamed', '--account', 'acme'), renamed);
  const subscriptions = [{ id: 7002, content_types: null }];
  const widened = { ...renamed, subscriptions, scopes: ['exports:create'] };
  assert.deepEqual(await set('--subscriptions', '7002', '--scopes', 'exports:create'), widened);
  const limited = { ...widened, expires_at: '2099-01-01T00:00:00Z', allow_addresses: [], daily_rows: null };
  const limits = words('--expires 2099-01-01T00:00:00Z --allow-address none --daily-rows none');
  assert.deepEqual(await set(...limits), limited);
  assert.deepEqual(await set('--expires', 'none'), { ...limited, expires_at: null });
  await failing(1, /belongs to account acme/, 'key', 'set', made.id, '--account', 'other', '--name', 'x');
  await failing(1, /belongs to account other/, ...words(`key set ${made.id} --subscriptions 8001 --name x`));
  assert.deepEqual(await json('key', 'show', made.id), { ...limited, expires_at: null });
  await failing(1, /key abcdefghij23 does not exist/, 'key', 'set', 'abcdefghij23', '--name', 'x');
});

test('key rotate: a key with the same rights, and an end for the old one', async () => {
  const more = ['--allow-address', '10.0.0.0/8', '--daily-rows', '500'];
  const old = await createKey(...more);
  const { id: _, key, created_at, ...terms } = old;
  const before = Date.now();
  const rotated = await json('key', 'rotate', old.id);
  assert.equal(parseKey(rotated.key)?.id, rotated.id);
  assert.notEqual(rotated.id, old.id);
  const { id, key: newKey, created_at: _at, replaces, replaced_expires_at, ...same } = rotated;
  assert.deepEqual([same, replaces], [terms, old.id]);
  const week = 7 * 86_400_000;
  const end = Date.parse(replaced_expires_at);
  assert.ok(end > before + week - 1000 && end <= Date.now() + week);
  const ending = { ...terms, id: old.id, created_at, expires_at: replaced_expires_at };
  assert.deepEqual(await json('key', 'show', old.id), ending);
  const read = [readsAs(key, end - 1), readsAs(newKey, end)];
  assert.deepEqual(read, [old.id, id], 'both keys work until the old one expires');
  assert.throws(() => readsAs(key, end + 1000), { code: 'unauthorized' });
});

test('key rotate: --overlap and --expires; an earlier end stays; an ended key is refused', async () => {
  const soon = '2099-01-01T00:00:00Z';
  const made = await createKey('--expires', soon);
  const next = await json('key', 'rotate', made.id, '--overlap', '366d', '--expires', 'none');
  assert.equal(next.expires_at, null);
  assert.ok(next.replaced_expires_at < soon);
  await failing(1, /and the new key would end by then/, 'key', 'rotate', made.id, '--overlap', '366d');
  const again = await json('key', 'rotate', made.id, '--overlap', '366d', '--expires', soon);
  assert.deepEqual([again.expires_at, again.replaced_expires_at], [soon, next.replaced_expires_at]);
  const told = await printed('key', 'rotate', next.id, '--overlap', '0');
  const said = `with the rights of ${next.id}: it never expires. The old key expires at .*shown only once`;
  assert.match(told, new RegExp(said, 's'));
  assert.equal((await json('key', 'show', next.id)).status, 'expired');
  await json('key', 'revoke', made.id, '--yes');
  const keys = await json('key', 'list');
  await failing(1, /is expired, so it cannot be rotated.*key create/, 'key', 'rotate', next.id);
  await failing(1, /is revoked/, 'key', 'rotate', made.id);
  await failing(1, /key abcdefghij23 does not exist/, 'key', 'rotate', 'abcdefghij23');
  for (const wrong of ['7', '-1d', '367d', '1w', ''])
    await failing(2, /--overlap: expected a duration/, 'key', 'rotate', again.id, '--overlap', wrong);
  assert.equal((await json('key', 'show', again.id)).status, 'active');
  assert.deepEqual(await json('key', 'list'), keys);
});

test('key revoke asks, takes effect at the next request, and can be repeated', async () => {
  const { id, key } = await createKey();
  const asked = new RegExp(`^wirewatch: key revoke ${id}: .*be undone\\. Not confirmed: add --yes\\.\n$`);
  await failing(2, asked, 'key', 'revoke', key);
  assert.equal((await json('key', 'show', id)).status, 'active');
  assert.equal(readsAs(key), id);
  assert.match(await printed('key', 'revoke', id, '--yes'), new RegExp(`Revoked key ${id}`));
  assert.throws(() => readsAs(key), { code: 'unauthorized' });
  const revoked = await json('key', 'show', id);
  assert.equal(revoked.status, 'revoked');
  assert.match(revoked.revoked_at, INSTANT);
  assert.match(await printed('key', 'revoke', id, '--yes'), /already revoked/);
  assert.deepEqual(await json('key', 'revoke', id, '--yes'), revoked);
  assert.equal((await json('key', 'set', id, '--name', 'Gone')).status, 'revoked');
});

test('a complete key is accepted as its id, a mistyped one is not', async () => {
  const { id, key } = await createKey();
  assert.equal((await json('key', 'show', key)).id, id);
  const typo = key.slice(0, -1) + (key.endsWith('a') ? 'b' : 'a');
  await failing(2, /expected a key id: 12 characters/, 'key', 'show', typo);
});

test('key generate changes nothing; new keys have the configured prefix', async () => {
  const empty = join(root, 'never-made');
  const { id, key, hash, toml, ...rest } = await json('key', 'generate', '--data', empty);
  assert.deepEqual(rest, {});
  assert.ok(toml.startsWith(`[[keys]]\nid = "${id}"\nhash = "${hash}"\nprefix = "ww"\n`), toml);
  assert.equal(parseKey(key)?.id, id);
  assert.equal(hash, createHash('sha256').update(key).digest('hex'));
  assert.ok(!existsSync(empty));
});

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
  await Promise.all(cases.map((args) => failing(2, /./, ...args)));
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
