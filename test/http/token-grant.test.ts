/** POST /oauth/token: requests, responses, and the use of an issued token. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { beforeEach, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { setKey } from '../../src/auth/keys.ts';
import type { Scope } from '../../src/auth/scopes.ts';
import { without } from '../support/installed.ts';
import { example } from '../support/manual.ts';
import { NOW_MS, sharedServer } from '../support/server.ts';
import { basic, FORM, GRANT, granted, inBody, makeClient, tokenCalls } from '../support/token-client.ts';

const ALL: readonly Scope[] = ['detections:read', 'reports:read', 'exports:create'];
const CHANGES = '/v1/detections/changes?since=2026-11-21T11:00:00Z';

const server = await sharedServer();
const client = makeClient(server);
beforeEach(() => server.setNow(NOW_MS));
const { post, refusal } = tokenCalls(server);

describe('the response', () => {
  test('a token with its type, lifetime and scope', async () => {
    const { access_token, ...rest } = await granted(await post(inBody(client)));
    assert.deepEqual(rest, { token_type: 'Bearer', expires_in: 3600, scope: 'detections:read' });
    assert.match(access_token, new RegExp(`^ww_token_${client.id}_[\\w-]{52}$`));
    assert.equal((await server.get(CHANGES, access_token)).status, 200);
  });

  test('the secret is the 52 characters, or the whole key when its id is the client_id', async () => {
    await granted(await post(inBody(client)));
    await granted(await post(inBody({ id: client.id, secret: client.key })));
    await granted(await post(GRANT, basic(`${client.id}:${client.secret}`)));
    await granted(await post(GRANT, basic(`${client.id}:${client.key}`)));
    const other = makeClient(server);
    await refusal(401, 'invalid_client', inBody({ id: client.id, secret: other.key }));
  });

  test('scope: omitted or empty means all of the key; else the requested ones, in order and once', async () => {
    const wide = makeClient(server, { scopes: ['exports:create', 'detections:read', 'reports:read'] });
    const scope = async (asked?: string) =>
      (await granted(await post(inBody(wide, asked === undefined ? {} : { scope: asked })))).scope;
    assert.equal(await scope(), ALL.join(' '));
    assert.equal(await scope(''), ALL.join(' '));
    assert.equal(await scope('reports:read'), 'reports:read');
    assert.equal(await scope('reports:read detections:read reports:read'), 'detections:read reports:read');
  });

  test('the media type may have parameters and capitals; unknown parameters are ignored', async () => {
    for (const type of [`${FORM}; charset=UTF-8`, FORM.toUpperCase(), `${FORM} ;charset=utf-8`])
      await granted(await post(inBody(client, { audience: 'x', resource: '' }), { 'content-type': type }));
    const pieces = `&&grant_type=client_credentials&client%5Fid=${client.id}&client_secret=${client.secret}&`;
    await granted(await post(pieces));
  });

  test('Basic: each part is form-decoded, the scheme in any case', async () => {
    const percent = (text: string) =>
      text.replace(/./g, (letter) => `%${letter.charCodeAt(0).toString(16).padStart(2, '0')}`);
    await granted(await post(GRANT, basic(`${percent(client.id)}:${percent(client.key)}`)));
    const { authorization } = basic(`${client.id}:${client.secret}`);
    await granted(await post(GRANT, { authorization: authorization.replace('Basic', 'bAsIc') }));
    // An empty parameter counts as omitted (RFC 6749, 3.1).
    await granted(await post({ ...GRANT, client_id: '' }, { authorization }));
    // + is a space: a well-formed, but unknown secret.
    await refusal(401, 'invalid_client', GRANT, basic(`${client.id}:a+b`));
  });

  test('an Authorization scheme other than Basic is no credential here', async () => {
    const bearer = { authorization: `Bearer ${client.key}` };
    await granted(await post(inBody(client), bearer));
    await refusal(401, 'invalid_client', GRANT, bearer);
  });
});

describe('an issued token', () => {
  const token = async (of = client, more: Record<string, string> = {}) =>
    (await granted(await post(inBody(of, more)))).access_token;
  const status = async (credential: string, path = CHANGES) => (await server.get(path, credential)).status;

  test('reads what its key reads, and shares its request rate', async () => {
    const access = await token();
    const byKey = await server.get(CHANGES, client.key);
    const byToken = await server.get(CHANGES, access);
    const remaining = (response: Response) => Number(response.headers.get('ratelimit-remaining'));
    assert.equal(remaining(byToken), remaining(byKey) - 1);
    assert.equal(server.lines.at(-1)?.key_id, client.id);
  });

  test('has those issued scopes that the key still has', async () => {
    const wide = makeClient(server, { scopes: ALL });
    const narrow = await token(wide, { scope: 'reports:read' });
    const full = await token(wide);
    assert.deepEqual([await status(narrow), await status(full)], [403, 200]);
    const scopes = async (credential: string) => (await server.json('/v1/me', credential)).key.scopes;
    assert.deepEqual([await scopes(narrow), await scopes(full)], [['reports:read'], ALL]);
    setKey(server.access, wide.id, { scopes: ['reports:read'] });
    assert.deepEqual([await scopes(narrow), await scopes(full)], [['reports:read'], ['reports:read']]);
    assert.deepEqual([await status(narrow), await status(full)], [403, 403]);
    setKey(server.access, wide.id, { scopes: ['detections:read'] });
    assert.deepEqual([await status(narrow), await status(full)], [403, 200]);
  });

  test('is valid for 3600 seconds', async () => {
    const access = await token();
    server.setNow(NOW_MS + 3_599_999);
    assert.equal(await status(access), 200);
    server.setNow(NOW_MS + 3_600_000);
    const response = await server.get(CHANGES, access);
    assert.deepEqual([response.status, response.headers.get('www-authenticate')], [401, 'Bearer']);
  });

  test('cannot be used to get another', async () => {
    const access = await token();
    await refusal(401, 'invalid_client', inBody({ id: client.id, secret: access }));
    await refusal(401, 'invalid_client', inBody({ id: client.id, secret: access.slice(-52) }));
  });
});

test("the manual's calls work", { skip: without('curl') }, async () => {
  const run = async (code: string) => {
    const script = code.replaceAll('http://127.0.0.1:8080', server.url);
    const env = { PATH: process.env.PATH, KEY: client.key };
    return JSON.parse((await promisify(execFile)('sh', ['-eu', '-c', script], { env })).stdout);
  };
  assert.equal((await run(example('tokens', 'token-in-body'))).key.id, client.id);
  const answer = await run(example('tokens', 'token-with-basic'));
  assert.deepEqual([answer.token_type, answer.scope], ['Bearer', 'detections:read']);
});
