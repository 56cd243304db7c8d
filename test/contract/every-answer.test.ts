/**
 * What every endpoint has in common, asked of each: request ids, Cache-Control, methods, paths, credentials, and the
 * headers of each error (contract: Endpoints, Authentication, Errors).
 */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { addAccount, suspendAccount } from '../../src/auth/accounts.ts';
import { revokeKey } from '../../src/auth/keys.ts';
import { addSubscription } from '../../src/auth/subscriptions.ts';
import { NOW_MS, startTestServer, type TestServer, type TestServerOptions } from '../support/server.ts';

const CHANGES = '/v1/detections/changes?since=2026-11-21T00:00:00Z';
const PERIOD = '/v1/detections?from=2026-11-20&to=2026-11-20';
const ONE = '/v1/detections/t.7001.1.1';
const ME = '/v1/me';
const SCHEMA = '/v1/schema/detection';
const HEALTH = '/v1/health';
const TOKEN = '/oauth/token';
const READS = [CHANGES, PERIOD, ONE];
const KEYED = [...READS, ME, SCHEMA];
const ALL = [...KEYED, HEALTH, TOKEN];
const RATE = ['ratelimit-limit', 'ratelimit-policy', 'ratelimit-remaining', 'ratelimit-reset'];
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

let server: TestServer;
let key: string;

before(async () => {
  server = await startTestServer({ base_url: 'https://api.example/ww' });
  server.store.deliver(
    [1, 2].map((id) => ({ content_type: 'text', version: 1, row: { source_internal_id: id } })),
    NOW_MS - 60_000,
  );
  key = server.makeKey().key;
});
after(() => server.close());

const pathOf = (target: string) => target.split('?')[0] ?? '';
const hasRate = (response: Response) => RATE.filter((name) => response.headers.has(name)).length;

async function tokenOf(client: { id: string; key: string }, at = server, scope = ''): Promise<string> {
  const body = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: client.id,
    client_secret: client.key,
    scope,
  });
  const response = await at.get(TOKEN, undefined, { method: 'POST', body });
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return JSON.parse(text).access_token;
}

/** @param rate how many of the rate-limit headers are there: all four or none */
async function assertProblem(
  response: Response,
  [status, code, title]: readonly [number, string, string],
  rate: 0 | 4,
  what: string,
): Promise<{ detail: string }> {
  const text = await response.text();
  assert.equal(response.status, status, `${what}: ${text}`);
  assert.equal(response.headers.get('content-type'), 'application/problem+json', what);
  assert.equal(response.headers.get('cache-control'), 'no-store', what);
  assert.equal(hasRate(response), rate, what);
  const problem = JSON.parse(text);
  assert.deepEqual(Object.keys(problem), ['type', 'title', 'status', 'detail', 'request_id'], what);
  const expected = [`https://api.example/ww/errors/${code}`, title, status];
  assert.deepEqual([problem.type, problem.title, problem.status], expected, what);
  assert.equal(problem.request_id, response.headers.get('x-request-id'), what);
  assert.match(problem.detail, /^\S.+/, what);
  return problem;
}

/** Use of a server of its own, for what would disturb the others. */
async function withServer(
  options: TestServerOptions,
  use: (other: TestServer, key: string) => Promise<void>,
) {
  const other = await startTestServer({ base_url: 'https://api.example/ww', ...options });
  try {
    other.store.deliver([{ content_type: 'text', version: 1, row: {} }], NOW_MS - 60_000);
    await use(other, other.makeKey().key);
  } finally {
    await other.close();
  }
}

test('every answer has an X-Request-Id of its own and Cache-Control', async () => {
  const ids = new Set<string>();
  let answers = 0;
  for (const target of [...ALL, '/nowhere', `${CHANGES}&nope=1`, '/v1/detections/t.1.1.1', '/photos/1']) {
    for (const reader of [key, undefined]) {
      const response = await server.get(target, reader);
      await response.arrayBuffer();
      assert.match(response.headers.get('x-request-id') ?? '', UUID, target);
      assert.ok(response.headers.has('cache-control'), target);
      ids.add(response.headers.get('x-request-id') ?? '');
      answers += 1;
    }
  }
  assert.equal(ids.size, answers);
});

test('Cache-Control: a minute for me, asked for anew for the schema, no-store for all else and every error', async () => {
  const wanted = [
    [ME, 'private, max-age=60'],
    [SCHEMA, 'no-cache'],
    [CHANGES, 'no-store'],
    [PERIOD, 'no-store'],
    [ONE, 'no-store'],
    [HEALTH, 'no-store'],
    [`${ME}?x=1`, 'no-store'],
    [`${SCHEMA}?x=1`, 'no-store'],
    [`${ME}/`, 'no-store'],
    ['/photos/1?signature=x', 'no-store'],
  ] as const;
  for (const [target, value] of wanted) {
    const response = await server.get(target, key);
    await response.arrayBuffer();
    assert.equal(response.headers.get('cache-control'), value, target);
    const refused = await server.get(target, undefined, { method: 'PUT' });
    await refused.arrayBuffer();
    assert.equal(refused.headers.get('cache-control'), 'no-store', `PUT ${target}`);
  }
  for (const method of METHODS) {
    const response = await server.get(TOKEN, undefined, { method });
    await response.arrayBuffer();
    const headers = [response.headers.get('cache-control'), response.headers.get('pragma')];
    assert.deepEqual(headers, ['no-store', 'no-cache'], `${method} ${TOKEN}`);
  }
});

test('an X-Request-Id that a client sends is not taken over', async () => {
  const response = await server.get(ME, key, { headers: { 'x-request-id': 'mine' } });
  assert.match(response.headers.get('x-request-id') ?? '', UUID);
  await response.arrayBuffer();
});

test('no answer carries Deprecation or Sunset: nothing of v1 is about to go', async () => {
  for (const target of [...ALL, '/nowhere', `${CHANGES}&nope=1`, `${SCHEMA}?schema_version=v1`]) {
    for (const reader of [key, undefined]) {
      const response = await server.get(target, reader);
      await response.arrayBuffer();
      const found = ['deprecation', 'sunset'].filter((name) => response.headers.has(name));
      assert.deepEqual(found, [], target);
    }
  }
});

test('a trailing slash never matches a path', async () => {
  for (const target of [...ALL, '/photos/1']) {
    const response = await server.get(`${pathOf(target)}/`, key);
    await assertProblem(response, [404, 'not_found', 'Not found'], 0, target);
  }
});

test('authenticated answers after verification carry RateLimit-Limit and RateLimit-Policy', async () => {
  for (const target of KEYED) {
    const response = await server.get(target, key);
    await response.arrayBuffer();
    assert.equal(response.status, 200, target);
    assert.equal(response.headers.get('ratelimit-limit'), '1000000', target);
    assert.equal(response.headers.get('ratelimit-policy'), '1000000;w=60', target);
  }
});

test('a wrong method on an existing path is 405 with Allow', async () => {
  for (const target of [...ALL, '/photos/1?signature=x']) {
    const allowed =
      target === TOKEN ? ['POST'] : target === SCHEMA || target === HEALTH ? ['GET', 'HEAD'] : ['GET'];
    for (const method of METHODS.filter((one) => !allowed.includes(one))) {
      const response = await server.get(target, key, { method });
      const text = await response.text();
      assert.equal(response.status, 405, `${method} ${target}`);
      assert.equal(response.headers.get('allow'), allowed.join(', '), `${method} ${target}`);
      if (method === 'HEAD') continue;
      const { type, title } = JSON.parse(text);
      assert.deepEqual(
        [type, title],
        ['https://api.example/ww/errors/method_not_allowed', 'Method not allowed'],
      );
    }
  }
});

test('HEAD is answered on health and schema alone, like GET without a body', async () => {
  const compared = ['content-type', 'content-length', 'cache-control', 'etag'];
  for (const target of [HEALTH, SCHEMA]) {
    const get = await server.get(target, key);
    const head = await server.get(target, key, { method: 'HEAD' });
    assert.equal(head.status, get.status, target);
    for (const name of compared) assert.equal(head.headers.get(name), get.headers.get(name), name);
    assert.deepEqual([(await head.text()).length, (await get.text()).length > 0], [0, true]);
  }
});

describe('credentials', () => {
  test('every endpoint but the token endpoint and health wants one', async () => {
    for (const target of KEYED) {
      const response = await server.get(target);
      assert.equal(response.headers.get('www-authenticate'), 'Bearer', target);
      await assertProblem(response, [401, 'unauthorized', 'Unauthorized'], 0, target);
    }
    assert.equal((await server.get(HEALTH)).status, 200);
    assert.equal((await server.get(TOKEN, undefined, { method: 'POST', body: 'x=y' })).status, 400);
  });

  test('an access token is sent like a key, and reads what the key reads', async () => {
    const client = server.makeKey();
    const token = await tokenOf(client);
    for (const target of READS) {
      const [byKey, byToken] = await Promise.all([server.get(target, client.key), server.get(target, token)]);
      assert.equal(byToken.status, 200, target);
      assert.equal(await byToken.text(), await byKey.text(), target);
    }
  });

  test('revoked, expired, unknown, malformed and missing credentials are 401 everywhere', async () => {
    const revoked = server.makeKey();
    revokeKey(server.access, revoked.id, NOW_MS);
    const expired = server.makeKey({ expires_at: NOW_MS - 1 });
    const unknown = `ww_live_aaaaaaaaaaaa_${'a'.repeat(52)}`;
    for (const target of KEYED) {
      for (const credential of [revoked.key, expired.key, unknown, 'x', key.slice(0, -1), `${key}a`]) {
        const response = await server.get(target, credential);
        assert.equal(response.headers.get('www-authenticate'), 'Bearer');
        await assertProblem(response, [401, 'unauthorized', 'Unauthorized'], 0, target);
      }
    }
  });

  test('the detection endpoints want detections:read; me and schema take any scope', async () => {
    const without = server.makeKey({ scopes: ['reports:read'] }).key;
    for (const target of READS) {
      const response = await server.get(target, without);
      await assertProblem(response, [403, 'forbidden', 'Forbidden'], 4, target);
    }
    for (const scope of ['detections:read', 'reports:read', 'exports:create'] as const) {
      const reader = server.makeKey({ scopes: [scope] }).key;
      for (const target of [ME, SCHEMA]) assert.equal((await server.get(target, reader)).status, 200, scope);
    }
  });

  test('a suspended account and an address that is not allowed are 403, without rate-limit headers', async () => {
    addAccount(server.access, { id: 'late', name: 'Late', daily_rows: null }, NOW_MS);
    const subscription = { id: 7100, account_id: 'late', name: null, time_zone: 'UTC' };
    addSubscription(server.access, { ...subscription, content_types: ['text'] }, NOW_MS);
    const suspended = server.makeKey({
      account_id: 'late',
      subscriptions: [{ id: 7100, content_types: null }],
    });
    suspendAccount(server.access, 'late', NOW_MS);
    const elsewhere = server.makeKey({ allow_addresses: ['192.0.2.0/24'] });
    for (const target of KEYED) {
      for (const reader of [suspended.key, elsewhere.key]) {
        const response = await server.get(target, reader);
        await assertProblem(response, [403, 'forbidden', 'Forbidden'], 0, target);
      }
    }
  });

  test('credentials that cannot be verified are 503 everywhere, and health still answers', async () => {
    await withServer({}, async (other, reader) => {
      other.access.close();
      rmSync(join(other.store.folder, 'access.db'));
      for (const target of KEYED) {
        const response = await other.get(target, reader);
        await assertProblem(response, [503, 'unavailable', 'Service unavailable'], 0, target);
      }
      assert.equal((await other.get(HEALTH)).status, 200);
    });
  });

  test('revoking a key stops its tokens at once', async () => {
    const client = server.makeKey();
    const token = await tokenOf(client);
    assert.equal((await server.get(ME, token)).status, 200);
    revokeKey(server.access, client.id, NOW_MS);
    for (const target of KEYED) {
      const response = await server.get(target, token);
      await assertProblem(response, [401, 'unauthorized', 'Unauthorized'], 0, target);
    }
  });

  test('a token with some of the scopes has those alone', async () => {
    const client = server.makeKey({ scopes: ['detections:read', 'reports:read'] });
    const token = await tokenOf(client, server, 'reports:read');
    assert.deepEqual(JSON.parse(await (await server.get(ME, token)).text()).key.scopes, ['reports:read']);
    const response = await server.get(CHANGES, token);
    await assertProblem(response, [403, 'forbidden', 'Forbidden'], 4, CHANGES);
  });
});

describe('errors', () => {
  test('400: unknown, empty, repeated and out-of-range parameters, with rate-limit headers', async () => {
    const wrong = [
      [`${CHANGES}&nope=1`, 'nope'],
      [`${CHANGES}&limit=`, 'limit'],
      [`${PERIOD}&limit=1&limit=1`, 'limit'],
      [`${PERIOD}&limit=1001`, 'limit'],
      [`${ONE}?since=2026-11-21T00:00:00Z`, 'since'],
      [`${ME}?x=1`, 'x'],
      [`${SCHEMA}?fields=id`, 'fields'],
    ] as const;
    for (const [target, name] of wrong) {
      const response = await server.get(target, key);
      const { detail } = await assertProblem(
        response,
        [400, 'invalid_request', 'Invalid request'],
        4,
        target,
      );
      assert.match(detail, new RegExp(`\\b${name}\\b`), target);
    }
  });

  test('400: a cursor that this endpoint did not give', async () => {
    const page = JSON.parse(await (await server.get(CHANGES, key)).text());
    const ofPeriod = JSON.parse(await (await server.get(`${PERIOD}&limit=1`, key)).text()).next_cursor;
    assert.equal(typeof ofPeriod, 'string');
    for (const target of [
      '/v1/detections/changes?cursor=x',
      `/v1/detections/changes?cursor=${ofPeriod}`,
      `/v1/detections/changes?cursor=${page.next_cursor.slice(1)}`,
      `${PERIOD}&cursor=${page.next_cursor}`,
      `${PERIOD}&cursor=x`,
    ]) {
      const response = await server.get(target, key);
      const { detail } = await assertProblem(
        response,
        [400, 'invalid_request', 'Invalid request'],
        4,
        target,
      );
      assert.match(detail, /^cursor: /, target);
    }
  });

  test('400: a malformed detection id; 404: one that is unknown', async () => {
    for (const id of [
      'x',
      't.1.1',
      'T.1.1.1',
      't.01.1.1',
      't.1.1.1.1',
      't.1.1.-1',
      `t.1.1.${'1'.repeat(16)}`,
    ]) {
      const response = await server.get(`/v1/detections/${id}`, key);
      await assertProblem(response, [400, 'invalid_request', 'Invalid request'], 4, id);
    }
    for (const id of ['t.7001.9.9', 'i.7001.1.1', 't.0.0.0', `t.1.1.${'1'.repeat(15)}`]) {
      const response = await server.get(`/v1/detections/${id}`, key);
      await assertProblem(response, [404, 'not_found', 'Not found'], 4, id);
    }
  });

  test('404: no endpoint at the path, with and without a credential', async () => {
    for (const target of ['/', '/v1', '/v1/detection', '/V1/me', '/v1/detections/a/b', '/v2/me', '/v1//me']) {
      for (const reader of [key, undefined]) {
        await assertProblem(await server.get(target, reader), [404, 'not_found', 'Not found'], 0, target);
      }
    }
  });

  test('429 rate_limited: over the limit, with Retry-After and rate-limit headers, on every endpoint', async () => {
    await withServer({ requests_per_minute: 2 }, async (other, reader) => {
      for (let used = 0; used < 2; used += 1) await (await other.get(ME, reader)).arrayBuffer();
      for (const target of KEYED) {
        const response = await other.get(target, reader);
        assert.match(response.headers.get('retry-after') ?? '', /^[1-9]\d?$/, target);
        assert.equal(response.headers.get('retry-after'), response.headers.get('ratelimit-reset'));
        await assertProblem(response, [429, 'rate_limited', 'Too many requests'], 4, target);
      }
      assert.equal((await other.get(HEALTH)).status, 200, 'health has no limit');
    });
  });

  test('429 daily_allowance: on the detection endpoints alone, until 00:00 UTC; cursors stay valid', async () => {
    await withServer({ daily_rows: 1 }, async (other, reader) => {
      const { next_cursor } = JSON.parse(await (await other.get(CHANGES, reader)).text());
      for (const target of READS) {
        const response = await other.get(target, reader);
        assert.equal(response.headers.get('retry-after'), '43200', target);
        const { detail } = await assertProblem(
          response,
          [429, 'daily_allowance', 'Daily allowance used'],
          4,
          target,
        );
        assert.match(detail, /2026-11-22T00:00:00Z/);
      }
      for (const target of [ME, SCHEMA]) assert.equal((await other.get(target, reader)).status, 200, target);
      other.setNow(Date.parse('2026-11-22T00:00:00Z'));
      const next = await other.get(`/v1/detections/changes?cursor=${next_cursor}`, reader);
      assert.equal(next.status, 200);
    });
  });

  test('500: a fault, with rate-limit headers where the credential was verified, and nothing of its cause', async () => {
    await withServer({}, async (other, reader) => {
      other.store.writer.exec('DROP TABLE detection; DROP TABLE stream_row;');
      for (const target of READS) {
        const response = await other.get(target, reader);
        const { detail } = await assertProblem(response, [500, 'internal', 'Internal error'], 4, target);
        assert.doesNotMatch(detail, /table|sql|detection_?row/i);
      }
    });
  });
});

test('limits: 120 requests a minute and key, unless the operator set another', async () => {
  await withServer({ requests_per_minute: 120 }, async (other, reader) => {
    const second = other.makeKey().key;
    for (let used = 0; used < 120; used += 1) {
      const response = await other.get(SCHEMA, reader);
      await response.arrayBuffer();
      assert.equal(response.status, 200, `${used}`);
      assert.equal(response.headers.get('ratelimit-limit'), '120');
      assert.equal(response.headers.get('ratelimit-policy'), '120;w=60');
      assert.equal(response.headers.get('ratelimit-remaining'), String(119 - used));
    }
    assert.equal((await other.get(SCHEMA, reader)).status, 429);
    assert.equal((await other.get(SCHEMA, second)).status, 200, 'another key has its own');
  });
});
