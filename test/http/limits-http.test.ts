/** The daily row allowance and the limit on unseen key ids over HTTP. */
import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { setAccount, suspendAccount } from '../../src/auth/accounts.ts';
import { createKey } from '../../src/auth/key-form.ts';
import { revokeKey, setKey } from '../../src/auth/keys.ts';
import { accountUsageId } from '../../src/limits/daily-rows.ts';
import { CHANGES, hasRate, ONE, PERIOD, READS } from '../support/every-endpoint.ts';
import { NOW_MS, startTestServer, type TestServer, type TestServerOptions } from '../support/server.ts';
import { textRows } from '../support/store.ts';
import { granted, inBody, postToken } from '../support/token-client.ts';

const ACCOUNT = accountUsageId({ id: 'agency', created_at: NOW_MS });

let server: TestServer;
afterEach(() => server.close());

async function start(options: TestServerOptions = {}): Promise<string> {
  server = await startTestServer(options);
  server.store.deliver(textRows(3), NOW_MS - 60_000);
  return server.makeKey().key;
}

const statusOf = (...asked: Parameters<TestServer['get']>) => server.statusOf(...asked);

/** The rows that the account has used. */
const usedRows = (): number => server.dailyRows.used('account', ACCOUNT, NOW_MS);

/** @param rows the allowance as written in the detail */
async function assertThrottled(
  path: string,
  key: string,
  by: string,
  rows = 'of \\d+ rows? \\(\\d+ rows? read today\\)',
): Promise<void> {
  const { type, detail } = await server.json(path, key, 429);
  assert.equal(type, `${server.url}/errors/daily_allowance`);
  assert.match(detail, new RegExp(`^The ${by} has used its daily allowance ${rows}\\. `));
}

test('a request is accepted while rows are left, and then served completely', async () => {
  const key = await start({ daily_rows: 4 });
  for (const path of [CHANGES, PERIOD]) assert.equal((await server.json(path, key)).data.length, 3, path);
  assert.equal(usedRows(), 6);
  for (const path of READS) await assertThrottled(path, key, 'account');
  server.setNow(Date.parse('2026-11-22T00:00:00Z') - 1);
  assert.equal((await server.get(ONE, key)).headers.get('retry-after'), '1');
});

test('rows of every detection endpoint count, those of others do not', async () => {
  const key = await start({ daily_rows: 1000 });
  const counted = [];
  for (const path of [...READS, `${CHANGES}&limit=2`, '/v1/me', '/v1/schema/detection']) {
    const before = usedRows();
    assert.equal(await statusOf(path, key), 200);
    counted.push(usedRows() - before);
  }
  assert.deepEqual(counted, [3, 3, 1, 2, 0, 0]);
});

test('an empty page, a 404 and a 400 cost nothing; once all rows are used, an empty page is 429, too', async () => {
  const key = await start({ daily_rows: 1 });
  const empty = `${CHANGES}&subscription_id=7002`;
  for (const path of [empty, '/v1/detections/t.7001.99.1', `${CHANGES}&nope=1`]) await statusOf(path, key);
  assert.equal(usedRows(), 0);
  assert.equal(await statusOf(ONE, key), 200);
  await assertThrottled(empty, key, 'account');
});

test('a key has its own allowance only if one was set; changes apply to the next request', async () => {
  const key = await start({ daily_rows: 1000 });
  const { id, key: small } = server.makeKey({ daily_rows: 1 });
  assert.equal(await statusOf(ONE, small), 200);
  await assertThrottled(ONE, small, 'key', 'of 1 row \\(1 row read today\\)');
  assert.equal(await statusOf(ONE, key), 200);
  setKey(server.access, id, { daily_rows: 2 });
  assert.equal(await statusOf(ONE, small), 200);
  assert.equal(await statusOf(ONE, small), 429);
  setKey(server.access, id, { daily_rows: null });
  assert.equal(await statusOf(ONE, small), 200);
  setAccount(server.access, 'agency', { daily_rows: 4 });
  await assertThrottled(ONE, key, 'account', 'of 4 rows \\(\\d rows? read today\\)');
});

test('every request that proves a key counts as its use, and no other', async () => {
  const key = await start({ requests_per_minute: 6, daily_rows: 1 });
  const id = key.split('_')[2] ?? '';
  const uses = () => server.keyUses.all();
  const used = async (expected: number, path: string, withKey = key, init: RequestInit = {}) => {
    const before = uses();
    assert.equal(await statusOf(path, withKey, init), expected, path);
    const since = uses().filter((use) => !before.includes(use));
    return since.map(({ key_id }) => key_id);
  };
  assert.deepEqual(await used(200, ONE), [id]);
  assert.deepEqual(uses(), [{ key_id: id, last_used_at: NOW_MS, position: null }]);
  const statuses = { [ONE]: 429, '/v1/me': 200, '/v1/me?x=1': 400, '/v1/schema/detection': 200 };
  for (const [path, status] of Object.entries(statuses))
    assert.deepEqual(await used(status, path), [id], path);
  const form = { grant_type: 'client_credentials', client_id: id, client_secret: key };
  const grant = { method: 'POST', body: new URLSearchParams(form) };
  assert.deepEqual(await used(200, '/oauth/token', '', grant), [id]);

  assert.deepEqual(await used(404, '/nothing'), []);
  assert.deepEqual(await used(200, '/v1/health'), []);
  assert.deepEqual(await used(401, '/v1/me', createKey('ww').key), []);
  const wrong = { method: 'POST', body: new URLSearchParams({ ...form, client_secret: 'a'.repeat(52) }) };
  assert.deepEqual(await used(401, '/oauth/token', '', wrong), []);
  suspendAccount(server.access, 'agency', NOW_MS);
  assert.deepEqual(await used(403, '/v1/me'), []);
});

test('a token shares the allowance of its key', async () => {
  await start({ daily_rows: 1000 });
  const { id, key } = server.makeKey({ daily_rows: 1 });
  const { access_token } = await granted(await postToken(server, inBody({ id, secret: key })));
  assert.equal(await statusOf(ONE, access_token), 200);
  await assertThrottled(ONE, key, 'key');
  await assertThrottled(ONE, access_token, 'key');
});

/** A key that does not exist. */
const guess = () => createKey('ww').key;

test('too many unseen key ids are 429 before anything is verified, with Retry-After and without rate-limit headers', async () => {
  const key = await start({ unseen_key_ids_per_minute: 3 });
  for (let count = 0; count < 3; count += 1) assert.equal(await statusOf(ONE, guess()), 401);
  server.setNow(NOW_MS + 15_000);
  for (const credential of [guess(), key]) {
    const response = await server.get(`${CHANGES}&nope=1`, credential);
    assert.deepEqual([response.status, response.headers.get('retry-after')], [429, '45']);
    assert.equal(hasRate(response), 0);
    const { type } = JSON.parse(await response.text());
    assert.equal(type, `${server.url}/errors/rate_limited`);
  }
  server.setNow(NOW_MS + 60_000);
  const statuses: number[] = [];
  for (const credential of [key, key, guess(), guess(), guess(), key])
    statuses.push(await statusOf(ONE, credential));
  assert.deepEqual(statuses, [200, 200, 401, 401, 429, 200], 'a key id that was proven there is not counted');
});

test('a wrong secret does not make a key id seen; a proven but refused key does', async () => {
  await start({ unseen_key_ids_per_minute: 1 });
  const { id, key } = server.makeKey({ allow_addresses: ['10.0.0.0/8'] });
  assert.equal(await statusOf(ONE, guess().replace(/_live_.{12}/, `_live_${id}`)), 401);
  assert.equal(await statusOf(ONE, key), 429);
  server.setNow(NOW_MS + 60_000);
  for (let count = 0; count < 3; count += 1) assert.equal(await statusOf(ONE, key), 403);
  suspendAccount(server.access, 'agency', NOW_MS);
  assert.equal(await statusOf(ONE, key), 403);
  revokeKey(server.access, id, NOW_MS);
  assert.equal(await statusOf(ONE, key), 401);
});

test("a token claims its key's id, which the network that got it has proven", async () => {
  await start({ unseen_key_ids_per_minute: 1, trusted_proxies: ['127.0.0.0/8'] });
  const elsewhere = { headers: { 'x-forwarded-for': '192.0.2.1' } };
  const { id, key } = server.makeKey();
  const issued = await postToken(server, inBody({ id, secret: key }), elsewhere.headers);
  const { access_token } = await granted(issued);
  const forged = access_token.slice(0, -4) + (access_token.endsWith('AAAA') ? 'BBBB' : 'AAAA');
  assert.equal(await statusOf(ONE, guess(), elsewhere), 401);
  assert.equal(await statusOf(ONE, access_token, elsewhere), 200);
  assert.equal(await statusOf(ONE, forged), 401);
  assert.equal(await statusOf(ONE, access_token), 429);
  server.setNow(NOW_MS + 60_000);
  for (const credential of [access_token, key, access_token])
    assert.equal(await statusOf(ONE, credential), 200);
});

test('refusals are counted by key only for keys that exist', async () => {
  const refused: string[][] = [];
  const keyRefused = (...of: string[]) => void refused.push(of);
  await start({ metrics: { answered() {}, refused() {}, keyRefused } });
  const { id, key } = server.makeKey();
  const wrong = createKey('ww').key;
  for (const text of [wrong, wrong.replace(/_live_[^_]+/, `_live_${id}`)])
    assert.equal(await statusOf(ONE, text), 401);
  assert.equal(await statusOf('/v1/detections?x=1', key), 400);
  assert.deepEqual(refused.flat(), [id, 'unauthorized', id, 'invalid_request']);
});
