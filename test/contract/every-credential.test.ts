/** Credentials, for each endpoint: accepted ones, and the errors of others. */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { addAccount, suspendAccount } from '../../src/auth/accounts.ts';
import { revokeKey } from '../../src/auth/keys.ts';
import { addSubscription } from '../../src/auth/subscriptions.ts';
import {
  assertProblem,
  assertProblems,
  HEALTH,
  KEYED,
  ME,
  READS,
  SCHEMA,
  sharedWithDetections,
  TOKEN,
  tokenOf,
  withServer,
} from '../support/every-endpoint.ts';
import { NOW_MS } from '../support/server.ts';

const server = await sharedWithDetections();
const key = server.makeKey().key;

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
