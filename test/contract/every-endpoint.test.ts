/** Common to every endpoint: request ids, Cache-Control, methods and paths; credentials; each error that it has. */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { addAccount, suspendAccount } from '../../src/auth/accounts.ts';
import { revokeKey } from '../../src/auth/keys.ts';
import { addSubscription } from '../../src/auth/subscriptions.ts';
import {
  ALL,
  assertProblem,
  assertProblems,
  CHANGES,
  HEALTH,
  KEYED,
  ME,
  METHODS,
  ONE,
  PERIOD,
  pathOf,
  READS,
  SCHEMA,
  sharedWithDetections,
  TOKEN,
  tokenOf,
  UUID,
  withServer,
} from '../support/every-endpoint.ts';
import { NOW_MS } from '../support/server.ts';
import { words } from '../support/words.ts';

const server = await sharedWithDetections();
const key = server.makeKey().key;
const INVALID = [400, 'invalid_request', 'Invalid request'] as const;

test('every response has its own X-Request-Id and Cache-Control, and neither Deprecation nor Sunset', async () => {
  const ids = new Set<string>();
  let answers = 0;
  for (const target of [...ALL, '/nowhere', `${CHANGES}&nope=1`, '/v1/detections/t.1.1.1', '/photos/1']) {
    for (const reader of [key, undefined]) {
      // A client's own id is ignored.
      const response = await server.get(target, reader, { headers: { 'x-request-id': 'mine' } });
      await response.arrayBuffer();
      assert.match(response.headers.get('x-request-id') ?? '', UUID, target);
      const found = ['cache-control', 'deprecation', 'sunset'].filter((name) => response.headers.has(name));
      assert.deepEqual(found, ['cache-control'], target);
      ids.add(response.headers.get('x-request-id') ?? '');
      answers += 1;
    }
  }
  assert.equal(ids.size, answers);
});

test('Cache-Control: a minute for me, no-cache for the schema, no-store for the rest and every error', async () => {
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

test('a trailing slash never matches a path', async () => {
  const targets = [...ALL, '/photos/1'].map((target) => `${pathOf(target)}/`);
  await assertProblems(server, targets, key, [404, 'not_found', 'Not found'], 0);
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
      assert.equal(type, 'https://api.example/ww/errors/method_not_allowed');
      assert.equal(title, 'Method not allowed');
    }
  }
});

test('an access token is sent like a key, and reads what the key reads', async () => {
  const client = server.makeKey();
  const token = await tokenOf(server, client);
  for (const target of READS) {
    const [byKey, byToken] = await Promise.all([server.get(target, client.key), server.get(target, token)]);
    assert.equal(byToken.status, 200, target);
    assert.equal(await byToken.text(), await byKey.text(), target);
  }
});

test('every endpoint but the token endpoint and health requires a valid one: all others are 401', async () => {
  const revoked = server.makeKey();
  revokeKey(server.access, revoked.id, NOW_MS);
  const expired = server.makeKey({ expires_at: NOW_MS - 1 });
  const unknown = `ww_live_aaaaaaaaaaaa_${'a'.repeat(52)}`;
  const wrong = [undefined, revoked.key, expired.key, unknown, 'x', key.slice(0, -1), `${key}a`];
  for (const target of KEYED) {
    for (const credential of wrong) {
      const response = await server.get(target, credential);
      assert.equal(response.headers.get('www-authenticate'), 'Bearer');
      await assertProblem(response, [401, 'unauthorized', 'Unauthorized'], 0, target);
    }
  }
  assert.equal((await server.get(HEALTH)).status, 200);
  assert.equal((await server.get(TOKEN, undefined, { method: 'POST', body: 'x=y' })).status, 400);
});

test('the detection endpoints require detections:read; me and schema accept any scope', async () => {
  const without = server.makeKey({ scopes: ['reports:read'] }).key;
  await assertProblems(server, READS, without, [403, 'forbidden', 'Forbidden'], 4);
  for (const scope of ['detections:read', 'reports:read', 'exports:create'] as const) {
    const reader = server.makeKey({ scopes: [scope] }).key;
    for (const target of [ME, SCHEMA]) assert.equal((await server.get(target, reader)).status, 200, scope);
  }
});

test('a suspended account and an address that is not allowed are 403, without rate-limit headers', async () => {
  addAccount(server.access, { id: 'late', name: 'Late' }, NOW_MS);
  addSubscription(server.access, { id: 7100, account_id: 'late' }, NOW_MS);
  const subscriptions = [{ id: 7100, content_types: null }];
  const suspended = server.makeKey({ account_id: 'late', subscriptions });
  suspendAccount(server.access, 'late', NOW_MS);
  const elsewhere = server.makeKey({ allow_addresses: ['192.0.2.0/24'] });
  for (const reader of [suspended.key, elsewhere.key])
    await assertProblems(server, KEYED, reader, [403, 'forbidden', 'Forbidden'], 0);
});

test('credentials that cannot be verified are 503 everywhere, and health still answers', async () => {
  await withServer({}, async (other, reader) => {
    other.access.close();
    rmSync(join(other.store.folder, 'access.db'));
    await assertProblems(other, KEYED, reader, [503, 'unavailable', 'Service unavailable'], 0);
    assert.equal((await other.get(HEALTH)).status, 200);
  });
});

test('revoking a key stops its tokens at once', async () => {
  const client = server.makeKey();
  const token = await tokenOf(server, client);
  assert.equal((await server.get(ME, token)).status, 200);
  revokeKey(server.access, client.id, NOW_MS);
  await assertProblems(server, KEYED, token, [401, 'unauthorized', 'Unauthorized'], 0);
});

test('400: unknown, empty, repeated and out-of-range parameters, with rate-limit headers', async () => {
  const wrong = [
    [`${CHANGES}&nope=1`, 'nope'],
    [`${CHANGES}&limit=`, 'limit'],
    [`${PERIOD}&limit=1&limit=1`, 'limit'],
    [`${PERIOD}&limit=1001`, 'limit'],
    [`${ONE}?since=2026-11-21T00:00:00Z`, 'since'],
    [`${ONE}?limit=1`, 'limit'],
    [`${ME}?x=1`, 'x'],
    [`${SCHEMA}?fields=id`, 'fields'],
    ['/v1/detections/changes?cursor=x', 'cursor'],
    [`${PERIOD}&cursor=x`, 'cursor'],
  ] as const;
  for (const [target, name] of wrong) {
    const response = await server.get(target, key);
    const { detail } = await assertProblem(response, INVALID, 4, target);
    assert.match(detail, new RegExp(`\\b${name}\\b`), target);
  }
});

test('400: a malformed detection id; 404: an unknown one', async () => {
  const malformed = words('x t.1.1 T.1.1.1 t.01.1.1 t.1.1.1.1 t.1.1.-1 a%2Fb % %ff %63hanges t.7001.1.1%0a');
  const unknown = ['t.7001.9.9', 'i.7001.1.1', 't.0.0.0', `t.1.1.${'1'.repeat(15)}`];
  const paths = (ids: readonly string[]) => ids.map((id) => `/v1/detections/${id}`);
  const wrong = paths([...malformed, `t.1.1.${'1'.repeat(16)}`]);
  await assertProblems(server, wrong, key, INVALID, 4);
  await assertProblems(server, paths(unknown), key, [404, 'not_found', 'Not found'], 4);
});

test('404: no endpoint at the path, with and without a credential', async () => {
  const targets = ['/', '/v1', '/v1/detection', '/V1/me', '/v1/detections/a/b', '/v2/me', '/v1//me'];
  for (const reader of [key, undefined])
    await assertProblems(server, targets, reader, [404, 'not_found', 'Not found'], 0);
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
    assert.equal((await other.get(HEALTH)).status, 200, 'health must have no limit');
  });
});

test('429 daily_allowance: only on the detection endpoints, until 00:00 UTC; cursors stay valid', async () => {
  await withServer({ daily_rows: 1 }, async (other, reader) => {
    const { next_cursor } = await other.json(CHANGES, reader);
    for (const target of READS) {
      const response = await other.get(target, reader);
      assert.equal(response.headers.get('retry-after'), '43200', target);
      const used = [429, 'daily_allowance', 'Daily allowance used'] as const;
      const { detail } = await assertProblem(response, used, 4, target);
      assert.match(detail, /2026-11-22T00:00:00Z/);
    }
    for (const target of [ME, SCHEMA]) await other.json(target, reader);
    other.setNow(Date.parse('2026-11-22T00:00:00Z'));
    await other.json(`/v1/detections/changes?cursor=${next_cursor}`, reader);
  });
});

test('500: a fault, with rate-limit headers if the credential was verified, and without its cause', async () => {
  await withServer({}, async (other, reader) => {
    other.store.writer.exec('DROP TABLE detection; DROP TABLE stream_row;');
    for (const detail of await assertProblems(other, READS, reader, [500, 'internal', 'Internal error'], 4))
      assert.doesNotMatch(detail, /table|sql|detection_?row/i);
  });
});

test('limits: 120 requests per minute and key, unless the operator set another', async () => {
  await withServer({ requests_per_minute: 120 }, async (other, reader) => {
    const second = other.makeKey().key;
    for (let used = 0; used < 120; used += 1) {
      const response = await other.get(SCHEMA, reader);
      assert.equal(response.status, 200, `${used}`);
      assert.equal(response.headers.get('ratelimit-limit'), '120');
      assert.equal(response.headers.get('ratelimit-policy'), '120;w=60');
      assert.equal(response.headers.get('ratelimit-remaining'), String(119 - used));
    }
    other.setNow(NOW_MS + 20_001);
    const { status, headers } = await other.get(SCHEMA, reader);
    assert.deepEqual([status, headers.get('retry-after'), headers.get('ratelimit-reset')], [429, '40', '40']);
    await other.json(SCHEMA, second);
    other.setNow(NOW_MS + 60_000);
    const fresh = await other.get(SCHEMA, reader);
    assert.deepEqual([fresh.status, fresh.headers.get('ratelimit-remaining')], [200, '119']);
  });
});
