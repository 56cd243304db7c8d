/** The two documents that a client reads before it has a key: the OpenAPI document, and RFC 8414's metadata. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as oauth from 'oauth4webapi';
import { openApiDocument } from '../../src/openapi/document.ts';
import { withServer } from '../support/every-endpoint.ts';
import { startTestServer } from '../support/server.ts';

const OPENAPI = '/v1/openapi.json';
const METADATA = '/.well-known/oauth-authorization-server';
const insecure = { [oauth.allowInsecureRequests]: true };

test('the OpenAPI document names the address of the service, and needs no credential', () =>
  withServer({}, async (server) => {
    const response = await server.get(OPENAPI);
    assert.deepEqual([response.status, response.headers.get('content-type')], [200, 'application/json']);
    const { servers, components, ...document } = Object(await response.json());
    assert.deepEqual(servers, [{ url: 'https://api.example/ww' }]);
    const { tokenUrl } = components.securitySchemes.token.flows.clientCredentials;
    assert.equal(tokenUrl, 'https://api.example/ww/oauth/token');
    const { servers: _, components: __, ...expected } = Object(openApiDocument());
    assert.deepEqual(document, JSON.parse(JSON.stringify(expected)));
    assert.equal((await server.get(`${OPENAPI}/`)).status, 404);
    const posted = await server.get(OPENAPI, undefined, { method: 'POST' });
    assert.deepEqual([posted.status, posted.headers.get('allow')], [405, 'GET']);
  }));

test('an OAuth library finds the token endpoint, and parses its errors and those of the API', async () => {
  await using server = await startTestServer();
  const issuer = new URL(server.url);
  const found = await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...insecure });
  // The library expects the address with a slash, as every URL has it.
  const metadata = Object(await found.json());
  assert.equal(metadata.issuer, server.url);
  const response = Response.json({ ...metadata, issuer: issuer.href });
  const as = await oauth.processDiscoveryResponse(issuer, response);
  const { id, key } = server.makeKey();
  const client = { client_id: id };
  const ask = async (auth: oauth.ClientAuth, form: Record<string, string> = {}) =>
    oauth.processClientCredentialsResponse(
      as,
      client,
      await oauth.clientCredentialsGrantRequest(as, client, auth, form, insecure),
    );
  const secret = key.slice(-52);
  assert.equal((await ask(oauth.ClientSecretBasic(secret))).scope, 'detections:read');
  await assert.rejects(ask(oauth.ClientSecretBasic('wrong')), (error) => {
    assert.ok(error instanceof oauth.WWWAuthenticateChallengeError);
    const [challenge] = error.cause;
    assert.deepEqual([challenge?.scheme, challenge?.parameters.realm], ['basic', 'svc-data']);
    return true;
  });
  await assert.rejects(ask(oauth.ClientSecretPost(secret), { scope: 'exports:create' }), (error) => {
    assert.ok(error instanceof oauth.ResponseBodyError);
    assert.deepEqual([error.status, error.error], [400, 'invalid_scope']);
    return true;
  });
  const me = new URL(`${server.url}/v1/me`);
  await assert.rejects(
    oauth.protectedResourceRequest('nonsense', 'GET', me, undefined, null, insecure),
    (error) => error instanceof oauth.WWWAuthenticateChallengeError && error.cause[0]?.scheme === 'bearer',
  );
});

test('without server.discovery both are 404, also with a key', () =>
  withServer({ discovery: false }, async (server, key) => {
    for (const path of [OPENAPI, METADATA])
      for (const credential of [undefined, key])
        assert.equal((await server.get(path, credential)).status, 404);
    const refused = await server.get('/v1/me', 'nonsense');
    assert.deepEqual([refused.status, refused.headers.get('www-authenticate')], [401, 'Bearer']);
  }));
