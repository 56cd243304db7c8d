/** The request rate, and how a request is logged. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { assertProblem } from '../support/every-endpoint.ts';
import { NOW_MS, startTestServer, type TestServer } from '../support/server.ts';

const CHANGES = '/v1/detections/changes';
const GOOD = `${CHANGES}?since=2026-11-21T11:00:00Z`;

let server: TestServer;

beforeEach(async () => {
  server = await startTestServer({ requests_per_minute: 3, base_url: 'https://api.example/ww' });
});

afterEach(() => server.close());

test('over the rate, Retry-After is the reset, and the whole rate is there after it', async () => {
  const { key } = server.makeKey();
  const { key: other } = server.makeKey();
  for (let count = 0; count < 3; count += 1) assert.equal((await server.get(GOOD, key)).status, 200);
  server.setNow(NOW_MS + 20_001);
  const response = await server.get(GOOD, key);
  assert.equal(response.headers.get('retry-after'), '40');
  assert.equal(response.headers.get('ratelimit-reset'), '40');
  assert.equal(response.headers.get('ratelimit-policy'), '3;w=60');
  await assertProblem(response, [429, 'rate_limited', 'Too many requests'], 4, 'over the rate');
  assert.equal((await server.get(GOOD, other)).status, 200, 'another key must have its own limit');
  server.setNow(NOW_MS + 60_000);
  const fresh = await server.get(GOOD, key);
  assert.deepEqual([fresh.status, fresh.headers.get('ratelimit-remaining')], [200, '2']);
});

test('every request is logged once, without key and query', async () => {
  const { id, key } = server.makeKey();
  server.store.deliver([{ content_type: 'text', version: 1, row: {} }], NOW_MS - 1000);
  const good = await server.get(`${GOOD}&source_id=none`, key);
  const first = await server.get(GOOD, key);
  const missing = await server.get(`/x/${'y.'.repeat(2500)}?${key}`);
  const lines = server.lines.filter(({ msg }) => msg === 'request');
  const shown = lines.map(({ request_id, key_id, method, path, status, rows }) => [
    request_id,
    key_id,
    method,
    String(path).slice(0, 30),
    status,
    rows,
  ]);
  assert.deepEqual(shown, [
    [good.headers.get('x-request-id'), id, 'GET', CHANGES, 200, 0],
    [first.headers.get('x-request-id'), id, 'GET', CHANGES, 200, 1],
    [missing.headers.get('x-request-id'), undefined, 'GET', `/x/${'y.'.repeat(13)}y`, 404, undefined],
  ]);
  for (const { duration_ms, level } of lines) assert.ok(typeof duration_ms === 'number' && level === 30);
  const text = JSON.stringify(server.lines);
  assert.doesNotMatch(text, new RegExp(key.slice(-20)));
  assert.doesNotMatch(text, /source_id/);
  assert.ok(text.length < 5000, 'a long path must be truncated');
});

test('a key in a path is not logged, even percent-encoded or with a slash in it', async () => {
  const { id, key } = server.makeKey();
  const secret = key.slice(-52);
  for (const path of [key, key.replaceAll('_', '%5F'), key.replace('_live_', '_live_/')])
    assert.equal((await server.get(`/v1/x/${path}`)).status, 404);
  const paths = server.lines.filter(({ msg }) => msg === 'request').map(({ path }) => path);
  const shown = `/v1/x/ww_live_${id}_[redacted]`;
  assert.deepEqual(paths, [shown, shown, '/v1/x/[redacted]']);
  assert.ok(!JSON.stringify(server.lines).includes(secret));
});

test('a logged path is truncated, without showing part of a secret', async () => {
  const path = `/${'x.'.repeat(110)}`;
  for (const end of [path, server.makeKey().key.slice(-52)]) await server.get(`${path}${end}`);
  const paths = server.lines.filter(({ msg }) => msg === 'request').map((line) => String(line.path));
  assert.deepEqual(paths, [`${path}${path}`.slice(0, 256), `${path}[redacted]`]);
});
