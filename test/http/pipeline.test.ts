/** The order in which a request is checked, problem documents and their headers (contract: Errors). */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { NOW_MS, startTestServer, type TestServer } from '../support/server.ts';

const CHANGES = '/v1/detections/changes';
const GOOD = `${CHANGES}?since=2026-11-21T11:00:00Z`;
const RATE = ['ratelimit-limit', 'ratelimit-policy', 'ratelimit-remaining', 'ratelimit-reset'];

let server: TestServer;

beforeEach(async () => {
  server = await startTestServer({ requests_per_minute: 3 });
});

afterEach(() => server.close());

interface Expectation {
  readonly status: number;
  readonly code: string;
  readonly title: string;
  /** Whether the rate-limit headers are present. */
  readonly rate: boolean;
}

const KINDS = {
  invalid_request: [400, 'Invalid request'],
  unauthorized: [401, 'Unauthorized'],
  forbidden: [403, 'Forbidden'],
  not_found: [404, 'Not found'],
  method_not_allowed: [405, 'Method not allowed'],
  rate_limited: [429, 'Too many requests'],
  internal: [500, 'Internal error'],
  unavailable: [503, 'Service unavailable'],
} as const;

function problem(code: keyof typeof KINDS, rate: boolean): Expectation {
  const [status, title] = KINDS[code];
  return { status, code, title, rate };
}

async function assertProblem(
  response: Response,
  { status, code, title, rate }: Expectation,
): Promise<string> {
  assert.equal(response.status, status);
  assert.equal(response.headers.get('content-type'), 'application/problem+json');
  assert.equal(response.headers.get('cache-control'), 'no-store');
  for (const name of RATE) assert.equal(response.headers.has(name), rate, `${name} on ${status}`);
  assert.equal(response.headers.get('www-authenticate'), status === 401 ? 'Bearer' : null);
  const text = await response.text();
  assert.equal(response.headers.get('content-length'), String(Buffer.byteLength(text)));
  const body = JSON.parse(text);
  assert.deepEqual(Object.keys(body), ['type', 'title', 'status', 'detail', 'request_id']);
  assert.deepEqual([body.type, body.title, body.status], [`${server.url}/errors/${code}`, title, status]);
  assert.equal(body.request_id, response.headers.get('x-request-id'));
  return body.detail;
}

test('a path that does not exist is 404 before anything else', async () => {
  const paths = [
    '/',
    '/v1',
    `${CHANGES}/`,
    '/V1/detections/changes',
    '/v1/detections/Changes/',
    '/v1/detections/',
    '/v1/detections/a/b',
    '/v1/detections/t.1.2.3/',
    '//v1/detections/changes',
    '/v1//detections/changes',
    '/v1/detections%2Fchanges',
    '/x?a=1',
  ];
  for (const path of paths) {
    await assertProblem(await server.get(path), problem('not_found', false));
    await assertProblem(await server.get(path, undefined, { method: 'DELETE' }), problem('not_found', false));
  }
});

test('over the rate, Retry-After is the reset, and the whole rate is there after it', async () => {
  const { key } = server.makeKey();
  const { key: other } = server.makeKey();
  for (let count = 0; count < 3; count += 1) assert.equal((await server.get(GOOD, key)).status, 200);
  server.setNow(NOW_MS + 20_001);
  const response = await server.get(GOOD, key);
  assert.equal(response.headers.get('retry-after'), '40');
  assert.equal(response.headers.get('ratelimit-reset'), '40');
  assert.equal(response.headers.get('ratelimit-policy'), '3;w=60');
  await assertProblem(response, problem('rate_limited', true));
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
