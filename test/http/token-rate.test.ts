/** POST /oauth/token: its rate limits, by address and by client id. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NOW_MS, sharedServer } from '../support/server.ts';
import { basic, GRANT, granted, inBody, makeClient, problem, tokenCalls } from '../support/token-client.ts';

const server = await sharedServer({ token_requests_per_minute: 3, trusted_proxies: ['127.0.0.1'] });

const { post, refusal } = tokenCalls(server);

const from = (address: string) => ({ 'x-forwarded-for': address });

test('per address, an IPv6 /64 as one; every request counts, and 429 comes first', async () => {
  server.setNow(NOW_MS);
  const here = from('192.0.2.1');
  await refusal(400, 'unsupported_grant_type', '', here);
  await refusal(400, 'invalid_request', '', { ...here, 'content-type': 'text/plain' });
  await granted(await post(inBody(makeClient(server)), here));
  server.setNow(NOW_MS + 20_001);
  const response = await post('', here);
  assert.equal(response.headers.get('retry-after'), '40');
  await problem(server, response, 429, 'rate_limited');
  await refusal(400, 'unsupported_grant_type', '', from('192.0.2.2'));
  server.setNow(NOW_MS + 60_000);
  await refusal(400, 'unsupported_grant_type', '', here);

  for (const last of ['1', '2', '3'])
    await refusal(400, 'unsupported_grant_type', '', from(`2001:db8:1:2::${last}`));
  await problem(server, await post('', from('2001:db8:1:2:ffff::4')), 429, 'rate_limited');
  await refusal(400, 'unsupported_grant_type', '', from('2001:db8:1:3::1'));
});

test('per client id, from any address; after the grant type, before the credentials', async () => {
  server.setNow(NOW_MS + 200_000);
  const known = makeClient(server);
  let last = 0;
  const elsewhere = () => from(`198.51.100.${++last}`);
  await granted(await post(inBody(known), elsewhere()));
  await refusal(401, 'invalid_client', inBody({ id: known.id, secret: 'x' }), elsewhere());
  // Requests that are refused earlier do not count.
  await refusal(400, 'unsupported_grant_type', { ...inBody(known), grant_type: 'x' }, elsewhere());
  const { authorization } = basic(`${known.id}:${known.secret}`);
  await granted(await post(GRANT, { ...elsewhere(), authorization }));
  server.setNow(NOW_MS + 210_500);
  for (const secret of [known.secret, 'x']) {
    const response = await post(inBody({ id: known.id, secret }), elsewhere());
    assert.equal(response.headers.get('retry-after'), '50');
    await problem(server, response, 429, 'rate_limited');
  }
  const basicToo = await post(GRANT, { ...elsewhere(), authorization });
  await problem(server, basicToo, 429, 'rate_limited');
  await granted(await post(inBody(makeClient(server)), elsewhere()));
  server.setNow(NOW_MS + 260_000);
  await granted(await post(inBody(known), elsewhere()));
});

test('a right secret from a new network counts with those from the owner', async () => {
  server.setNow(NOW_MS + 100_000_000);
  const known = makeClient(server);
  for (const _ of [1, 2, 3]) await granted(await post(inBody(known), from('192.0.2.1')));
  await problem(server, await post(inBody(known), from('192.0.2.2')), 429, 'rate_limited');
});

test('a network that a key does not allow does not prove it', async () => {
  server.setNow(NOW_MS + 200_000_000);
  const bound = makeClient(server, { allow_addresses: ['203.0.113.9'] });
  for (const _ of [1, 2, 3]) await refusal(401, 'invalid_client', inBody(bound), from('203.0.113.8'));
  await problem(server, await post(inBody(bound), from('203.0.113.7')), 429, 'rate_limited');
  await problem(server, await post(inBody(bound), from('203.0.113.9')), 429, 'rate_limited');
});
