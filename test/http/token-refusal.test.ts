/** POST /oauth/token: its errors, with status and form. */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { resumeAccount, suspendAccount } from '../../src/auth/accounts.ts';
import { createKey } from '../../src/auth/key-form.ts';
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
  tokenCalls,
} from '../support/token-client.ts';

const server = await sharedServer();
const client = makeClient(server);
/** What is granted, unless something is added. */
const FORM_TEXT = `${new URLSearchParams(inBody(client))}`;
const WITH_BASIC = basic(`${client.id}:${client.secret}`);
const { post, refusal } = tokenCalls(server);

test('413 for more than 4096 bytes, not for 4096', async () => {
  const padded = (length: number) => `${FORM_TEXT}&x=`.padEnd(length, 'x');
  await granted(await post(padded(4096)));
  const title = await problem(server, await post(padded(4097)), 413, 'content_too_large');
  assert.equal(title, 'Content too large');
  await problem(server, await post(padded(3_000_000)), 413, 'content_too_large');
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
  const types = ['application/json', 'text/plain;charset=UTF-8', 'multipart/form-data', `${FORM}x`];
  for (const type of [...types, `x, ${FORM}`, `${FORM}, text/plain`])
    await refusal(400, 'invalid_request', FORM_TEXT, { 'content-type': type });
  await refused(await fetch(`${server.url}/oauth/token`, { method: 'POST' }), 400, 'invalid_request');
  for (const bad of [`${FORM_TEXT}&x=%`, `${FORM_TEXT}&x=%zz`, `${FORM_TEXT}&%ff=1`, `${FORM_TEXT}&x=%c3%28`])
    await refusal(400, 'invalid_request', bad);
  await refusal(400, 'invalid_request', new Uint8Array(Buffer.from(`${FORM_TEXT}&x=\xfc`, 'latin1')));
});

test('400 invalid_request: a parameter twice, also an unknown, an empty and an encoded one', async () => {
  assert.match(await refusal(400, 'invalid_request', `${FORM_TEXT}&scope=&scope=`), /^scope /);
  assert.match(await refusal(400, 'invalid_request', `${FORM_TEXT}&client%5fid=a`), /^client_id /);
  assert.match(await refusal(400, 'invalid_request', `${FORM_TEXT}&grant_type=x`), /^grant_type /);
  for (const twice of ['x=1&x=1', 'x&x', '__proto__=1&__proto__=2'])
    assert.match(await refusal(400, 'invalid_request', `${FORM_TEXT}&${twice}`), /^A parameter /);
});

test('400 invalid_request: credentials both in the body and with Basic', async () => {
  await refusal(400, 'invalid_request', inBody(client), WITH_BASIC);
  await refusal(400, 'invalid_request', { ...GRANT, client_id: client.id }, WITH_BASIC);
  await refusal(400, 'invalid_request', { ...GRANT, client_secret: client.secret }, WITH_BASIC);
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
  for (const authorization of malformed) await refusal(400, 'invalid_request', GRANT, { authorization });
});

test('400 unsupported_grant_type: missing, empty or another, before the credentials', async () => {
  for (const body of ['', 'grant_type=', 'grant_type=password', 'grant_type=Client_Credentials'])
    await refusal(400, 'unsupported_grant_type', body);
  // After a malformed request.
  await refusal(400, 'invalid_request', 'x=1&x=1');
  await refusal(400, 'invalid_request', '', { authorization: 'Basic !' });
});

test('401 invalid_client: missing or wrong credentials, with one text for all wrong ones', async () => {
  const missing = [GRANT, { ...GRANT, client_id: client.id }, { ...GRANT, client_secret: client.secret }];
  for (const body of missing) await refusal(401, 'invalid_client', body);
  await refusal(401, 'invalid_client', GRANT, basic(':'));
  await refusal(401, 'invalid_client', `grant_type=client_credentials`, basic(`${client.id}:`));

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
    texts.add(await refusal(401, 'invalid_client', inBody({ id, secret })));
    texts.add(await refusal(401, 'invalid_client', GRANT, basic(`${id}:${secret}`)));
  }
  assert.equal(texts.size, 1);
});

test('401 invalid_client: credentials in the query are ignored', async () => {
  const response = await fetch(`${server.url}/oauth/token?${FORM_TEXT}`, {
    method: 'POST',
    headers: { 'content-type': FORM },
    body: 'grant_type=client_credentials',
  });
  await refused(response, 401, 'invalid_client');
});

test('401 invalid_client: a suspended account, an address that is not allowed', async () => {
  const elsewhere = makeClient(server, { allow_addresses: ['10.0.0.0/8'] });
  assert.match(await refusal(401, 'invalid_client', inBody(elsewhere)), /127\.0\.0\.1/);
  await refusal(401, 'invalid_client', GRANT, basic(`${elsewhere.id}:${elsewhere.secret}`));
  suspendAccount(server.access, 'agency', NOW_MS);
  const suspended = await post(inBody(client));
  resumeAccount(server.access, 'agency');
  assert.match(await refused(suspended, 401, 'invalid_client'), /suspended/);
});

test('400 invalid_scope: a scope that the key lacks, after the credentials', async () => {
  const lacking = ['reports:read', 'detections:read reports:read', 'admin'];
  for (const scope of [...lacking, ' ', 'detections:read ', 'DETECTIONS:READ'])
    await refusal(400, 'invalid_scope', inBody(client, { scope }));
  await refusal(400, 'invalid_scope', { ...GRANT, scope: 'admin' }, WITH_BASIC);
});

test('unreadable keys are 503, a fault is 500, both as problem documents', async () => {
  await using other = await startTestServer();
  const known = makeClient(other);
  // No token can be issued at such a time.
  other.setNow(-1);
  await problem(other, await postToken(other, inBody(known)), 500, 'internal');
  other.setNow(NOW_MS);
  other.access.close();
  rmSync(join(other.store.folder, 'access.db'));
  await problem(other, await postToken(other, inBody(known)), 503, 'unavailable');
  // Malformed credentials are not looked up.
  await refused(await postToken(other, inBody({ id: 'x', secret: 'y' })), 401, 'invalid_client');
});
