/** The order in which a request is checked: every possible error, two at a time. */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { suspendAccount } from '../../src/auth/accounts.ts';
import { createKey } from '../../src/auth/key-form.ts';
import { revokeKey, setKey } from '../../src/auth/keys.ts';
import { NOW_MS, startTestServer, type TestServer } from '../support/server.ts';
import { GRANT, postToken } from '../support/token-client.ts';

/** In the order in which they are checked: status, code, whether the rate-limit headers are present, the topic of the detail. */
const ERRORS = {
  path: [404, 'not_found', false, /path/],
  method: [405, 'method_not_allowed', false, /GET/],
  unseen: [429, 'rate_limited', false, /address/],
  revoked: [401, 'unauthorized', false, /revoked/],
  store: [503, 'unavailable', false, /cannot be verified/],
  suspended: [403, 'forbidden', false, /suspended/],
  address: [403, 'forbidden', false, /address/],
  rate: [429, 'rate_limited', true, /^This key is limited to/],
  scope: [403, 'forbidden', true, /scope/],
  parameter: [400, 'invalid_request', true, /nope/],
  allowance: [429, 'daily_allowance', true, /allowance/],
  detection: [404, 'not_found', true, /detection/],
} as const satisfies Readonly<Record<string, readonly [number, string, boolean, RegExp]>>;
type Wrong = keyof typeof ERRORS;
const WRONGS = Object.keys(ERRORS) as Wrong[];

/** Impossible pairs: without a store no key is known to be revoked, and an unknown path has no detection. */
const EXCLUDED = new Set(['revoked store', 'path detection']);

/** The address for requests that use up a limit of the key, so that the address limits stay unaffected. */
const ELSEWHERE = { headers: { 'x-forwarded-for': '192.0.2.9' } };

/** Causes these errors, in an order in which none prevents the next. */
async function prepare(server: TestServer, wrongs: ReadonlySet<Wrong>): Promise<string> {
  const { id, key } = server.makeKey();
  if (wrongs.has('allowance'))
    assert.equal(await server.statusOf('/v1/detections/t.7001.1.1', key, ELSEWHERE), 200);
  if (wrongs.has('rate')) {
    for (let asked = 0; (await server.statusOf('/v1/me', key, ELSEWHERE)) !== 429; asked += 1)
      assert.ok(asked < 3);
  }
  if (wrongs.has('address')) setKey(server.access, id, { allow_addresses: ['192.0.2.9'] });
  if (wrongs.has('scope')) setKey(server.access, id, { scopes: ['reports:read'] });
  if (wrongs.has('revoked')) revokeKey(server.access, id, NOW_MS);
  if (wrongs.has('suspended')) suspendAccount(server.access, 'agency', NOW_MS);
  if (wrongs.has('unseen')) await server.statusOf('/v1/me', createKey('ww').key);
  if (wrongs.has('store')) {
    server.access.close();
    rmSync(join(server.store.folder, 'access.db'));
  }
  return key;
}

async function ask(wrongs: ReadonlySet<Wrong>): Promise<unknown[]> {
  await using server = await startTestServer({
    trusted_proxies: ['127.0.0.0/8'],
    ...(wrongs.has('rate') ? { requests_per_minute: 2 } : {}),
    ...(wrongs.has('allowance') ? { daily_rows: 1 } : {}),
    ...(wrongs.has('unseen') ? { unseen_key_ids_per_minute: 1 } : {}),
  });
  server.store.deliver([{ content_type: 'text', version: 1, row: {} }], NOW_MS - 60_000);
  const key = await prepare(server, wrongs);
  const id = wrongs.has('detection') ? 't.7001.999.1' : 't.7001.1.1';
  const path = wrongs.has('path') ? '/v1/nowhere' : `/v1/detections/${id}`;
  const response = await server.get(`${path}${wrongs.has('parameter') ? '?nope=1' : ''}`, key, {
    method: wrongs.has('method') ? 'DELETE' : 'GET',
  });
  const body = JSON.parse(await response.text());
  if (response.status === 200) return [200];
  const code = String(body.type).split('/').at(-1);
  return [response.status, code, response.headers.has('ratelimit-limit'), body.detail];
}

function assertError([status, code, hasRate, detail]: unknown[], wrong: Wrong, what: string): void {
  const [wantedStatus, wantedCode, wantsRate, wantedDetail] = ERRORS[wrong];
  assert.deepEqual([status, code, hasRate], [wantedStatus, wantedCode, wantsRate], `${what}: ${detail}`);
  assert.match(String(detail), wantedDetail, what);
}

test('of any two errors, the one checked first is reported', async () => {
  assert.deepEqual(await ask(new Set()), [200]);
  for (const [at, first] of WRONGS.entries()) {
    // Also each error alone.
    for (const second of WRONGS.slice(at)) {
      const pair = `${first} ${second}`;
      if (!EXCLUDED.has(pair)) assertError(await ask(new Set([first, second])), first, pair);
    }
  }
});

/** The errors of a token request, in the order in which they are checked: status and code. */
const TOKEN_ERRORS = {
  size: [413, 'content_too_large'],
  address: [429, 'rate_limited'],
  form: [400, 'invalid_request'],
  grant: [400, 'unsupported_grant_type'],
  client: [429, 'rate_limited'],
  credentials: [401, 'invalid_client'],
  scope: [400, 'invalid_scope'],
} as const satisfies Readonly<Record<string, readonly [number, string]>>;
type TokenWrong = keyof typeof TOKEN_ERRORS;
const TOKEN_LIMIT = 2;

async function askToken(wrongs: ReadonlySet<TokenWrong>): Promise<[number, string]> {
  const isLimited = wrongs.has('address') || wrongs.has('client');
  await using server = await startTestServer({
    trusted_proxies: ['127.0.0.0/8'],
    ...(isLimited ? { token_requests_per_minute: TOKEN_LIMIT } : {}),
  });
  const { id, key } = server.makeKey();
  for (let used = 0; used < TOKEN_LIMIT; used += 1) {
    if (wrongs.has('address')) await postToken(server, GRANT);
    if (wrongs.has('client')) await postToken(server, { ...GRANT, client_id: id }, ELSEWHERE.headers);
  }
  const response = await postToken(
    server,
    {
      grant_type: wrongs.has('grant') ? 'password' : GRANT.grant_type,
      client_id: id,
      client_secret: wrongs.has('credentials') ? 'wrong' : key,
      ...(wrongs.has('scope') ? { scope: 'exports:create' } : {}),
      ...(wrongs.has('size') ? { padding: 'x'.repeat(4096) } : {}),
    },
    wrongs.has('form') ? { 'content-type': 'text/plain' } : {},
  );
  const { type, error, error_description, detail } = JSON.parse(await response.text());
  const limited = wrongs.has('address') ? /from this address/ : /for this client_id/;
  if (response.status === 429) assert.match(detail, limited);
  assert.equal(error === undefined, error_description === undefined);
  return [response.status, error ?? String(type).split('/').at(-1)];
}

test('the token endpoint: of any two errors, the one checked first is reported', async () => {
  assert.equal((await askToken(new Set()))[0], 200);
  const entries = Object.entries(TOKEN_ERRORS) as [TokenWrong, readonly [number, string]][];
  for (const [at, [first, expected]] of entries.entries()) {
    for (const [second] of entries.slice(at))
      assert.deepEqual(await askToken(new Set([first, second])), expected, `${first} ${second}`);
  }
});
