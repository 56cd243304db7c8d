/** Requests in the log: the client's address, and for refused ones the reason, key id and limit. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createKey } from '../../src/auth/key-form.ts';
import { openLog } from '../../src/logger.ts';
import { example } from '../support/manual.ts';
import { exchangeBytes } from '../support/raw-http.ts';
import { NOW_MS, startTestServer, type TestServer } from '../support/server.ts';
import { inBody, makeClient, postToken } from '../support/token-client.ts';
import { until } from '../support/until.ts';

const CHANGES = '/v1/detections/changes?since=2026-11-21T11:00:00Z';
const GUESSER = '203.0.113.66';
const CLIENT = '192.0.2.7';

let folder: string;
let logFile: string;
let server: TestServer;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'wirewatch-who-'));
  logFile = join(folder, 'wirewatch.log');
  const { log } = await openLog({ level: 'info', file: logFile });
  server = await startTestServer({
    log,
    trusted_proxies: ['127.0.0.1'],
    requests_per_minute: 3,
    token_requests_per_minute: 4,
    unseen_key_ids_per_minute: 2,
    daily_rows: 1,
  });
});

after(async () => {
  await server.close();
  rmSync(folder, { recursive: true });
});

const lines = () => readFileSync(logFile, 'utf8').split('\n').slice(0, -1);

/** The fields of a request's log line, without path, status, rows and times. */
async function loggedFields(asking: Promise<Response>): Promise<Record<string, unknown>> {
  const response = await asking;
  await response.arrayBuffer();
  const id = response.headers.get('x-request-id');
  let line: Record<string, unknown> | undefined;
  await until('its line', () => {
    line = lines()
      .map((text) => JSON.parse(text))
      .find((one) => one.msg === 'request' && one.request_id === id);
    return line !== undefined;
  });
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
    [
      { ...right, grant_type: 'x' },
      { ...claimed, status: 400, code: 'unsupported_grant_type' },
    ],
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
  await until('their lines', () => lines().filter((line) => line.includes('"invalid_request"')).length > 2);
  const last = lines()
    .slice(-2)
    .map((line) => JSON.parse(line));
  assert.deepEqual(
    last.map(({ address, method, path, status, code }) => [address, method, path, status, code]),
    [
      ['127.0.0.1', 'GET', '/large', 431, 'invalid_request'],
      ['127.0.0.1', '', '/', 400, 'invalid_request'],
    ],
  );
});

/** The address that the manual's fail2ban filter finds in a line, or null (jail.conf(5)). */
function filtered(line: string): string | null {
  const entries = new Map(
    example('security', 'fail2ban-filter')
      .replaceAll('%%', '%')
      .split(/\n(?=\S)/)
      .map((entry) => [entry.split(' = ', 1)[0], entry.slice(entry.indexOf(' = ') + 3).trim()]),
  );
  const patterns = (entries.get('failregex') ?? '').split(/\n\s+/);
  assert.equal(patterns.length, 2);
  for (const pattern of patterns) {
    const whole = pattern
      .replace('%(line)s', () => entries.get('line') ?? '')
      .replace('<ADDR>', '(?<address>[0-9a-fA-F.:]+)');
    const { address } = new RegExp(whole).exec(line)?.groups ?? {};
    if (address !== undefined) return address;
  }
  return null;
}

/** A line as fail2ban matches it: without the time, or as in the journal, with a prefix. */
const VARIANTS: readonly ((line: string) => string)[] = [
  (line) => line.replace(/"time":"[^"]*"/, ''),
  (line) => `host wirewatch[123]: ${line}`,
];

test("the manual's fail2ban filter matches clients that guess keys, and no others, for any path", async () => {
  server.setNow(NOW_MS + 240_000);
  const { key } = server.makeKey();
  const claims = '"address":"192.0.2.99","code":"unauthorized","claimed_key_id":"","limit":"unseen_key_ids"';
  for (const path of [claims, claims.replaceAll('"', '%22'), `\\${claims}`, `{"level":"info",${claims}`])
    await exchangeBytes(
      server.port,
      `GET /${path} HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: ${CLIENT}\r\nConnection: close\r\n\r\n`,
    );
  await loggedFields(server.get(CHANGES, key, from(CLIENT)));
  await loggedFields(server.get(`/v1/detections?x=1`, key, from(CLIENT)));
  await loggedFields(server.get(CHANGES, createKey('ww').key, from('2001:db8::66')));
  const isQuoted = (line: string) => line.includes('"path":"/\\"address\\":');
  assert.ok(lines().some(isQuoted), 'a path contains quotes');
  const found = lines().flatMap((line) => {
    const addresses = VARIANTS.map((variant) => filtered(variant(line)));
    assert.equal(new Set(addresses).size, 1, line);
    return addresses[0] ?? [];
  });
  // Three wrong keys and two wrong secrets of earlier tests; 429 at the token endpoint.
  assert.deepEqual(found, [...Array(5).fill(GUESSER), '2001:db8::66']);
});
