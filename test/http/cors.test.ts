/** CORS: only origins in `server.cors_origins` are allowed. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isOrigin } from '../../src/config/option-values.ts';
import { sharedServer, startTestServer, type TestServer } from '../support/server.ts';
import { words } from '../support/words.ts';

const DASHBOARD = 'https://dashboard.example.org';
const ME = '/v1/me';

const server = await sharedServer({ cors_origins: [DASHBOARD] });
const { key } = server.makeKey();

test('an origin is scheme, host and port, as a browser writes it', () => {
  for (const text of [DASHBOARD, 'http://localhost:3000', 'http://127.0.0.1:8080', 'https://[::1]:8443'])
    assert.ok(isOrigin(text), text);
  const others = words(
    'null * https://a.example/ https://a.example/a https://A.example https://a.example:443',
  );
  for (const text of ['', 'ftp://a.example', ...others]) assert.ok(!isOrigin(text), text);
});

const preflight = (server: TestServer, origin: string, path = ME) =>
  fetch(`${server.url}${path}`, {
    method: 'OPTIONS',
    headers: {
      origin,
      'access-control-request-method': 'GET',
      'access-control-request-headers': 'authorization',
    },
  });

describe('with an allowed origin', () => {
  test('a preflight succeeds without a key', async () => {
    const { status, headers } = await preflight(server, DASHBOARD);
    assert.deepEqual([status, headers.get('access-control-allow-origin')], [204, DASHBOARD]);
    assert.match(headers.get('access-control-allow-methods') ?? '', /\bGET\b/);
    const allowed = headers.get('access-control-allow-headers') ?? '';
    assert.match(allowed, /\bAuthorization\b.*\bLast-Event-ID\b.*\bPrefer\b/);
    assert.deepEqual([headers.get('vary'), headers.get('content-length')], ['Origin', null]);
  });

  test('responses and errors are readable, with the headers that a client needs', async () => {
    for (const [bearer, status] of Object.entries({ [key]: 200, wrong: 401 })) {
      const response = await server.get(ME, bearer, { headers: { origin: DASHBOARD } });
      assert.equal(response.status, status);
      assert.equal(response.headers.get('access-control-allow-origin'), DASHBOARD);
      assert.match(response.headers.get('access-control-expose-headers') ?? '', /Retry-After.*X-Request-Id/);
      assert.equal(response.headers.get('access-control-allow-credentials'), null);
    }
  });

  test('another origin is not allowed, and caches are not misled', async () => {
    assert.equal((await preflight(server, 'https://evil.example')).status, 405);
    const response = await server.get(ME, key, { headers: { origin: 'https://evil.example' } });
    assert.equal(response.headers.get('access-control-allow-origin'), null);
    assert.match(response.headers.get('vary') ?? '', /Origin/);
  });

  test('a request that is no preflight, or has no endpoint, is refused as usual', async () => {
    const bare = await fetch(`${server.url}${ME}`, { method: 'OPTIONS', headers: { origin: DASHBOARD } });
    assert.equal(bare.status, 405);
    assert.equal((await preflight(server, DASHBOARD, '/v1/nothing')).status, 404);
  });
});

test('"*" allows every origin; without the setting none is allowed', async () => {
  for (const [cors_origins, expected, status] of [
    [['*'], '*', 204],
    [[], null, 405],
  ] as const) {
    await using other = await startTestServer({ cors_origins: [...cors_origins] });
    const response = await other.get(ME, other.makeKey().key, { headers: { origin: DASHBOARD } });
    assert.equal(response.headers.get('access-control-allow-origin'), expected);
    assert.equal((await preflight(other, DASHBOARD)).status, status);
  }
});
