/** POST /oauth/token: its rate limits, by address and by client id (contract: Limits). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NOW_MS, sharedServer } from '../support/server.ts';
import {
  basic,
  GRANT,
  granted,
  inBody,
  makeClient,
  postToken,
  problem,
  refused,
} from '../support/token-client.ts';

const server = await sharedServer({ token_requests_per_minute: 3, trusted_proxies: ['127.0.0.1'] });

function post(body: Parameters<typeof postToken>[1], headers: Record<string, string> = {}) {
  return postToken(server, body, headers);
}

const from = (address: string) => ({ 'x-forwarded-for': address });

test('per address, an IPv6 /64 as one; every request counts, and 429 comes first', async () => {
  server.setNow(NOW_MS);
  const here = from('192.0.2.1');
  await refused(await post('', here), 400, 'unsupported_grant_type');
  await refused(await post('', { ...here, 'content-type': 'text/plain' }), 400, 'invalid_request');
  await granted(await post(inBody(makeClient(server)), here));
  server.setNow(NOW_MS + 20_001);
  for (const headers of [here, { ...here, 'content-type': 'text/plain' }]) {
    const response = await post('', headers);
    assert.equal(response.headers.get('retry-after'), '40');
    await problem(server, response, 429, 'rate_limited');
  }
  await problem(server, await post('x'.repeat(5000), here), 413, 'content_too_large');
  await refused(await post('', from('192.0.2.2')), 400, 'unsupported_grant_type');
  server.setNow(NOW_MS + 60_000);
  await refused(await post('', here), 400, 'unsupported_grant_type');

  for (const last of ['1', '2', '3']) {
    await refused(await post('', from(`2001:db8:1:2::${last}`)), 400, 'unsupported_grant_type');
  }
  await problem(server, await post('', from('2001:db8:1:2:ffff::4')), 429, 'rate_limited');
  await refused(await post('', from('2001:db8:1:3::1')), 400, 'unsupported_grant_type');
});

test('per client id, from any address; after the grant type, before the credentials', async () => {
  server.setNow(NOW_MS + 200_000);
  const known = makeClient(server);
  let last = 0;
  const elsewhere = () => {
    last += 1;
    return from(`198.51.100.${last}`);
  };
  await granted(await post(inBody(known), elsewhere()));
  await refused(await post(inBody({ id: known.id, secret: 'x' }), elsewhere()), 401, 'invalid_client');
  // Requests that are refused earlier do not count.
  await refused(
    await post({ ...inBody(known), grant_type: 'x' }, elsewhere()),
    400,
    'unsupported_grant_type',
  );
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
  await refused(
    await post({ ...inBody(known), grant_type: 'x' }, elsewhere()),
    400,
    'unsupported_grant_type',
  );
  await granted(await post(inBody(makeClient(server)), elsewhere()));
  server.setNow(NOW_MS + 260_000);
  await granted(await post(inBody(known), elsewhere()));
});

test('a network that a key does not allow does not prove it', async () => {
  server.setNow(NOW_MS + 200_000_000);
  const bound = makeClient(server, { allow_addresses: ['203.0.113.9'] });
  const thief = from('203.0.113.8');
  for (const _ of [1, 2, 3]) await refused(await post(inBody(bound), thief), 401, 'invalid_client');
  await problem(server, await post(inBody(bound), from('203.0.113.7')), 429, 'rate_limited');
  await problem(server, await post(inBody(bound), from('203.0.113.9')), 429, 'rate_limited');
});
