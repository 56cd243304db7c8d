/** The change stream and one detection over HTTP (contract: Endpoints). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NOW_MS, PLAIN, sharedServer, startTestServer } from '../support/server.ts';

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

test('an export that is switched off has no streams', async () => {
  await using other = await startTestServer({ disabled: ['image'] });
  other.store.deliver([{ content_type: 'image', version: 1, row: {} }], NOW_MS - MINUTE_MS);
  other.store.finishWindow('newswire', NOW_MS - 20 * MINUTE_MS);
  const { key: all } = other.makeKey();
  const page = JSON.parse(await (await other.get(SINCE, all)).text());
  assert.deepEqual([page.data, page.as_of], [[], '2026-11-21T11:50:00Z']);
  assert.equal((await other.get('/v1/detections/i.7001.1.1', all)).status, 404);
});
