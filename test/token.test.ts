/** POST /oauth/token: what it takes, gives and refuses, and in which order (contract: POST /oauth/token, Errors). */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { resumeAccount, suspendAccount } from '../src/auth/accounts.ts';
import { createKey } from '../src/auth/key.ts';
import { revokeKey, setKey } from '../src/auth/keys.ts';
import type { Scope } from '../src/auth/scopes.ts';
import { TOKEN_IN_BODY, TOKEN_WITH_BASIC } from '../src/manual/tokens.ts';
import { NOW_MS, startTestServer, type TestServer } from './support/server.ts';

const FORM = 'application/x-www-form-urlencoded';
const GRANT = { grant_type: 'client_credentials' };
const ALL: readonly Scope[] = ['detections:read', 'reports:read', 'exports:create'];
const CHANGES = '/v1/detections/changes?since=2026-11-21T11:00:00Z';

let server: TestServer;
let client: { id: string; key: string; secret: string };

before(async () => {
  server = await startTestServer();
});
after(() => server.close());
beforeEach(() => {
  server.setNow(NOW_MS);
  client = makeClient();
});

function makeClient(terms: Parameters<TestServer['makeKey']>[0] = {}, at = server) {
  const { id, key } = at.makeKey(terms);
  return { id, key, secret: key.slice(-52) };
}

/** The body with both parts of the credentials. */
function inBody({ id, secret }: { id: string; secret: string }, more: Record<string, string> = {}) {
  return { ...GRANT, client_id: id, client_secret: secret, ...more };
}

function basic(userPass: string): { authorization: string } {
  return { authorization: `Basic ${Buffer.from(userPass).toString('base64')}` };
}

function post(
  body: Record<string, string> | string | Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = {},
  at = server,
): Promise<Response> {
  const isRaw = typeof body === 'string' || body instanceof Uint8Array;
  const text = isRaw ? body : new URLSearchParams(body).toString();
  return fetch(`${at.url}/oauth/token`, {
    method: 'POST',
    headers: { 'content-type': FORM, ...headers },
    body: text,
  });
}

async function granted(response: Response): Promise<{ access_token: string; scope: string }> {
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return JSON.parse(text);
}

function assertHeaders(response: Response): void {
  assert.match(response.headers.get('x-request-id') ?? '', /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  assert.equal(response.headers.get('cache-control'), 'no-store');
  assert.equal(response.headers.get('pragma'), 'no-cache');
  for (const [name] of response.headers) assert.doesNotMatch(name, /^ratelimit-/);
}

/** @returns the description */
async function refused(
  response: Response,
  status: number,
  error: string,
  challenge = false,
): Promise<string> {
  const text = await response.text();
  assert.equal(response.status, status, text);
  assertHeaders(response);
  assert.equal(response.headers.get('content-type'), 'application/json');
  assert.equal(response.headers.get('www-authenticate'), challenge ? 'Basic realm="svc-data"' : null);
  const body = JSON.parse(text);
  assert.deepEqual(Object.keys(body), ['error', 'error_description']);
  assert.equal(body.error, error);
  // RFC 6749, 5.2: these characters only.
  assert.match(body.error_description, /^[\x20-\x21\x23-\x5b\x5d-\x7e]{5,}$/);
  return body.error_description;
}

async function problem(response: Response, status: number, code: string, at = server): Promise<void> {
  const text = await response.text();
  assert.equal(response.status, status, text);
  assertHeaders(response);
  assert.equal(response.headers.get('content-type'), 'application/problem+json');
  assert.equal(response.headers.get('www-authenticate'), null);
  const { type, request_id } = JSON.parse(text);
  assert.equal(type, `${at.url}/errors/${code}`);
  assert.equal(request_id, response.headers.get('x-request-id'));
}

describe('what it gives', () => {
  test('a token with its type, lifetime and scope, and every header of the contract', async () => {
    const response = await post(inBody(client));
    assertHeaders(response);
    assert.equal(response.headers.get('content-type'), 'application/json');
    const text = await response.clone().text();
    assert.equal(response.headers.get('content-length'), String(Buffer.byteLength(text)));
    const { access_token, ...rest } = await granted(response);
    assert.deepEqual(rest, { token_type: 'Bearer', expires_in: 3600, scope: 'detections:read' });
    assert.match(access_token, new RegExp(`^ww_token_${client.id}_[\\w-]{52}$`));
    assert.equal((await server.get(CHANGES, access_token)).status, 200);
  });

  test('the secret is the 52 characters, or the whole key when its id is the client_id', async () => {
    await granted(await post(inBody(client)));
    await granted(await post(inBody({ id: client.id, secret: client.key })));
    await granted(await post(GRANT, basic(`${client.id}:${client.secret}`)));
    await granted(await post(GRANT, basic(`${client.id}:${client.key}`)));
    const other = makeClient();
    await refused(await post(inBody({ id: client.id, secret: other.key })), 401, 'invalid_client');
  });

  test('scope: omitted or empty is all the key has; else what is asked for, in order and once', async () => {
    const wide = makeClient({ scopes: ['exports:create', 'detections:read', 'reports:read'] });
    const scope = async (asked?: string) =>
      (await granted(await post(inBody(wide, asked === undefined ? {} : { scope: asked })))).scope;
    assert.equal(await scope(), ALL.join(' '));
    assert.equal(await scope(''), ALL.join(' '));
    assert.equal(await scope('reports:read'), 'reports:read');
    assert.equal(await scope('reports:read detections:read reports:read'), 'detections:read reports:read');
  });

  test('the media type may have parameters and capitals; unknown parameters are passed over', async () => {
    for (const type of [`${FORM}; charset=UTF-8`, FORM.toUpperCase(), `${FORM} ;charset=utf-8`]) {
      await granted(await post(inBody(client, { audience: 'x', resource: '' }), { 'content-type': type }));
    }
    const pieces = `&&grant_type=client_credentials&client%5Fid=${client.id}&client_secret=${client.secret}&`;
    await granted(await post(pieces));
  });

  test('Basic: each part is form-decoded, the scheme in any case', async () => {
    const percent = (text: string) =>
      text.replace(/./g, (letter) => `%${letter.charCodeAt(0).toString(16).padStart(2, '0')}`);
    await granted(await post(GRANT, basic(`${percent(client.id)}:${percent(client.key)}`)));
    const { authorization } = basic(`${client.id}:${client.secret}`);
    await granted(await post(GRANT, { authorization: authorization.replace('Basic', 'bAsIc') }));
    // Empty counts as left out (RFC 6749, 3.1).
    await granted(await post({ ...GRANT, client_id: '' }, { authorization }));
    // + is a space: the secret of nobody, but well formed.
    await refused(await post(GRANT, basic(`${client.id}:a+b`)), 401, 'invalid_client', true);
  });

  test('another Authorization than Basic is no credential here', async () => {
    const bearer = { authorization: `Bearer ${client.key}` };
    await granted(await post(inBody(client), bearer));
    await refused(await post(GRANT, bearer), 401, 'invalid_client');
  });

  test('the log has the key id and no secret', async () => {
    const { access_token } = await granted(await post(inBody(client)));
    await post(inBody({ id: client.id, secret: `${client.secret.slice(0, -1)}0` }));
    await post(GRANT, basic(`${client.id}:${client.key}:x`));
    await server.get(`/x/${access_token}`);
    await server.get(`/oauth/token?client_secret=${client.secret}`);
    const text = JSON.stringify(server.lines.slice(-5));
    assert.match(
      text,
      new RegExp(`"key_id":"${client.id}","method":"POST","path":"/oauth/token","status":200`),
    );
    assert.doesNotMatch(text, new RegExp(client.secret.slice(5, 25)));
    assert.doesNotMatch(text, new RegExp(access_token.slice(-20)));
  });
});

describe('what it refuses', () => {
  test('413 for more than 4096 bytes, not for 4096', async () => {
    const body = new URLSearchParams(inBody(client)).toString();
    const padded = (length: number) => `${body}&x=`.padEnd(length, 'x');
    await granted(await post(padded(4096)));
    await problem(await post(padded(4097)), 413, 'content_too_large');
    await problem(await post(padded(3_000_000)), 413, 'content_too_large');
    // Also where nothing else is right.
    await problem(await post('x'.repeat(5000), { 'content-type': 'text/plain' }), 413, 'content_too_large');
  });

  test('413 for a chunked body that grows beyond, before it ends', async () => {
    const socket = connect(server.port, '127.0.0.1');
    const head = `POST /oauth/token HTTP/1.1\r\nHost: x\r\nContent-Type: ${FORM}\r\nTransfer-Encoding: chunked\r\n\r\n`;
    socket.write(`${head}800\r\n${'x'.repeat(0x800)}\r\n`);
    socket.write(`801\r\n${'x'.repeat(0x801)}\r\n`);
    const reply = await new Promise<string>((resolve) =>
      socket.once('data', (data) => resolve(String(data))),
    );
    assert.match(reply, /^HTTP\/1\.1 413 /);
    assert.match(reply, /\r\nPragma: no-cache\r\n/);
    // The rest may come: the connection goes on.
    socket.write(`4\r\nrest\r\n0\r\n\r\nGET /x HTTP/1.1\r\nHost: x\r\n\r\n`);
    const next = await new Promise<string>((resolve) => socket.once('data', (data) => resolve(String(data))));
    assert.match(next, /^HTTP\/1\.1 404 /);
    socket.destroy();
  });

  test('a chunked body that is small enough is read whole', async () => {
    const text = new URLSearchParams(inBody(client)).toString();
    const stream = new ReadableStream({
      start(controller) {
        for (const letter of text.match(/.{1,20}/g) ?? []) controller.enqueue(Buffer.from(letter));
        controller.close();
      },
    });
    const init = { method: 'POST', headers: { 'content-type': FORM }, body: stream, duplex: 'half' } as const;
    await granted(await fetch(`${server.url}/oauth/token`, init));
  });

  test('400 invalid_request: the body is no form', async () => {
    const form = new URLSearchParams(inBody(client)).toString();
    const types = ['application/json', 'text/plain;charset=UTF-8', 'multipart/form-data', `${FORM}x`];
    for (const type of [...types, `x, ${FORM}`, `${FORM}, text/plain`]) {
      await refused(await post(form, { 'content-type': type }), 400, 'invalid_request');
    }
    const untyped = await fetch(`${server.url}/oauth/token`, { method: 'POST' });
    await refused(untyped, 400, 'invalid_request');
    for (const bad of [`${form}&x=%`, `${form}&x=%zz`, `${form}&%ff=1`, `${form}&x=%c3%28`]) {
      await refused(await post(bad), 400, 'invalid_request');
    }
    const latin1 = new Uint8Array(Buffer.from(`${form}&x=\xfc`, 'latin1'));
    await refused(await post(latin1), 400, 'invalid_request');
  });

  test('400 invalid_request: a parameter twice, also an unknown, an empty and an encoded one', async () => {
    const form = new URLSearchParams(inBody(client)).toString();
    assert.match(await refused(await post(`${form}&scope=&scope=`), 400, 'invalid_request'), /^scope /);
    assert.match(await refused(await post(`${form}&client%5fid=a`), 400, 'invalid_request'), /^client_id /);
    assert.match(
      await refused(await post(`${form}&grant_type=client_credentials`), 400, 'invalid_request'),
      /^grant_type /,
    );
    for (const twice of ['x=1&x=1', 'x&x', '__proto__=1&__proto__=2']) {
      const description = await refused(await post(`${form}&${twice}`), 400, 'invalid_request');
      assert.match(description, /^A parameter /);
    }
  });

  test('400 invalid_request: credentials both in the body and with Basic', async () => {
    const headers = basic(`${client.id}:${client.secret}`);
    await refused(await post(inBody(client), headers), 400, 'invalid_request');
    await refused(await post({ ...GRANT, client_id: client.id }, headers), 400, 'invalid_request');
    await refused(await post({ ...GRANT, client_secret: client.secret }, headers), 400, 'invalid_request');
  });

  test('400 invalid_request: malformed Basic', async () => {
    const base64 = (text: string | Buffer) => Buffer.from(text).toString('base64');
    const good = base64(`${client.id}:${client.secret}`);
    const malformed = [
      'Basic',
      'Basic !!!',
      `Basic ${base64('no colon')}`,
      `Basic ${base64(Buffer.from([0xff, 0x3a, 0x41]))}`,
      `Basic ${base64(`${client.id}:%`)}`,
      `Basic ${base64(`%ff:${client.secret}`)}`,
      `Basic ${base64('a:bc').replaceAll('=', '')}`,
      `Basic ${good} ${good}`,
      `Basic ${good}, Basic ${good}`,
      `Bearer x, Basic ${good}`,
    ];
    for (const authorization of malformed) {
      await refused(await post(GRANT, { authorization }), 400, 'invalid_request');
    }
  });

  test('400 unsupported_grant_type: missing, empty or another, before the credentials', async () => {
    for (const body of ['', 'grant_type=', 'grant_type=password', 'grant_type=Client_Credentials']) {
      await refused(await post(body), 400, 'unsupported_grant_type');
    }
    await refused(await post('', basic('x:y')), 400, 'unsupported_grant_type');
    // After what is no request at all.
    await refused(await post('x=1&x=1'), 400, 'invalid_request');
    await refused(await post('', { authorization: 'Basic !' }), 400, 'invalid_request');
  });

  test('401 invalid_client: missing or wrong credentials, with one text for all that are wrong', async () => {
    const missing = [GRANT, { ...GRANT, client_id: client.id }, { ...GRANT, client_secret: client.secret }];
    for (const body of missing) await refused(await post(body), 401, 'invalid_client');
    await refused(await post(GRANT, basic(':')), 401, 'invalid_client', true);
    await refused(
      await post(`grant_type=client_credentials`, basic(`${client.id}:`)),
      401,
      'invalid_client',
      true,
    );

    const nobody = createKey('ww');
    const revoked = makeClient();
    revokeKey(server.access, revoked.id, NOW_MS);
    const expired = makeClient({ expires_at: NOW_MS });
    const changed = client.secret.slice(0, -1) + (client.secret.endsWith('a') ? 'b' : 'a');
    const wrong = [
      { id: client.id, secret: changed },
      { id: client.id, secret: client.key.slice(0, -1) },
      { id: client.id, secret: client.key.replace('ww_', 'xx_') },
      { id: client.id, secret: client.secret.toUpperCase() },
      { id: client.id, secret: 'x' },
      { id: client.id.toUpperCase(), secret: client.secret },
      { id: 'short', secret: client.secret },
      { id: nobody.id, secret: nobody.key.slice(-52) },
      { id: nobody.id, secret: nobody.key },
      revoked,
      expired,
    ];
    const texts = new Set<string>();
    for (const { id, secret } of wrong) {
      texts.add(await refused(await post(inBody({ id, secret })), 401, 'invalid_client'));
      texts.add(await refused(await post(GRANT, basic(`${id}:${secret}`)), 401, 'invalid_client', true));
    }
    assert.equal(texts.size, 1);
  });

  test('401 invalid_client: credentials in the query count for nothing', async () => {
    const query = new URLSearchParams(inBody(client)).toString();
    const response = await fetch(`${server.url}/oauth/token?${query}`, {
      method: 'POST',
      headers: { 'content-type': FORM },
      body: 'grant_type=client_credentials',
    });
    await refused(response, 401, 'invalid_client');
  });

  test('401 invalid_client: a suspended account, an address that is not allowed', async () => {
    const elsewhere = makeClient({ allow_addresses: ['10.0.0.0/8'] });
    assert.match(await refused(await post(inBody(elsewhere)), 401, 'invalid_client'), /127\.0\.0\.1/);
    const good = basic(`${elsewhere.id}:${elsewhere.secret}`);
    await refused(await post(GRANT, good), 401, 'invalid_client', true);
    suspendAccount(server.access, 'agency', NOW_MS);
    const suspended = await post(inBody(client));
    resumeAccount(server.access, 'agency');
    assert.match(await refused(suspended, 401, 'invalid_client'), /suspended/);
  });

  test('400 invalid_scope: a scope that the key has not, after the credentials', async () => {
    const scopes = [
      'reports:read',
      'detections:read reports:read',
      'admin',
      ' ',
      'detections:read ',
      'DETECTIONS:READ',
    ];
    for (const scope of scopes) {
      await refused(await post(inBody(client, { scope })), 400, 'invalid_scope');
    }
    const headers = basic(`${client.id}:${client.secret}`);
    await refused(await post({ ...GRANT, scope: 'admin' }, headers), 400, 'invalid_scope');
    await refused(
      await post(inBody({ id: client.id, secret: 'x' }, { scope: 'admin' })),
      401,
      'invalid_client',
    );
  });

  test('405 with Allow for every other method; a trailing slash is 404', async () => {
    for (const method of ['GET', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']) {
      const response = await server.get('/oauth/token', undefined, { method });
      assert.equal(response.headers.get('allow'), 'POST');
      await problem(response, 405, 'method_not_allowed');
    }
    const head = await server.get('/oauth/token', undefined, { method: 'HEAD' });
    assert.deepEqual([head.status, head.headers.get('allow')], [405, 'POST']);
    assert.equal((await server.get('/oauth/token/', undefined, { method: 'POST' })).status, 404);
  });
});

describe('how often', () => {
  let limited: TestServer;
  before(async () => {
    limited = await startTestServer({ token_requests_per_minute: 3, trusted_proxies: ['127.0.0.1'] });
  });
  after(() => limited.close());

  const from = (address: string) => ({ 'x-forwarded-for': address });

  test('per address, an IPv6 network of 64 bits being one; every request counts, and 429 comes first', async () => {
    limited.setNow(NOW_MS);
    const here = from('192.0.2.1');
    await refused(await post('', here, limited), 400, 'unsupported_grant_type');
    await refused(await post('', { ...here, 'content-type': 'text/plain' }, limited), 400, 'invalid_request');
    await granted(await post(inBody(makeClient({}, limited)), here, limited));
    limited.setNow(NOW_MS + 20_001);
    for (const headers of [here, { ...here, 'content-type': 'text/plain' }]) {
      const response = await post('', headers, limited);
      assert.equal(response.headers.get('retry-after'), '40');
      await problem(response, 429, 'rate_limited', limited);
    }
    await problem(await post('x'.repeat(5000), here, limited), 413, 'content_too_large', limited);
    await refused(await post('', from('192.0.2.2'), limited), 400, 'unsupported_grant_type');
    limited.setNow(NOW_MS + 60_000);
    await refused(await post('', here, limited), 400, 'unsupported_grant_type');

    for (const last of ['1', '2', '3']) {
      await refused(await post('', from(`2001:db8:1:2::${last}`), limited), 400, 'unsupported_grant_type');
    }
    await problem(await post('', from('2001:db8:1:2:ffff::4'), limited), 429, 'rate_limited', limited);
    await refused(await post('', from('2001:db8:1:3::1'), limited), 400, 'unsupported_grant_type');
  });

  test('per client id, wherever from; after the grant type, before the credentials', async () => {
    limited.setNow(NOW_MS + 200_000);
    const known = makeClient({}, limited);
    let last = 0;
    const elsewhere = () => {
      last += 1;
      return from(`198.51.100.${last}`);
    };
    await granted(await post(inBody(known), elsewhere(), limited));
    await refused(
      await post(inBody({ id: known.id, secret: 'x' }), elsewhere(), limited),
      401,
      'invalid_client',
    );
    // What does not come so far does not count.
    await refused(
      await post({ ...inBody(known), grant_type: 'x' }, elsewhere(), limited),
      400,
      'unsupported_grant_type',
    );
    const { authorization } = basic(`${known.id}:${known.secret}`);
    await granted(await post(GRANT, { ...elsewhere(), authorization }, limited));
    limited.setNow(NOW_MS + 210_500);
    for (const secret of [known.secret, 'x']) {
      const response = await post(inBody({ id: known.id, secret }), elsewhere(), limited);
      assert.equal(response.headers.get('retry-after'), '50');
      await problem(response, 429, 'rate_limited', limited);
    }
    const basicToo = await post(GRANT, { ...elsewhere(), authorization }, limited);
    await problem(basicToo, 429, 'rate_limited', limited);
    await refused(
      await post({ ...inBody(known), grant_type: 'x' }, elsewhere(), limited),
      400,
      'unsupported_grant_type',
    );
    await granted(await post(inBody(makeClient({}, limited)), elsewhere(), limited));
    limited.setNow(NOW_MS + 260_000);
    await granted(await post(inBody(known), elsewhere(), limited));
  });
});

test('when keys cannot be read it is 503, a fault is 500, both as problems', async () => {
  const other = await startTestServer();
  try {
    const known = makeClient({}, other);
    // No token can be issued at such a time.
    other.setNow(-1);
    await problem(await post(inBody(known), {}, other), 500, 'internal', other);
    other.setNow(NOW_MS);
    other.access.close();
    rmSync(join(other.store.folder, 'access.db'));
    await problem(await post(inBody(known), {}, other), 503, 'unavailable', other);
    // What is malformed is not asked for.
    const malformed = { id: 'x', secret: 'y' };
    await refused(await post(inBody(malformed), {}, other), 401, 'invalid_client');
  } finally {
    await other.close();
  }
});

describe('a token that was given', () => {
  const token = async (of = client, more: Record<string, string> = {}) =>
    (await granted(await post(inBody(of, more)))).access_token;
  const status = async (credential: string, path = CHANGES) => (await server.get(path, credential)).status;

  test('reads what its key reads, and shares its allowance of requests', async () => {
    const access = await token();
    const byKey = await server.get(CHANGES, client.key);
    const byToken = await server.get(CHANGES, access);
    const remaining = (response: Response) => Number(response.headers.get('ratelimit-remaining'));
    assert.equal(remaining(byToken), remaining(byKey) - 1);
    assert.equal(server.lines.at(-1)?.key_id, client.id);
  });

  test('has the scopes that were issued and that the key still has', async () => {
    const wide = makeClient({ scopes: ALL });
    const narrow = await token(wide, { scope: 'reports:read' });
    const full = await token(wide);
    assert.deepEqual([await status(narrow), await status(full)], [403, 200]);
    const told = async (credential: string) =>
      JSON.parse(await (await server.get('/v1/me', credential)).text()).key.scopes;
    assert.deepEqual([await told(narrow), await told(full)], [['reports:read'], ALL]);
    setKey(server.access, wide.id, { scopes: ['reports:read'] });
    assert.deepEqual([await told(narrow), await told(full)], [['reports:read'], ['reports:read']]);
    assert.deepEqual([await status(narrow), await status(full)], [403, 403]);
    setKey(server.access, wide.id, { scopes: ['detections:read'] });
    assert.deepEqual([await status(narrow), await status(full)], [403, 200]);
  });

  test('lasts 3600 seconds', async () => {
    const access = await token();
    server.setNow(NOW_MS + 3_599_999);
    assert.equal(await status(access), 200);
    server.setNow(NOW_MS + 3_600_000);
    const response = await server.get(CHANGES, access);
    assert.deepEqual([response.status, response.headers.get('www-authenticate')], [401, 'Bearer']);
  });

  test('lasts no longer where the clock is set back', async () => {
    const access = await token();
    server.setNow(NOW_MS - 60_000);
    assert.equal(await status(access), 200);
    server.setNow(NOW_MS - 60_001);
    assert.equal(await status(access), 401);
  });

  test('ends with its key: revoked, expired, suspended, elsewhere', async () => {
    const expiring = makeClient({ expires_at: NOW_MS + 1000 });
    const access = await token(expiring);
    assert.equal(await status(access), 200);
    server.setNow(NOW_MS + 1000);
    assert.equal(await status(access), 401);

    const other = await token();
    suspendAccount(server.access, 'agency', NOW_MS);
    assert.equal(await status(other), 403);
    resumeAccount(server.access, 'agency');
    setKey(server.access, client.id, { allow_addresses: ['10.0.0.0/8'] });
    assert.equal(await status(other), 403);
    setKey(server.access, client.id, { allow_addresses: [] });
    assert.equal(await status(other), 200);
    revokeKey(server.access, client.id, NOW_MS);
    assert.equal(await status(other), 401);
  });

  test('cannot be used to get another', async () => {
    const access = await token();
    await refused(await post(inBody({ id: client.id, secret: access })), 401, 'invalid_client');
    await refused(await post(inBody({ id: client.id, secret: access.slice(-52) })), 401, 'invalid_client');
  });
});

test("the manual's calls do what they say", {
  skip: spawnSync('curl', ['--version']).status !== 0 && 'curl is not installed',
}, async () => {
  const run = async (code: string) => {
    const script = code.replaceAll('http://127.0.0.1:8080', server.url);
    const env = { PATH: process.env.PATH, KEY: client.key };
    return JSON.parse((await promisify(execFile)('sh', ['-eu', '-c', script], { env })).stdout);
  };
  assert.equal((await run(TOKEN_IN_BODY)).key.id, client.id);
  const answer = await run(TOKEN_WITH_BASIC);
  assert.deepEqual([answer.token_type, answer.scope], ['Bearer', 'detections:read']);
});
