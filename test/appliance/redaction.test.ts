/** Log lines never contain secrets, in any field. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createKey } from '../../src/auth/key.ts';
import { withoutSecrets } from '../../src/logger.ts';

const { key } = createKey('ww');

const written = (fields: Record<string, unknown>) => JSON.stringify(withoutSecrets(fields));

test('a field with a secret name has no value', () => {
  for (const name of [
    'authorization',
    'Authorization',
    'x-api-key',
    'clientSecret',
    'access_token',
    'signature',
    'password',
  ])
    for (const fields of [{ [name]: key }, { headers: { [name]: key } }, { list: [{ [name]: 7 }] }]) {
      const line = written(fields);
      assert.match(line, /\[redacted\]/, name);
      assert.ok(!line.includes(key) && !line.includes('7'), name);
    }
  assert.equal(
    written({ key_id: 'abc', secret: null, token: true }),
    '{"key_id":"abc","secret":null,"token":true}',
  );
});

test('a string, also in a list or map, has no credential and no signature', () => {
  const texts = [
    `Authorization: Bearer ${key}`,
    `basic ${btoa(key)}`,
    `GET /photos/1?signature=${key}&x=1`,
    `https://example.com/?client_secret=${key}`,
  ];
  for (const text of texts)
    for (const value of [text, [text], new Map([['a', text]]), { deep: { deeper: [text] } }]) {
      const line = written({ value });
      assert.match(line, /\[redacted\]/, text);
      assert.ok(!line.includes(key) && !line.includes(btoa(key)), text);
    }
});

test('an error has none in its message, stack and causes', () => {
  const secret = `Bearer ${key}`;
  const inMessage = new Error(`refused: ${secret}`);
  const inStack = new Error('refused');
  inStack.stack = `Error: refused\n    at ${secret}`;
  const inCause = new Error('refused', {
    cause: new Error('below', { cause: { authorization: key, text: secret } }),
  });
  for (const err of [inMessage, inStack, inCause]) {
    const line = written({ err });
    assert.match(line, /\[redacted\]/);
    assert.ok(!line.includes(key), line);
  }
});
