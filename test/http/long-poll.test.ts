/** Waiting for the next change: `Prefer: wait=N` on the change stream (RFC 7240, 4.3). */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { preferredWaitSeconds, WAITS_PER_KEY_MAX, WAITS_SHARE } from '../../src/http/waiting.ts';
import { DAY_MS, MINUTE_MS } from '../../src/time.ts';
import { type ChangesPage, startAppliance } from '../support/appliance.ts';
import { fileName, idOf, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { readerOf } from '../support/lab.ts';
import { NOW_MS, startTestServer, type TestServer } from '../support/server.ts';
import { until } from '../support/until.ts';

const CHANGES = '/v1/detections/changes';

const pageOf = async (answer: Response | Promise<Response>): Promise<ChangesPage> =>
  JSON.parse(await (await answer).text());

const idsOf = ({ data }: ChangesPage) => data.map(({ id }) => id);

test('the preference is parsed by RFC 7240; unknown ones are ignored', () => {
  for (const [seconds, ...headers] of [
    [10, 'wait=10'],
    [7, 'WAIT = "7"'],
    [5, 'respond-async, wait=5; foo=bar', 'foo="a, wait=3", wait=5'],
    [3, 'wait=3, wait=9'],
    [60, 'wait=61', 'wait=999999999'],
    [null, undefined, '', 'wait', 'wait=0', 'wait=-1', 'wait=1.5', 'wait=ten', 'await=10', 'foo="a, wait=5"'],
  ] as const)
    for (const header of headers) assert.equal(preferredWaitSeconds(header), seconds, header);
});

describe('a request that waits', () => {
  let server: TestServer;
  let key: string;
  let keyId: string;

  beforeEach(async () => {
    server = await startTestServer({ requests_per_minute: 5 });
    ({ key, id: keyId } = server.makeKey());
    server.deliverOne(7001);
  });
  afterEach(() => server.close());

  const end = async (): Promise<string> =>
    (await server.json(`${CHANGES}?since=2026-11-20T00:00:00Z`, key)).next_cursor;

  /** Sends a request. @returns a promise of its response, once the request waits */
  async function waits(query: string, init: { seconds?: number; signal?: AbortSignal } = {}) {
    const before = server.waiting.count();
    const answer = server.get(`${CHANGES}?${query}`, key, {
      headers: { prefer: `wait=${init.seconds ?? 30}` },
      ...(init.signal === undefined ? {} : { signal: init.signal }),
    });
    answer.catch(() => {});
    await until('the request waits', () => server.waiting.count() > before);
    return { answer };
  }

  test('gets the first change, is counted once, and says that it waited', async () => {
    const cursor = await end();
    const { answer } = await waits(`cursor=${cursor}`);
    server.deliverOne(7001);
    const response = await answer;
    assert.deepEqual([response.status, response.headers.get('preference-applied')], [200, 'wait=30']);
    assert.equal(response.headers.get('ratelimit-remaining'), '3');
    const page = await pageOf(response);
    assert.deepEqual([page.data.length, page.has_more], [1, false]);
    assert.notEqual(page.next_cursor, cursor);
    assert.equal(server.waiting.count(), 0);
    assert.equal(typeof server.lines.findLast(({ msg }) => msg === 'request')?.waited_ms, 'number');
  });

  test('keeps waiting if filters drop the change, and its cursor advances', async () => {
    const cursor = await end();
    const { answer } = await waits(`cursor=${cursor}&subscription_id=7001`);
    server.deliverOne(7002);
    await until('the request waits again', () => server.waiting.count() === 1);
    const moved = await end();
    server.deliverOne(7001);
    const page = await pageOf(answer);
    const read = page.data.map(({ subscription_id }) => subscription_id);
    assert.deepEqual(read, [7001]);
    const { answer: second } = await waits(`cursor=${page.next_cursor}&min_score=99`, { seconds: 1 });
    server.deliverOne(7001);
    const empty = await pageOf(second);
    assert.deepEqual([empty.data, empty.has_more], [[], false]);
    assert.equal(empty.next_cursor, await end());
    assert.notEqual(moved, page.next_cursor);
  });

  for (const [what, change, status] of [
    ['is revoked', 'revoked_at = 1', 401],
    ['loses the scope', `scopes = '["reports:read"]'`, 403],
  ] as const)
    test(`is refused if its key ${what} meanwhile`, async () => {
      const { answer } = await waits(`cursor=${await end()}`);
      server.access.prepare(`UPDATE api_key SET ${change} WHERE id = ?`).run(keyId);
      server.deliverOne(7001);
      assert.equal((await answer).status, status);
    });

  test('gets no rows once another waiting request has used the daily allowance', async () => {
    server.access.prepare('UPDATE account SET daily_rows = 2').run();
    const cursor = await end();
    const answers = [];
    for (let count = 0; count < 3; count += 1) answers.push((await waits(`cursor=${cursor}`)).answer);
    server.deliverOne(7001);
    assert.deepEqual((await Promise.all(answers)).map(({ status }) => status).sort(), [200, 429, 429]);
  });

  test('counts against the allowance of the day on which it is answered', async () => {
    const { answer } = await waits(`cursor=${await end()}`);
    const tomorrow = NOW_MS + DAY_MS;
    server.setNow(tomorrow);
    server.deliverOne(7001);
    assert.equal((await answer).status, 200);
    assert.equal(server.dailyRows.used('key', keyId, tomorrow), 1);
  });

  test('gets the rate-limit headers of the time at which it is answered', async () => {
    const { answer } = await waits(`cursor=${await end()}`);
    server.setNow(NOW_MS + MINUTE_MS);
    server.deliverOne(7001);
    const { headers } = await answer;
    assert.deepEqual([headers.get('ratelimit-remaining'), headers.get('ratelimit-reset')], ['5', '60']);
  });

  test('does not wait without the preference, or if there are rows', async () => {
    const cursor = await end();
    const plain = await server.get(`${CHANGES}?cursor=${cursor}`, key);
    assert.equal(plain.headers.get('preference-applied'), null);
    server.deliverOne(7001);
    const full = await server.get(`${CHANGES}?cursor=${cursor}`, key, { headers: { prefer: 'wait=30' } });
    assert.equal((await pageOf(full)).data.length, 1);
    assert.equal(full.headers.get('preference-applied'), null);
  });

  test('leaves nothing behind when its client goes', async () => {
    const leaving = new AbortController();
    await waits(`cursor=${await end()}`, { signal: leaving.signal });
    leaving.abort();
    await until('nobody waits', () => server.waiting.count() === 0);
  });

  test('is answered at once when the server closes', async () => {
    const { answer } = await waits(`cursor=${await end()}`);
    const closed = server.running.close(60_000);
    assert.equal((await answer).status, 200);
    await closed;
  });
});

describe('more requests than may wait', () => {
  const CONNECTIONS = 200;
  let server: TestServer;

  beforeEach(async () => {
    const max = { max_connections: CONNECTIONS, max_connections_per_address: CONNECTIONS };
    server = await startTestServer(max);
    server.store.deliver([{ content_type: 'text', version: 1, row: {} }], NOW_MS);
  });
  afterEach(() => server.close());

  /** Sends requests that wait, one after the other. @returns the answers so far: the place of each request */
  async function wait(keys: readonly string[]): Promise<number[]> {
    const answered: number[] = [];
    for (const [place, key] of keys.entries()) {
      const { next_cursor } = await server.json(`${CHANGES}?since=2026-11-20T00:00:00Z`, key);
      const waiting = server.waiting.count() + answered.length;
      const headers = { prefer: 'wait=60' };
      void server.get(`${CHANGES}?cursor=${next_cursor}`, key, { headers }).then(async (answer) => {
        const { data, has_more } = await pageOf(answer);
        assert.deepEqual([answer.status, data, has_more], [200, [], false]);
        assert.equal(answer.headers.get('preference-applied'), 'wait=60');
        answered.push(place);
      });
      await until('it waits', () => server.waiting.count() + answered.length > waiting);
    }
    return answered;
  }

  for (const [what, keys, bound] of [
    ['of one key', 1, WAITS_PER_KEY_MAX],
    ['of many keys', 9, CONNECTIONS * WAITS_SHARE],
  ] as const)
    test(`${what}: the oldest are answered early, and others find room`, async () => {
      const made = Array.from({ length: keys }, () => server.makeKey().key);
      const senders = Array.from({ length: bound + 5 }, (_, at) => made[at % keys] ?? '');
      assert.deepEqual(await wait(senders), [0, 1, 2, 3, 4]);
      assert.equal(server.waiting.count(), bound);
      assert.equal((await server.get('/v1/health')).status, 200);
      const page = await server.json(`${CHANGES}?since=2026-11-20T00:00:00Z`, made[0]);
      assert.equal(page.data.length, 1);
    });
});

test('in the program, a dropped file ends the wait, and so does a stop', async () => {
  await using appliance = await startAppliance({ WIREWATCH_INGEST_QUIET_MS: '0' });
  const row = newRow();
  await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([row]));
  const { url } = appliance.serving();
  const { get } = readerOf(url, appliance.key);
  const ask = (query: string) => get(`${CHANGES}?${query}`, { prefer: 'wait=60' });
  const since = new Date(Date.now() - MINUTE_MS).toISOString();
  const first = await pageOf(ask(`since=${since}`));
  assert.deepEqual(idsOf(first), [idOf(row)]);
  const next = newRow();
  const answer = ask(`cursor=${first.next_cursor}`);
  await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([next]));
  const page = await pageOf(answer);
  assert.deepEqual(idsOf(page), [idOf(next)]);
  const last = ask(`cursor=${page.next_cursor}`);
  // The server would refuse requests that it reads after the stop: a later response shows that it has read them.
  await (await fetch(`${url}/v1/health`)).text();
  assert.equal(await appliance.serving().stop(), 0);
  assert.equal((await last).status, 200);
});
