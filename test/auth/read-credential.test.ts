/** Parsing the credential of a request, before any lookup. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { createAccessReader } from '../../src/auth/access-reader.ts';
import { authenticate, claimedKeyId, readCredential } from '../../src/auth/authorize.ts';
import { createKey } from '../../src/auth/key-form.ts';
import { HERE, makeKey, NOW_MS, refusal, root, store } from '../support/access-store.ts';

test('Bearer is read in any case, with one credential behind it', () => {
  const { key } = makeKey();
  for (const scheme of ['Bearer', 'bearer', 'BEARER', 'Bearer  ']) {
    authenticate(store, readCredential(`${scheme} ${key}`), HERE, NOW_MS);
  }
});

test('401: a malformed header or credential', () => {
  const { key } = makeKey();
  const typo = key.slice(0, -1) + (key.endsWith('a') ? 'b' : 'a');
  const headers = [
    key,
    `Basic ${key}`,
    `Bearer ${key} ${key}`,
    `Bearer${key}`,
    `Bearer ${key},`,
    'Bearer',
    'Bearer x',
  ];
  for (const header of [...headers, `Bearer ${typo}`, `Bearer ${key.toUpperCase()}`, `Bearer\t${key}`]) {
    const detail = refusal('unauthorized', () => authenticate(store, readCredential(header), HERE, NOW_MS));
    assert.ok(
      !detail.includes(key.slice(-52)) && !detail.includes(typo),
      'the detail repeats the credential',
    );
  }
});

test('a malformed key is 401 without a lookup', () => {
  const absent = createAccessReader(join(root, 'absent.db'));
  refusal('unauthorized', () => authenticate(absent, readCredential('Bearer nonsense'), HERE, NOW_MS));
  const { key } = createKey('ww');
  // One in a thousand keys ends like this.
  const end = key.endsWith('aa') ? 'bb' : 'aa';
  refusal('unauthorized', () =>
    authenticate(absent, readCredential(`Bearer ${key.slice(0, -2)}${end}`), HERE, NOW_MS),
  );
  refusal('unavailable', () => authenticate(absent, readCredential(`Bearer ${key}`), HERE, NOW_MS));
});

test('a mistyped key is reported by its checksum, a truncated one by its form', () => {
  const { key } = createKey('ww');
  const other = key.at(-9) === 'a' ? 'b' : 'a';
  const typo = `${key.slice(0, -9)}${other}${key.slice(-8)}`;
  const detail = (text: string) =>
    refusal('unauthorized', () => authenticate(store, readCredential(`Bearer ${text}`), HERE, NOW_MS));
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
