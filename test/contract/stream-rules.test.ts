/** Rules of the change stream and of periods that span several requests, over HTTP. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { revokeKey } from '../../src/auth/keys.ts';
import { addSubscription } from '../../src/auth/subscriptions.ts';
import { DAY_MS, MINUTE_MS } from '../../src/time.ts';
import { NOW_MS, startTestServer, type TestServer } from '../support/server.ts';
import { type TestRow, textRow } from '../support/store.ts';

const CHANGES = '/v1/detections/changes';
let server: TestServer;
let key: string;

beforeEach(async () => {
  server = await startTestServer();
  key = server.makeKey().key;
});
afterEach(() => server.close());

const text = (id: number, version = 1, more: TestRow['row'] = {}) =>
  textRow({ source_internal_id: id, ...more }, version);

const read = (target: string, reader = key) => server.json(target, reader);
const refused = async (target: string, reader = key): Promise<string> =>
  (await server.json(target, reader, 400)).detail;

const at = (ms: number) => new Date(ms).toISOString();
const rowsOf = (page: { data: { id: string; version: number; event: string }[] }) =>
  page.data.map(({ id, version, event }) => `${id} ${version} ${event}`);

test('a page has its members in order, and a detection its latest version, without event, by its id', async () => {
  server.store.deliver([text(1), text(1, 2, { strength_score: 96 })], NOW_MS - MINUTE_MS);
  const page = await read(`${CHANGES}?since=${at(NOW_MS - DAY_MS)}`);
  assert.deepEqual(Object.keys(page), ['data', 'next_cursor', 'has_more', 'as_of']);
  assert.deepEqual(Object.keys(page.data[0]).slice(0, 4), ['id', 'version', 'event', 'content_type']);
  const detection = await read('/v1/detections/t.7001.1.1');
  assert.deepEqual([detection.version, detection.strength.score, detection.event], [2, 96, undefined]);
  const encoded = await read('/v1/detections/t%2E7001.1.1?fields=event,customer');
  assert.deepEqual(encoded, { id: 't.7001.1.1', version: 2, customer: null });
});

test('every page has a cursor; that of an empty page finds later changes', async () => {
  const empty = await read(`${CHANGES}?since=${at(NOW_MS)}`);
  assert.deepEqual([empty.data, empty.has_more, typeof empty.next_cursor], [[], false, 'string']);
  const again = await read(`${CHANGES}?cursor=${empty.next_cursor}`);
  assert.deepEqual([again.data, again.next_cursor], [[], empty.next_cursor]);
  server.store.deliver([text(1)], NOW_MS - 1000);
  const later = await read(`${CHANGES}?cursor=${again.next_cursor}`);
  assert.deepEqual(rowsOf(later), ['t.7001.1.1 1 created']);
  assert.notEqual(later.next_cursor, again.next_cursor);
});

test('a cursor is valid with any filter, never expires, and survives a key rotation', async () => {
  server.store.deliver([text(1), text(2), { ...text(3), content_type: 'image' }], NOW_MS - MINUTE_MS);
  const old = server.makeKey();
  const { next_cursor } = await read(`${CHANGES}?since=${at(NOW_MS - DAY_MS)}&limit=1`, old.key);
  revokeKey(server.access, old.id, NOW_MS);
  const roll = server.makeKey().key;
  const cursor = `${CHANGES}?cursor=${next_cursor}`;
  assert.deepEqual(rowsOf(await read(`${cursor}&content_type=image`, roll)), ['i.7001.3.1 1 created']);
  assert.deepEqual(rowsOf(await read(`${cursor}&source_id=none`, roll)), []);
  server.setNow(NOW_MS + 3650 * DAY_MS);
  assert.equal((await read(cursor, roll)).data.length, 2);
});

test('at most 20 streams are read; a key with more must select some', async () => {
  const ids = Array.from({ length: 11 }, (_, number) => 7101 + number);
  for (const id of ids) addSubscription(server.access, { id, account_id: 'agency' }, NOW_MS);
  const subscriptions = (some: number[]) => some.map((id) => ({ id, content_types: null }));
  const wide = server.makeKey({ subscriptions: subscriptions(ids) }).key;
  const since = `since=${at(NOW_MS)}`;
  assert.match(await refused(`${CHANGES}?${since}`, wide), /22 streams; at most 20/);
  const oneMore = server.makeKey({
    subscriptions: [...subscriptions(ids.slice(1)), { id: 7001, content_types: ['text'] }],
  }).key;
  assert.match(await refused(`${CHANGES}?${since}`, oneMore), /21 streams; at most 20/);
  await read(`${CHANGES}?${since}&content_type=text`, wide);
  await read(`${CHANGES}?${since}&subscription_id=7101,7102`, wide);
  await read(`${CHANGES}?${since}`, server.makeKey({ subscriptions: subscriptions(ids.slice(1)) }).key);
});

test('as_of is never in the future, even if the clock is set back, and is accepted as since', async () => {
  for (const exportName of ['newswire', 'imagewire'] as const)
    server.store.finishWindow(exportName, Date.parse('2026-11-21T11:50:00Z'));
  const setBackMs = NOW_MS - 5 * MINUTE_MS + 300;
  server.setNow(setBackMs);
  for (const target of [
    `${CHANGES}?since=2026-11-21T11:00:00Z`,
    '/v1/detections?from=2026-11-20&to=2026-11-20',
  ]) {
    const { as_of } = await read(target);
    assert.equal(as_of, '2026-11-21T11:55:00Z', target);
    await read(`${CHANGES}?since=${as_of}`);
  }
});

test('changes during a walk by period reach the stream after the as_of of its first page', async () => {
  const stream7001 = 'subscription_id=7001&content_type=text';
  const month = `/v1/detections?from=2026-11-01T00:00:00Z&to=2026-11-21T00:00:00Z&limit=1&${stream7001}`;
  const rows = [text(1, 1, { first_detected_at: '2026-11-01T08:00:00Z' }), text(2)];
  server.store.deliver(rows, NOW_MS - 60 * MINUTE_MS);
  server.store.finishWindow('newswire', Date.parse('2026-11-21T11:30:00Z'));
  server.store.finishWindow('imagewire', Date.parse('2026-11-21T11:30:00Z'));
  const first = await read(`${month}&sort=first_detected_at`);
  // A first detection moves into a part that was already read.
  server.store.deliver([text(2, 2, { first_detected_at: '2026-11-01T07:00:00Z' })], NOW_MS - MINUTE_MS);
  const second = await read(`${month}&sort=first_detected_at&cursor=${first.next_cursor}`);
  assert.deepEqual([first.data[0].id, second.data], ['t.7001.1.1', []]);
  const stream = await read(`${CHANGES}?since=${first.as_of}`);
  assert.deepEqual(rowsOf(stream), ['t.7001.2.1 2 updated']);
});

test('nothing of an export that is switched off is read, and as_of leaves it out', async () => {
  await using other = await startTestServer({ disabled: ['image'] });
  const reader = other.makeKey().key;
  other.store.deliver([text(1), { ...text(2), content_type: 'image' }], NOW_MS - MINUTE_MS);
  other.store.finishWindow('newswire', Date.parse('2026-11-21T11:30:00Z'));
  for (const target of [
    `${CHANGES}?since=${at(NOW_MS - DAY_MS)}`,
    '/v1/detections?from=2026-11-20&to=2026-11-22',
  ]) {
    const { data, as_of } = await other.json(target, reader);
    const ids = data.map(({ id }: { id: string }) => id);
    assert.deepEqual(ids, ['t.7001.1.1'], target);
    assert.equal(as_of, '2026-11-21T11:40:00Z', target);
    assert.deepEqual((await other.json(`${target}&content_type=image`, reader)).data, [], target);
  }
  await other.json('/v1/detections/t.7001.1.1', reader);
  await other.json('/v1/detections/i.7001.2.1', reader, 404);
});
