/** Whether a request may be answered: reading its credential, and checking it. */
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { renameSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createAccessReader } from '../../src/auth/access-reader.ts';
import { addAccount, setAccount } from '../../src/auth/accounts.ts';
import { grantToken } from '../../src/auth/client-credentials.ts';
import { authenticate, claimedKeyId, readCredential } from '../../src/auth/credential-check.ts';
import { createKey, hashKey } from '../../src/auth/key-form.ts';
import { addKey, revokeKey, setKey } from '../../src/auth/keys.ts';
import { addSubscription } from '../../src/auth/subscriptions.ts';
import { createAccessTokens } from '../../src/auth/token.ts';
import { Refused } from '../../src/refused.ts';
import { writing } from '../../src/store/database.ts';
import { openAccess } from '../support/access.ts';
import { db, HERE, makeKey, NOW_MS, root, store } from '../support/access-store.ts';
import { patchedAll } from '../support/patched-fs.ts';
import { refusal } from '../support/refusal.ts';
import { testFolder } from '../support/test-folder.ts';

const TERMS = { account_id: 'acme', prefix: 'ww', name: 'x', scopes: [], subscriptions: [] };

const ask = (key: string, address = HERE, nowMs = NOW_MS) =>
  authenticate(store, readCredential(`Bearer ${key}`), address, nowMs);

test('Bearer is read in any case; a malformed header or credential is 401', () => {
  const { key } = makeKey();
  for (const scheme of ['Bearer', 'bearer', 'BEARER', 'Bearer  '])
    authenticate(store, readCredential(`${scheme} ${key}`), HERE, NOW_MS);
  const typo = key.slice(0, -1) + (key.endsWith('a') ? 'b' : 'a');
  const headers = [key, `Basic ${key}`, `Bearer ${key} ${key}`, `Bearer${key}`, `Bearer\t${key}`, 'Bearer'];
  const credentials = ['x', typo, key.toUpperCase(), `${key},`];
  for (const header of [...headers, ...credentials.map((one) => `Bearer ${one}`)]) {
    const detail = refusal('unauthorized', () => authenticate(store, readCredential(header), HERE, NOW_MS));
    assert.ok(!detail.includes(key.slice(-52)) || detail.includes(typo), 'the detail repeats the credential');
  }
});

test('a malformed key is 401 without a lookup', () => {
  const absent = createAccessReader(join(root, 'absent.db'));
  const { key } = createKey('ww');
  // One in a thousand keys ends like this.
  const typo = key.slice(0, -2) + (key.endsWith('aa') ? 'bb' : 'aa');
  const lookUp = (text: string) => authenticate(absent, readCredential(`Bearer ${text}`), HERE, NOW_MS);
  for (const text of ['nonsense', typo]) refusal('unauthorized', () => lookUp(text));
  refusal('unavailable', () => lookUp(key));
});

test('a mistyped key is reported by its checksum, a truncated one by its form', () => {
  const { key } = createKey('ww');
  const typo = `${key.slice(0, -9)}${key.at(-9) === 'a' ? 'b' : 'a'}${key.slice(-8)}`;
  const detail = (text: string) => refusal('unauthorized', () => ask(text));
  assert.match(detail(typo), /typing error: its checksum does not match. Copy the key again/);
  assert.match(detail(key.slice(0, -1)), /Check that the complete key was copied/);
  assert.doesNotMatch(detail(key), /typing error|copied/, 'unknown');
  assert.match(detail('ww_token_abcdefghijkl_cut'), /^The access token is damaged .*Request a new one/);
});

test('the claimed key id is parsed without a lookup', () => {
  const { id, key } = createKey('abc');
  assert.equal(claimedKeyId(`bearer ${key}`), id);
  assert.equal(claimedKeyId(`Bearer ${key.slice(0, -1)}`), id);
  assert.equal(claimedKeyId(`Bearer abc_token_${id}_AaHuVl4A`), id);
  for (const header of [undefined, '', key, 'Bearer x']) assert.equal(claimedKeyId(header), null);
});

test('a wrong secret is refused, even right after the right one', () => {
  const { id, key } = makeKey();
  for (let times = 0; times < 2; times += 1) {
    assert.equal(ask(key).key_id, id);
    const last = key.at(-1) === 'a' ? 'b' : 'a';
    refusal('unauthorized', () => ask(key.slice(0, -1) + last));
    const other = createKey('ww').key;
    refusal('unauthorized', () => ask(key.slice(0, -52) + other.slice(-52)));
    const unproven = store.findKey(id, () => false);
    assert.equal(unproven, null);
  }
});

test('401: unknown, wrong, expired and revoked keys get the same response', () => {
  const revoked = makeKey();
  revokeKey(db, revoked.id, NOW_MS);
  const expired = makeKey({ expires_at: NOW_MS });
  // A well-formed key with the id of an existing key and another secret.
  const stranger = createKey('ww');
  addKey(db, { ...TERMS, id: stranger.id, hash: hashKey(createKey('ww').key) }, NOW_MS);
  const details = [createKey('ww').key, stranger.key, expired.key, revoked.key].map((key) =>
    refusal('unauthorized', () => ask(key)),
  );
  assert.equal(new Set(details).size, 1, details.join('\n'));
});

test('a change by the operator applies to the next request', () => {
  const { id, key } = makeKey();
  ask(key);
  setKey(db, id, { scopes: ['exports:create'], daily_rows: 9 });
  setAccount(db, 'acme', { name: 'Acme' });
  const { scopes, daily_rows, account } = ask(key);
  assert.deepEqual([scopes, daily_rows, account.name], [['exports:create'], 9, 'Acme']);
  setAccount(db, 'acme', { name: 'Acme News' });
  revokeKey(db, id, NOW_MS);
  refusal('unauthorized', () => ask(key));
});

test('a subscription of another account is not read, even if a row grants it', () => {
  addSubscription(db, { id: 8001, account_id: 'other' }, NOW_MS);
  const { id, key } = makeKey();
  assert.throws(() => setKey(db, id, { subscriptions: [{ id: 8001, content_types: null }] }), Refused);
  const insert = db.prepare('INSERT INTO api_key_subscription (key_id, subscription_id) VALUES (?, 8001)');
  writing(db, () => insert.run(id));
  assert.deepEqual(ask(key).subscriptions, []);
});

test('503: a missing store, a damaged one and a broken row, each until it is repaired', () => {
  const folder = testFolder();
  const path = join(folder, 'access.db');
  const reader = createAccessReader(path);
  const { id, key } = createKey('ww');
  const request = () => authenticate(reader, readCredential(`Bearer ${key}`), HERE, NOW_MS);
  try {
    refusal('unavailable', request);
    const writer = openAccess(folder, { create: true });
    refusal('unauthorized', request);
    addAccount(writer, { id: 'acme', name: 'A', daily_rows: null }, NOW_MS);
    addKey(writer, { ...TERMS, id, hash: hashKey(key) }, NOW_MS);
    request();
    writer.prepare("UPDATE api_key SET scopes = '['").run();
    refusal('unavailable', request);
    writer.prepare("UPDATE api_key SET scopes = '[]'").run();
    request();
    reader.close();
    writer.close();
    request();

    renameSync(path, join(folder, 'away'));
    refusal('unavailable', request);
    writeFileSync(path, 'no database '.repeat(5000));
    refusal('unavailable', request);
    truncateSync(path, 0);
    refusal('unavailable', request);
    renameSync(join(folder, 'away'), path);
    request();
  } finally {
    reader.close();
  }
});

test('503: a store that another process has locked', () => {
  const folder = testFolder();
  const reader = createAccessReader(join(folder, 'access.db'));
  const request = () => authenticate(reader, readCredential(`Bearer ${createKey('ww').key}`), HERE, NOW_MS);
  try {
    openAccess(folder, { create: true }).close();
    const hog = openAccess(folder);
    hog.pragma('locking_mode = EXCLUSIVE');
    hog.exec('BEGIN EXCLUSIVE; COMMIT');
    refusal('unavailable', request);
    hog.close();
    refusal('unauthorized', request);
  } finally {
    reader.close();
  }
});

/** A key with a valid checksum, the id of a stored key and another secret. */
function keyOfKnownId(): { id: string; key: string } {
  const stranger = createKey('ww');
  const { id } = makeKey();
  db.pragma('foreign_keys = OFF');
  writing(db, () => db.prepare('UPDATE api_key SET id = ? WHERE id = ?').run(stranger.id, id));
  db.pragma('foreign_keys = ON');
  return stranger;
}

/** The calls of node:crypto that some work makes, in order: they take nearly all of the time of a refusal. */
function cryptoCalls(work: () => void): string[] {
  const calls: string[] = [];
  const names = ['createHash', 'createHmac', 'hash', 'timingSafeEqual'];
  using _ = patchedAll(crypto, names, (call, args, name) => {
    calls.push(name);
    return call(...args);
  });
  work();
  return calls;
}

test('a refusal does the same work whether the key id exists or not: its time does not reveal it', () => {
  const tokens = createAccessTokens(Buffer.alloc(32, 1));
  const refused = (text: string) =>
    refusal('unauthorized', () => authenticate(store, readCredential(text, tokens), HERE, NOW_MS));
  const requests: Record<string, (claim: { id: string; key: string }) => void> = {
    key: ({ key }) => refused(`Bearer ${key}`),
    token: ({ id }) => refused(`Bearer ww_token_${id}_${'A'.repeat(52)}`),
    secret: ({ id, key }) => {
      const asked = { client: { id, secret: key.slice(-52) }, scope: '' };
      assert.equal(grantToken({ store, tokens }, asked, HERE, NOW_MS).kind, 'invalid_client');
    },
  };
  for (const [name, request] of Object.entries(requests)) {
    const [known, unknown] = [keyOfKnownId(), createKey('ww')].map((claim) =>
      cryptoCalls(() => request(claim)),
    );
    assert.deepEqual(known, unknown, name);
    assert.ok(known?.includes('timingSafeEqual'), name);
  }
});
