/** Requests in the log: without secrets, with the client's address, and for refused ones the reason, key id and limit. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createKey } from '../../src/auth/key-form.ts';
import { exchangeBytes } from '../support/raw-http.ts';
import { NOW_MS, sharedServer, startTestServer } from '../support/server.ts';
import { inBody, makeClient, postToken } from '../support/token-client.ts';
import { until } from '../support/until.ts';

const CHANGES = '/v1/detections/changes?since=2026-11-21T11:00:00Z';
const GUESSER = '203.0.113.66';
const CLIENT = '192.0.2.7';

const server = await sharedServer({
  trusted_proxies: ['127.0.0.1'],
  ...{ requests_per_minute: 3, token_requests_per_minute: 4, unseen_key_ids_per_minute: 2, daily_rows: 1 },
});

/** The fields of a request's log line, without path, status, rows and times. */
async function loggedFields(asking: Promise<Response>): Promise<Record<string, unknown>> {
  const response = await asking;
  await response.arrayBuffer();
  const id = response.headers.get('x-request-id');
  const line = server.lines.find(({ msg, request_id }) => msg === 'request' && request_id === id);
  const { level, time, request_id, method, path, rows, duration_ms, msg, ...rest } = line ?? {};
  return rest;
}

const from = (address: string) => ({ headers: { 'x-forwarded-for': address } });

test('a request logs its address and, if refused, its code, claimed key id and limit', async () => {
  server.setNow(NOW_MS);
  const { id, key } = server.makeKey();
  const narrow = server.makeKey({ scopes: [] });
  const fenced = server.makeKey({ allow_addresses: ['10.0.0.1'] });
  const logs = async (path: string, use: string | undefined, expected: object, address = CLIENT) =>
    assert.deepEqual(await loggedFields(server.get(path, use, from(address))), { address, ...expected });

  await logs('/v1/health', undefined, { status: 200 });
  await logs('/v1/nothing', key, { status: 404, code: 'not_found' });
  await logs(CHANGES, key, { key_id: id, status: 200 });
  await logs('/v1/detections?x=1', key, { key_id: id, status: 400, code: 'invalid_request' });
  await logs(CHANGES, narrow.key, { key_id: narrow.id, status: 403, code: 'forbidden' });
  await logs(CHANGES, undefined, { status: 401, code: 'unauthorized' });
  server.setNow(NOW_MS + 60_000);
  await logs(CHANGES, fenced.key, { status: 403, code: 'forbidden', claimed_key_id: fenced.id });
  server.store.deliver([{ content_type: 'text', version: 1, row: {} }], NOW_MS - 1000);
  await logs(CHANGES, key, { key_id: id, status: 200 });
  const over = { key_id: id, status: 429 };
  for (const limit of ['daily_rows', 'daily_rows'])
    await logs(CHANGES, key, { ...over, code: 'daily_allowance', limit });
  await logs(CHANGES, key, { ...over, code: 'rate_limited', limit: 'requests' });

  const wrong = createKey('ww');
  const guess = { claimed_key_id: wrong.id };
  for (const _ of [1, 2])
    await logs(CHANGES, wrong.key, { ...guess, status: 401, code: 'unauthorized' }, GUESSER);
  const limited = { status: 429, code: 'rate_limited', limit: 'unseen_key_ids' };
  await logs(CHANGES, wrong.key, { ...guess, ...limited }, GUESSER);
});

test('the token endpoint logs them, too', async () => {
  server.setNow(NOW_MS + 120_000);
  const client = makeClient(server);
  const claimed = { claimed_key_id: client.id };
  const right = inBody(client);
  for (const [body, expected] of [
    [inBody(client, { grant_type: 'x' }), { ...claimed, status: 400, code: 'unsupported_grant_type' }],
    [inBody({ id: client.id, secret: 'x' }), { ...claimed, status: 401, code: 'invalid_client' }],
    [inBody({ id: 'no id\n', secret: 'x' }), { status: 401, code: 'invalid_client' }],
    ['x'.repeat(5000), { status: 413, code: 'content_too_large' }],
    [right, { key_id: client.id, status: 200 }],
    [right, { status: 429, code: 'rate_limited', limit: 'token_requests' }],
  ] as const) {
    const logged = await loggedFields(postToken(server, body, from(GUESSER).headers));
    assert.deepEqual(logged, { address: GUESSER, ...expected });
  }
});

test("malformed requests log the peer's address, and what could be read", async () => {
  const large = `X-Forwarded-For: 1.2.3.4\r\nX: ${'x'.repeat(40_000)}\r\n\r\n`;
  await exchangeBytes(server.port, `GET /large?x HTTP/1.1\r\n${large}`);
  await exchangeBytes(server.port, 'nonsense\r\n\r\n');
  const malformed = () => server.lines.filter(({ address }) => address === '127.0.0.1');
  await until('their lines', () => malformed().length > 1);
  const shown = malformed().map(({ method, path, status, code }) => [method, path, status, code].join(' '));
  assert.deepEqual(shown, ['GET /large 431 invalid_request', ' / 400 invalid_request']);
});

test('every request is logged once, without key and query', async () => {
  await using own = await startTestServer();
  const { id, key } = own.makeKey();
  own.store.deliver([{ content_type: 'text', version: 1, row: {} }], NOW_MS - 1000);
  const good = await own.get(`${CHANGES}&source_id=none`, key);
  const first = await own.get(CHANGES, key);
  const missing = await own.get(`/x/${'y.'.repeat(2500)}?${key}`);
  const lines = own.lines.filter(({ msg }) => msg === 'request');
  const shown = lines.map(({ method, path, status, key_id, rows }) =>
    [method, String(path).slice(0, 30), status, key_id, rows].join(' '),
  );
  const page = `GET /v1/detections/changes 200 ${id}`;
  assert.deepEqual(shown, [`${page} 0`, `${page} 1`, `GET /x/${'y.'.repeat(13)}y 404  `]);
  const ids = [good, first, missing].map(({ headers }) => headers.get('x-request-id'));
  const logged = lines.map(({ request_id }) => request_id);
  assert.deepEqual(logged, ids);
  for (const { duration_ms, level } of lines) assert.ok(typeof duration_ms === 'number' && level === 'info');
  const text = JSON.stringify(own.lines);
  assert.doesNotMatch(text, new RegExp(key.slice(-20)));
  assert.doesNotMatch(text, /source_id/);
  assert.ok(text.length < 5000, 'a long path must be truncated');
});

test('a logged path is truncated, without showing part of a secret', async () => {
  await using own = await startTestServer();
  const path = `/${'x.'.repeat(110)}`;
  for (const end of [path, own.makeKey().key.slice(-52)]) await own.get(`${path}${end}`);
  const paths = own.lines.filter(({ msg }) => msg === 'request').map((line) => String(line.path));
  assert.deepEqual(paths, [`${path}${path}`.slice(0, 256), `${path}[redacted]`]);
});
