/** Log lines are JSON, and never contain secrets, in any field. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createKey } from '../../src/auth/key-form.ts';
import { withoutSecrets } from '../../src/logger.ts';
import { runScript, source } from '../support/scripts.ts';
import { words } from '../support/words.ts';

const { key } = createKey('ww');

const written = (fields: Record<string, unknown>) => JSON.stringify(withoutSecrets(fields));

test('a field with a secret name has no value', () => {
  const names = 'authorization Authorization x-api-key clientSecret access_token signature password';
  for (const name of words(names))
    for (const fields of [{ [name]: key }, { headers: { [name]: key } }, { list: [{ [name]: 7 }] }]) {
      const line = written(fields);
      assert.match(line, /\[redacted\]/, name);
      assert.ok(!line.includes(key) && !line.includes('7'), name);
    }
  const harmless = { key_id: 'abc', secret: null, token: true };
  assert.equal(written(harmless), JSON.stringify(harmless));
});

test('a string, also in a list, has no credential and no signature', () => {
  const texts = [
    `Authorization: Bearer ${key}`,
    `basic ${btoa(key)}`,
    `GET /photos/1?signature=${key}&x=1`,
    `https://example.com/?client_secret=${key}`,
    `https://user:${key}@example.com/`,
  ];
  for (const text of texts)
    for (const value of [text, [text], { deep: { deeper: [text] } }]) {
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
  const below = new Error('below', { cause: { authorization: key, text: secret } });
  const inCause = new Error('refused', { cause: below });
  for (const err of [inMessage, inStack, inCause]) {
    const line = written({ err });
    assert.match(line, /\[redacted\]/);
    assert.ok(!line.includes(key), line);
  }
});

test('a log line is JSON on stderr with level, time and msg, written also when the process exits at once', () => {
  const end = runScript(
    `import { createLogger } from ${source('logger.ts')};
     const log = createLogger({ level: 'info' });
     log.debug('unseen');
     log.info({ url: 'http://127.0.0.1:1' }, 'listening');
     log.warn({ token: 'S3CRET', id: 7, headers: { Authorization: 'S3CRET' } }, 'x');
     log.error(Object.assign(new Error('no'), { code: 'EIO', secret: 'S3CRET', cause: new Error('why') }), 'failed');
     process.exit(3);`,
  );
  assert.deepEqual([end.status, end.stdout], [3, '']);
  assert.ok(!end.stderr.includes('S3CRET'), end.stderr);
  const lines = end.stderr.trimEnd().split('\n');
  assert.equal(lines.length, 3);
  const [listening, warned, failed] = lines.map((line) => JSON.parse(line));
  assert.deepEqual(Object.keys(listening), ['level', 'time', 'url', 'msg']);
  assert.deepEqual([listening.level, listening.msg], ['info', 'listening']);
  assert.match(listening.time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.deepEqual([warned.id, warned.token, warned.headers.Authorization], [7, '[redacted]', '[redacted]']);
  assert.deepEqual(Object.keys(failed.err), ['type', 'message', 'code', 'stack', 'cause']);
  assert.deepEqual([failed.err.code, failed.err.cause.message, failed.msg], ['EIO', 'why', 'failed']);
});
