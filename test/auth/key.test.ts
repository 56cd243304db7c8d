/** The form of a key. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createKey, isKeyId, parseKey } from '../../src/auth/key-form.ts';
import { forAll } from '../support/for-all.ts';

test('a key has prefix, "live", a 12-character id and a 52-character secret', () => {
  const { id, key } = createKey('ww');
  assert.match(key, /^ww_live_[a-z2-7]{12}_[a-z2-7]{52}$/);
  assert.equal(key.split('_')[2], id);
  assert.ok(isKeyId(id));
});

test('a generated key is parsed, with any prefix', () => {
  forAll(100, fc.stringMatching(/^[a-z][a-z0-9]{0,15}$/), (prefix) => {
    const { id, key } = createKey(prefix);
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
  for (let at = 0; at < key.length; at += 1) {
    for (const character of characters) {
      if (character === key[at]) continue;
      assert.equal(parseKey(key.slice(0, at) + character + key.slice(at + 1)), null, `${character} at ${at}`);
    }
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
