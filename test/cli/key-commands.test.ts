/** `wirewatch key`, as an operator runs it. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { createAccessReader } from '../../src/auth/access-reader.ts';
import { authenticate, readCredential } from '../../src/auth/credential-check.ts';
import { parseKey } from '../../src/auth/key-form.ts';
import { decodeLines, framesOf } from '../../src/log/frame.ts';
import { openAccess } from '../support/access.ts';
import {
  createKey,
  failing,
  INSTANT,
  json,
  prepareAccess,
  printed,
  READ_7001,
  root,
  wirewatch,
} from '../support/access-commands.ts';
import { filesBelow } from '../support/test-folder.ts';
import { words } from '../support/words.ts';

prepareAccess();

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
    await failing(2, /Expected a duration/, 'key', 'rotate', again.id, '--overlap', wrong);
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

test('a complete key is accepted as its id, and a mistyped one is not repeated', async () => {
  const { id, key } = await createKey();
  assert.equal((await json('key', 'show', key)).id, id);
  const typo = key.slice(0, -1) + (key.endsWith('a') ? 'b' : 'a');
  const end = await wirewatch('key', 'show', typo);
  assert.equal(end.status, 2);
  assert.ok(!end.stderr.includes(typo.slice(-30)), end.stderr);
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
