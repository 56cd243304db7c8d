/** The program's log: the form of a line, and secrets redacted. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withoutSecrets } from '../src/logger.ts';
import { runScript, source } from './support/scripts.ts';

test('a log line is JSON on stderr with level, time and msg, written also when the process exits at once', () => {
  const end = runScript(
    `import { createLogger } from ${source('logger.ts')};
     const log = createLogger({ level: 'info' });
     log.debug('unseen');
     log.info({ url: 'http://127.0.0.1:1' }, 'listening');
     log.child({ token: 'S3CRET', id: 7 }).child({ apiKey: 'S3CRET' }).warn({ headers: { Authorization: 'S3CRET' } }, 'x');
     log.error(Object.assign(new Error('no'), { code: 'EIO', secret: 'S3CRET', cause: new Error('why') }), 'failed');
     process.exit(3);`,
  );
  assert.equal(end.status, 3);
  assert.equal(end.stdout, '');
  assert.ok(!end.stderr.includes('S3CRET'), end.stderr);
  const lines = end.stderr
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.equal(lines.length, 3);
  const [listening, child, failed] = lines;
  assert.deepEqual(Object.keys(listening), ['level', 'time', 'url', 'msg']);
  assert.deepEqual([listening.level, listening.msg], ['info', 'listening']);
  assert.match(listening.time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.deepEqual([child.id, child.token, child.headers.Authorization], [7, '[redacted]', '[redacted]']);
  assert.deepEqual(Object.keys(failed.err), ['type', 'message', 'code', 'stack', 'cause']);
  assert.deepEqual([failed.err.code, failed.err.cause.message, failed.msg], ['EIO', 'why', 'failed']);
});

test('secrets are redacted by name at any depth, and in URLs; ids stay', () => {
  const clean = withoutSecrets({
    a: [{ client_secret: 's', key_id: 'k1', 'x-api-key': 's', signature: 1, key: null }],
    url: '/photos/5?a=1&signature=abc-_.x&b=2',
    header: 'Bearer ww_abc.def',
    err: new Error('GET /x?access_token=abc failed'),
    text: 'key=ww_live_abcdefghij23_secret, https://user:pass@example.com/a@b and ww_token_abcdefghij23_a-b_c.',
    bytes: Buffer.from('abc'),
  });
  assert.deepEqual(clean.a, [
    {
      client_secret: '[redacted]',
      key_id: 'k1',
      'x-api-key': '[redacted]',
      signature: '[redacted]',
      key: null,
    },
  ]);
  assert.equal(clean.url, '/photos/5?a=1&signature=[redacted]&b=2');
  assert.equal(clean.header, 'Bearer [redacted]');
  assert.match(JSON.stringify(clean.err), /access_token=\[redacted\] failed/);
  assert.equal(
    clean.text,
    'key=ww_live_abcdefghij23_[redacted], https://[redacted]@example.com/a@b and ww_token_abcdefghij23_[redacted]',
  );
  assert.equal(clean.bytes, '[3 bytes]');
  const circle: Record<string, unknown> = {};
  circle.circle = circle;
  assert.doesNotThrow(() => JSON.stringify(withoutSecrets(circle)));
});
