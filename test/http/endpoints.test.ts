/** The change stream and one detection over HTTP (contract: Endpoints). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addSubscription } from '../../src/auth/subscriptions.ts';
import { NOW_MS, PLAIN, sharedServer, startTestServer } from '../support/server.ts';
import { words } from '../support/words.ts';

const MINUTE_MS = 60_000;

const server = await sharedServer({ base_url: 'https://api.example/ww' });
server.store.deliver(
  [
    { content_type: 'text', version: 1, row: { source_internal_id: 1 } },
    { content_type: 'image', version: 1, row: { source_internal_id: 2 } },
    { content_type: 'text', version: 2, row: { source_internal_id: 1, strength_score: 96 } },
    { content_type: 'text', version: 1, row: { subscription_id: 7002, source_internal_id: 3 } },
    { content_type: 'text', version: 1, row: { subscription_id: 9009, source_internal_id: 4 } },
  ],
  NOW_MS - MINUTE_MS,
);
server.store.finishWindow('newswire', NOW_MS - 20 * MINUTE_MS);
server.store.finishWindow('imagewire', NOW_MS - 30 * MINUTE_MS);
const key = server.makeKey().key;

const SINCE = '/v1/detections/changes?since=2026-11-21T00:00:00Z';

async function changes(query: string) {
  const response = await server.get(`/v1/detections/changes?${query}`, key);
  assert.equal(response.status, 200, query);
  const page = JSON.parse(await response.text());
  return {
    ...page,
    ids: page.data.map((row: { id: string; version: number }) => `${row.id} ${row.version}`),
  };
}

test('a page has its members in order, and every header that the contract names', async () => {
  const response = await server.get(SINCE, key, PLAIN);
  assert.equal(response.status, 200);
  assert.match(response.headers.get('x-request-id') ?? '', /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  assert.equal(response.headers.get('cache-control'), 'no-store');
  assert.equal(response.headers.get('content-type'), 'application/json');
  assert.equal(response.headers.get('ratelimit-limit'), '1000000');
  assert.equal(response.headers.get('ratelimit-policy'), '1000000;w=60');
  assert.match(response.headers.get('ratelimit-remaining') ?? '', /^\d+$/);
  assert.equal(response.headers.get('ratelimit-reset'), '60');
  const text = await response.text();
  assert.equal(response.headers.get('content-length'), String(Buffer.byteLength(text)));
  const page = JSON.parse(text);
  assert.deepEqual(Object.keys(page), ['data', 'next_cursor', 'has_more', 'as_of']);
  assert.deepEqual([page.has_more, page.as_of], [false, '2026-11-21T11:40:00Z']);
  assert.deepEqual(Object.keys(page.data[0]).slice(0, 4), ['id', 'version', 'event', 'content_type']);
  assert.equal(page.data[1].source.image_url, 'https://api.example/ww/photos/2?signature=abc');
});

test('a walk by cursor returns the same as one page, and ends where polls stay', async () => {
  const all = await changes('since=2026-11-21T00:00:00Z');
  assert.deepEqual(all.ids, ['t.7001.1.1 1', 'i.7001.2.1 1', 't.7001.1.1 2', 't.7002.3.1 1']);
  const first = await changes('since=2026-11-21T00:00:00Z&limit=3');
  assert.equal(first.has_more, true);
  const second = await changes(`cursor=${first.next_cursor}&limit=3`);
  assert.deepEqual([second.ids, second.has_more], [['t.7002.3.1 1'], false]);
  const poll = await changes(`cursor=${second.next_cursor}`);
  assert.deepEqual([poll.ids, poll.has_more, poll.next_cursor], [[], false, second.next_cursor]);
});

test('filters, fields and streams narrow a page', async () => {
  const since = 'since=2026-11-21T00:00:00Z';
  assert.deepEqual((await changes(`${since}&band=max`)).ids, ['t.7001.1.1 2']);
  assert.deepEqual((await changes(`${since}&content_type=image`)).ids, ['i.7001.2.1 1']);
  assert.deepEqual((await changes(`${since}&subscription_id=7002`)).ids, ['t.7002.3.1 1']);
  assert.equal((await changes(`${since}&content_type=text`)).as_of, '2026-11-21T11:50:00Z');
  const { data } = await changes(`${since}&fields=strength.band&limit=1`);
  assert.deepEqual(data, [{ id: 't.7001.1.1', version: 1, strength: { band: 'medium' } }]);
});

test('one detection is its latest version, without event', async () => {
  const response = await server.get('/v1/detections/t.7001.1.1', key);
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('cache-control'), 'no-store');
  assert.ok(response.headers.has('ratelimit-limit'));
  const detection = JSON.parse(await response.text());
  assert.deepEqual([detection.version, detection.strength.score, detection.event], [2, 96, undefined]);
  const encoded = await server.get('/v1/detections/t%2E7001.1.1?fields=event,customer', key);
  assert.deepEqual(await encoded.json(), { id: 't.7001.1.1', version: 2, customer: null });
});

test('foreign and missing detections get the same response', async () => {
  const texts = [];
  for (const id of ['t.9009.4.1', 't.9009.5.1', 't.7001.999.1', 'i.7001.1.1']) {
    const response = await server.get(`/v1/detections/${id}`, key);
    assert.equal(response.status, 404);
    assert.ok(response.headers.has('ratelimit-limit'), 'verified');
    const text = await response.text();
    texts.push(text.replace(response.headers.get('x-request-id') ?? '?', 'ID'));
  }
  assert.equal(new Set(texts).size, 1);
  const details = [];
  for (const id of [9009, 12345]) {
    const response = await server.get(`${SINCE}&subscription_id=${id}`, key);
    assert.equal(response.status, 400);
    details.push(JSON.parse(await response.text()).detail);
  }
  assert.equal(details[0], details[1]);
});

test('a malformed detection id is 400', async () => {
  for (const id of words(`
    t.7001.1 t.07001.1.1 T.7001.1.1 x a%2Fb % %ff %63hanges t.7001.1.1%0a`)) {
    const response = await server.get(`/v1/detections/${id}`, key);
    assert.equal(response.status, 400, id);
    assert.match(JSON.parse(await response.text()).detail, /^id: /);
  }
});

test('a key limited to one type reads nothing of the other', async () => {
  const { key: narrow } = server.makeKey({ subscriptions: [{ id: 7001, content_types: ['text'] }] });
  const page = JSON.parse(await (await server.get(SINCE, narrow)).text());
  assert.deepEqual([page.data.length, page.as_of], [2, '2026-11-21T11:50:00Z']);
  assert.equal((await server.get(`${SINCE}&content_type=image`, narrow)).status, 400);
  assert.equal((await server.get('/v1/detections/i.7001.2.1', narrow)).status, 404);
});

test('a request reads at most twenty streams', async () => {
  const ids = Array.from({ length: 11 }, (_, index) => 8001 + index);
  for (const id of ids) {
    const subscription = { id, account_id: 'agency', name: null, time_zone: 'UTC' };
    addSubscription(server.access, { ...subscription, content_types: ['text', 'image'] }, NOW_MS);
  }
  const of = (count: number) => ids.slice(0, count).map((id) => ({ id, content_types: null }));
  const { key: ten } = server.makeKey({ subscriptions: of(10) });
  assert.equal((await server.get(SINCE, ten)).status, 200);
  const { key: eleven } = server.makeKey({ subscriptions: of(11) });
  const response = await server.get(SINCE, eleven);
  assert.equal(response.status, 400);
  assert.match(
    JSON.parse(await response.text()).detail,
    /22 streams.*Name fewer subscriptions, or one content type/,
  );
  assert.equal((await server.get(`${SINCE}&content_type=text`, eleven)).status, 200);
  assert.equal((await server.get(`${SINCE}&subscription_id=8001,8011`, eleven)).status, 200);
});

test('an export that is switched off has no streams', async () => {
  const other = await startTestServer({ disabled: ['image'] });
  try {
    other.store.deliver([{ content_type: 'image', version: 1, row: {} }], NOW_MS - MINUTE_MS);
    other.store.finishWindow('newswire', NOW_MS - 20 * MINUTE_MS);
    const { key: all } = other.makeKey();
    const page = JSON.parse(await (await other.get(SINCE, all)).text());
    assert.deepEqual([page.data, page.as_of], [[], '2026-11-21T11:50:00Z']);
    assert.equal((await other.get('/v1/detections/i.7001.1.1', all)).status, 404);
  } finally {
    await other.close();
  }
});

test('since starts at a delivery known only in memory', async () => {
  const [position] = server.store.deliver(
    [{ content_type: 'text', version: 1, row: { source_internal_id: 50 } }],
    null,
  );
  assert.ok(position !== undefined);
  server.recentDeliveries.set(position, NOW_MS - 5000);
  assert.deepEqual((await changes('since=2026-11-21T11:59:55Z')).ids, ['t.7001.50.1 1']);
  assert.deepEqual((await changes('since=2026-11-21T11:59:55.001Z')).ids, []);
});

test('a large page arrives completely', async () => {
  const other = await startTestServer();
  try {
    const headline = 'ü'.repeat(1000);
    const rows = Array.from({ length: 1500 }, (_, index) => ({
      content_type: index % 2 === 0 ? ('text' as const) : ('image' as const),
      version: 1,
      row: { source_internal_id: index, article_headline: headline },
    }));
    other.store.deliver(rows, NOW_MS - MINUTE_MS);
    const response = await other.get(`${SINCE}&limit=1000`, other.makeKey().key, PLAIN);
    const text = await response.text();
    assert.equal(response.headers.get('content-length'), String(Buffer.byteLength(text)));
    const page = JSON.parse(text);
    assert.deepEqual([page.data.length, page.has_more], [1000, true]);
    assert.equal(page.data[1].source.image_url, `${other.url}/photos/1?signature=abc`);
  } finally {
    await other.close();
  }
});
