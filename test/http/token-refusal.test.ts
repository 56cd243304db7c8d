/** POST /oauth/token: its errors, with status and form (contract: Errors). */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { beforeEach, test } from 'node:test';
import { resumeAccount, suspendAccount } from '../../src/auth/accounts.ts';
import { createKey } from '../../src/auth/key.ts';
import { revokeKey } from '../../src/auth/keys.ts';
import { NOW_MS, sharedServer, startTestServer } from '../support/server.ts';
import {
  basic,
  FORM,
  GRANT,
  granted,
  inBody,
  makeClient,
  postToken,
  problem,
  refused,
  type TokenClient,
} from '../support/token-client.ts';

let client: TokenClient;

const server = await sharedServer();
beforeEach(() => {
  server.setNow(NOW_MS);
  client = makeClient(server);
});

function post(body: Parameters<typeof postToken>[1], headers: Record<string, string> = {}, at = server) {
  return postToken(at, body, headers);
}

test('413 for more than 4096 bytes, not for 4096', async () => {
  const body = new URLSearchParams(inBody(client)).toString();
  const padded = (length: number) => `${body}&x=`.padEnd(length, 'x');
  await granted(await post(padded(4096)));
  await problem(server, await post(padded(4097)), 413, 'content_too_large');
  await problem(server, await post(padded(3_000_000)), 413, 'content_too_large');
  // Even if nothing else is valid.
  await problem(
    server,
    await post('x'.repeat(5000), { 'content-type': 'text/plain' }),
    413,
    'content_too_large',
  );
});

test('413 for a chunked body that grows beyond, before it ends', async () => {
  const socket = connect(server.port, '127.0.0.1');
  const head = `POST /oauth/token HTTP/1.1\r\nHost: x\r\nContent-Type: ${FORM}\r\nTransfer-Encoding: chunked\r\n\r\n`;
  socket.write(`${head}800\r\n${'x'.repeat(0x800)}\r\n`);
  socket.write(`801\r\n${'x'.repeat(0x801)}\r\n`);
  const reply = await new Promise<string>((resolve) => socket.once('data', (data) => resolve(String(data))));
  assert.match(reply, /^HTTP\/1\.1 413 /);
  assert.match(reply, /\r\nPragma: no-cache\r\n/);
  // The rest of the body may follow: the connection stays open.
  socket.write(`4\r\nrest\r\n0\r\n\r\nGET /x HTTP/1.1\r\nHost: x\r\n\r\n`);
  const next = await new Promise<string>((resolve) => socket.once('data', (data) => resolve(String(data))));
  assert.match(next, /^HTTP\/1\.1 404 /);
  socket.destroy();
});

test('400 invalid_request: the body is not a form', async () => {
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
  // After a malformed request.
  await refused(await post('x=1&x=1'), 400, 'invalid_request');
  await refused(await post('', { authorization: 'Basic !' }), 400, 'invalid_request');
});

test('401 invalid_client: missing or wrong credentials, with one text for all wrong ones', async () => {
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
  const revoked = makeClient(server);
  revokeKey(server.access, revoked.id, NOW_MS);
  const expired = makeClient(server, { expires_at: NOW_MS });
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

test('401 invalid_client: credentials in the query are ignored', async () => {
  const query = new URLSearchParams(inBody(client)).toString();
  const response = await fetch(`${server.url}/oauth/token?${query}`, {
    method: 'POST',
    headers: { 'content-type': FORM },
    body: 'grant_type=client_credentials',
  });
  await refused(response, 401, 'invalid_client');
});

test('401 invalid_client: a suspended account, an address that is not allowed', async () => {
  const elsewhere = makeClient(server, { allow_addresses: ['10.0.0.0/8'] });
  assert.match(await refused(await post(inBody(elsewhere)), 401, 'invalid_client'), /127\.0\.0\.1/);
  const good = basic(`${elsewhere.id}:${elsewhere.secret}`);
  await refused(await post(GRANT, good), 401, 'invalid_client', true);
  suspendAccount(server.access, 'agency', NOW_MS);
  const suspended = await post(inBody(client));
  resumeAccount(server.access, 'agency');
  assert.match(await refused(suspended, 401, 'invalid_client'), /suspended/);
});

test('400 invalid_scope: a scope that the key lacks, after the credentials', async () => {
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

test('unreadable keys are 503, a fault is 500, both as problem documents', async () => {
  const other = await startTestServer();
  try {
    const known = makeClient(other);
    // No token can be issued at such a time.
    other.setNow(-1);
    await problem(other, await post(inBody(known), {}, other), 500, 'internal');
    other.setNow(NOW_MS);
    other.access.close();
    rmSync(join(other.store.folder, 'access.db'));
    await problem(other, await post(inBody(known), {}, other), 503, 'unavailable');
    // Malformed credentials are not looked up.
    const malformed = { id: 'x', secret: 'y' };
    await refused(await post(inBody(malformed), {}, other), 401, 'invalid_client');
  } finally {
    await other.close();
  }
});
