/** The form of a key and of an access token, and the rate of token requests by network. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createKey, hashKey, isKeyId, parseKey } from '../../src/auth/key-form.ts';
import { SCOPES } from '../../src/auth/scopes.ts';
import { createAccessTokens, isTokenCurrent } from '../../src/auth/token.ts';
import { createSeenKeys } from '../../src/limits/key-uses.ts';
import { createTokenRate } from '../../src/limits/request-rate.ts';
import { forAll } from '../support/for-all.ts';

test('a key has any prefix, "live", a 12-character id and a 52-character secret, and is parsed', () => {
  forAll(100, fc.stringMatching(/^[a-z][a-z0-9]{0,15}$/), (prefix) => {
    const { id, key } = createKey(prefix);
    assert.match(key, new RegExp(`^${prefix}_live_${id}_[a-z2-7]{52}$`));
    assert.ok(isKeyId(id));
    assert.deepEqual(parseKey(key), { prefix, id, secret: key.slice(-52) });
  });
});

test('every character of the alphabet occurs at every random position', () => {
  const secrets = Array.from({ length: 2000 }, () => createKey('ww').key.slice(-52));
  for (let at = 0; at < 52; at += 1)
    assert.equal(new Set(secrets.map((secret) => secret[at])).size, 32, `place ${at}`);
});

test('a typo in any one character is caught', () => {
  const { key } = createKey('ww');
  const characters = [...'abcdefghijklmnopqrstuvwxyz0123456789_ABC'];
  for (let at = 0; at < key.length; at += 1)
    for (const character of characters.filter((one) => one !== key[at])) {
      const typo = key.slice(0, at) + character + key.slice(at + 1);
      assert.equal(parseKey(typo), null, `${character} at ${at}`);
    }
});

test('swapped neighbours, and a lost or doubled character, are caught', () => {
  forAll(100, fc.nat({ max: 70 }), (at) => {
    const { key } = createKey('ww');
    const [one = '', other = ''] = [key[at], key[at + 1]];
    if (one !== other) assert.equal(parseKey(key.slice(0, at) + other + one + key.slice(at + 2)), null);
    assert.equal(parseKey(key.slice(0, at) + key.slice(at + 1)), null);
    assert.equal(parseKey(key.slice(0, at) + one + key.slice(at)), null);
  });
});

test('anything that is not exactly a key is refused', () => {
  const { key } = createKey('ww');
  const others = ['', ` ${key}`, `${key} `, `${key}\n`, key.toUpperCase(), key.replace('_live_', '_test_')];
  for (const text of others) assert.equal(parseKey(text), null, JSON.stringify(text));
});

const NOW_MS = Date.parse('2026-11-21T10:00:00.123Z');
const { id, key } = createKey('ww');
const KEY = { id, prefix: 'ww', hash: hashKey(key) };
const tokens = createAccessTokens(Buffer.alloc(32, 1));

function readToken(text: string, by = tokens) {
  const token = by.read(text);
  assert.ok(token, text);
  return token;
}

test('a token contains key id, time and scopes, and survives a restart', () => {
  for (const scopes of [[], ...SCOPES.map((scope) => [scope]), [...SCOPES]]) {
    const text = tokens.issue(KEY, scopes, NOW_MS);
    const token = readToken(text, createAccessTokens(Buffer.alloc(32, 1)));
    assert.deepEqual([token.keyId, token.issuedMs, token.scopes], [id, NOW_MS, scopes]);
    assert.ok(token.proves(KEY.hash));
    // It must be valid in a Bearer header (RFC 6750, 2.1).
    assert.match(text, /^[A-Za-z0-9._~+/-]+=*$/);
  }
});

test('a token is valid only for its key and its installation', () => {
  const text = tokens.issue(KEY, ['detections:read'], NOW_MS);
  assert.equal(readToken(text).proves(hashKey(createKey('ww').key)), false);
  assert.equal(readToken(text).proves(Buffer.alloc(32)), false);
  assert.equal(readToken(text, createAccessTokens(Buffer.alloc(32, 2))).proves(KEY.hash), false);
});

test('a token of an earlier version is valid: its format is stable', () => {
  const given = 'ww_token_abcdefghij23_AaHuVl4AAc9ranflU8iIhOSUSom0LkJQ0TaDXLbuTx4sgcTGh4Oc';
  assert.ok(readToken(given, createAccessTokens(Buffer.alloc(32, 7))).proves(Buffer.alloc(32, 9)));
});

test('a token is valid for an hour, with a tolerance of a minute for a clock set back', () => {
  const token = readToken(tokens.issue(KEY, [], NOW_MS));
  const isCurrent = (afterMs: number) => isTokenCurrent(token, NOW_MS + afterMs);
  assert.deepEqual([0, 3_599_999, 3_600_000].map(isCurrent), [true, true, false]);
  assert.deepEqual([-60_000, -60_001].map(isCurrent), [true, false]);
});

test('any change makes a token invalid', () => {
  const text = tokens.issue(KEY, ['detections:read'], NOW_MS);
  for (let at = 0; at < text.length; at += 1)
    for (const letter of ['a', 'b', '_', '-', '2', '='].filter((one) => one !== text[at])) {
      const changed = text.slice(0, at) + letter + text.slice(at + 1);
      assert.notEqual(tokens.read(changed)?.proves(KEY.hash), true, changed);
    }
  const longer = [`${text}=`, `${text}a`, ` ${text}`, `${text}\n`];
  for (const other of [...longer, text.slice(0, -1), text.toUpperCase(), key])
    assert.equal(tokens.read(other), null, JSON.stringify(other));
});

test('a client id has a separate window for networks that proved it, and no more requests in total', () => {
  const rate = createTokenRate(2, createSeenKeys());
  const [home, office, stranger] = ['2001:db8:1:2::1', '192.0.2.1', '198.51.100.1'];
  const take = (address: string) => rate.takeClient('id', address, NOW_MS);
  assert.equal(take(home), null);
  assert.equal(rate.takeProven('id', home, NOW_MS), null);
  assert.equal(take(stranger), null);
  assert.equal(take(stranger), 60, 'the first request from home counted with the strangers');
  assert.equal(take('2001:db8:1:2::2'), null, 'the same network');
  assert.equal(take(home), 60, 'and with the owner');
  assert.equal(rate.takeProven('id', office, NOW_MS), 60, 'one that is proven now is the owner, too');
  assert.equal(take(office), 60, 'another network must not increase the rate');
});
