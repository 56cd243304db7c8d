/** GET /v1/me. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { addAccount, setAccount } from '../../src/auth/accounts.ts';
import { setKey } from '../../src/auth/keys.ts';
import { addSubscription, setSubscription } from '../../src/auth/subscriptions.ts';
import { DAY_MS, WINDOW_MS } from '../../src/time.ts';
import { NOW_MS, startTestServer, type TestServer, type TestServerOptions } from '../support/server.ts';

const ONE = '/v1/detections/t.7001.1.1';

let server: TestServer;
let key: string;
let id: string;

beforeEach(() => start());
afterEach(() => server.close());

async function start(options: TestServerOptions = {}): Promise<void> {
  server = await startTestServer({ requests_per_minute: 120, ...options });
  ({ id, key } = server.makeKey());
}

async function restart(options: TestServerOptions): Promise<void> {
  await server.close();
  await start(options);
}

const me = (credential = key) => server.json('/v1/me', credential);
const statusOf = (path: string) => server.statusOf(path, key);

test('has every member, in order', async () => {
  server.store.deliver([{ content_type: 'text', version: 1, row: {} }], NOW_MS);
  server.store.setWindow('missing', NOW_MS - 2 * DAY_MS, 0);
  const subscription = (number: number, text: string | null) => ({
    ...{ id: number, name: null, content_types: ['text', 'image'], time_zone: 'UTC' },
    ...{ data_starts: { text, image: null }, customer_lists: false, classification_since: null },
  });
  const expected = {
    account: { id: 'agency', name: 'Agency' },
    key: { id, name: 'test', scopes: ['detections:read'], expires_at: null },
    subscriptions: [subscription(7001, '2026-11-20T08:00:00Z'), subscription(7002, null)],
    data_gaps: { text: [{ window_start: '2026-11-19T12:00:00Z', status: 'missing' }], image: [] },
    limits: {
      ...{ requests_per_minute: 120, daily_rows: 1_000_000, daily_file_rows: 0, exports_per_day: 0 },
      throttled: null,
    },
    schema_version: 'v1',
  };
  // Compared as text: the order matters, too.
  assert.equal(JSON.stringify(await me(), null, 1), JSON.stringify(expected, null, 1));
});

test('takes no parameters, and accepts any valid credential, with or without scopes', async () => {
  for (const query of ['x=1', 'schema_version=v1', 'fields=id', 'limit=']) {
    const { detail } = await server.json(`/v1/me?${query}`, key, 400);
    assert.match(detail, new RegExp(query.split('=')[0] ?? ''));
  }
  assert.equal(await statusOf('/v1/me?'), 200);
  for (const scopes of [['reports:read'], ['exports:create', 'detections:read'], []] as const) {
    const { key: other } = server.makeKey({ scopes: [...scopes] });
    assert.deepEqual((await me(other)).key.scopes, scopes);
  }
});

test("the key's name, scopes and expiry are current", async () => {
  setKey(server.access, id, { name: 'Renamed', scopes: ['reports:read'], expires_at: NOW_MS + DAY_MS + 999 });
  const expected = { id, name: 'Renamed', scopes: ['reports:read'], expires_at: '2026-11-22T12:00:00Z' };
  assert.deepEqual((await me()).key, expected);
  setAccount(server.access, 'agency', { name: 'Other name' });
  assert.deepEqual((await me()).account, { id: 'agency', name: 'Other name' });
});

test("lists only the key's own subscriptions, with the types the key reads of each", async () => {
  const { access } = server;
  addAccount(access, { id: 'other', name: 'Other', daily_rows: null }, NOW_MS);
  const foreign = { id: 9009, account_id: 'other', name: null, time_zone: 'UTC' };
  addSubscription(access, { ...foreign, content_types: ['text'] }, NOW_MS);
  setSubscription(access, 7002, { name: 'Wire', time_zone: 'Europe/Berlin', content_types: ['image'] });
  setKey(access, id, { subscriptions: [{ id: 7001, content_types: ['text'] }] });
  const narrow = await me();
  const read = narrow.subscriptions.map((one: Record<string, unknown>) => [one.id, one.content_types]);
  assert.deepEqual(read, [[7001, ['text']]]);
  assert.deepEqual(narrow.subscriptions[0].data_starts, { text: null });
  assert.deepEqual(narrow.data_gaps, { text: [] });

  const both = [7002, 7001].map((subscription) => ({ id: subscription, content_types: null }));
  setKey(access, id, { subscriptions: both });
  const [first, second] = (await me()).subscriptions;
  assert.deepEqual([first.id, first.content_types], [7001, ['text', 'image']]);
  assert.deepEqual([second.id, second.name, second.time_zone], [7002, 'Wire', 'Europe/Berlin']);
  assert.deepEqual([second.content_types, second.data_starts], [['image'], { image: null }]);
});

test('a subscription without types that the key reads stays, with an empty list', async () => {
  setKey(server.access, id, { subscriptions: [{ id: 7001, content_types: ['image'] }] });
  server.store.deliver([{ content_type: 'text', version: 1, row: {} }], NOW_MS);
  setSubscription(server.access, 7001, { content_types: ['text'] });
  const { subscriptions, data_gaps } = await me();
  assert.deepEqual([subscriptions[0].content_types, subscriptions[0].data_starts, data_gaps], [[], {}, {}]);
  // A listed subscription belongs to the key and may be named, although it has no rows.
  for (const list of [
    '/v1/detections/changes?since=2026-11-21T00:00:00Z',
    '/v1/detections?from=2026-11-20&to=2026-11-20',
  ]) {
    const { data, has_more, as_of } = await server.json(`${list}&subscription_id=7001`, key);
    assert.deepEqual([data, has_more, as_of], [[], false, null], list);
    assert.equal(await statusOf(`${list}&content_type=image`), 400);
    assert.equal(await statusOf(`${list}&content_type=text`), 400);
  }
});

test('gaps are per export, newest first, of the last 90 days, without finished windows', async () => {
  const at = (windows: number) => NOW_MS - windows * WINDOW_MS;
  const oldest = (90 * DAY_MS) / WINDOW_MS;
  server.store.setWindow('missing', at(300), 0);
  server.store.setWindow('failed', at(200), 0);
  server.store.setWindow('abandoned', at(6000), 0);
  server.store.setWindow('done', at(100), 0);
  server.store.setWindow('abandoned', at(oldest), 0);
  server.store.setWindow('abandoned', at(oldest + 1), 0);
  server.store.setWindow('failed', at(50), 0, 'imagewire');
  assert.deepEqual((await me()).data_gaps, {
    text: [
      { window_start: '2026-11-20T02:40:00Z', status: 'failed' },
      { window_start: '2026-11-19T10:00:00Z', status: 'missing' },
      { window_start: '2026-10-10T20:00:00Z', status: 'abandoned' },
      { window_start: '2026-08-23T12:00:00Z', status: 'abandoned' },
    ],
    image: [{ window_start: '2026-11-21T03:40:00Z', status: 'failed' }],
  });
});

test('at most the newest 200 gaps of a type are listed, whatever their status', async () => {
  const statuses = ['missing', 'abandoned', 'failed'] as const;
  server.store.writer.transaction(() => {
    for (let count = 1; count <= 450; count += 1)
      server.store.setWindow(statuses[count % 3] ?? 'missing', NOW_MS - count * WINDOW_MS, 0);
    for (let count = 1; count <= 201; count += 1)
      server.store.setWindow('missing', NOW_MS - count * WINDOW_MS, 0, 'imagewire');
  })();
  const { text, image } = (await me()).data_gaps;
  const expected = Array.from({ length: 200 }, (_, index) => NOW_MS - (index + 1) * WINDOW_MS);
  for (const gaps of [text, image]) {
    const starts = gaps.map((gap: { window_start: string }) => Date.parse(gap.window_start));
    assert.deepEqual(starts, expected);
  }
  assert.deepEqual(new Set(text.map((gap: { status: string }) => gap.status)), new Set(statuses));
});

test('an export that is switched off has no types, starts or gaps', async () => {
  await restart({ disabled: ['image'] });
  server.store.setWindow('missing', NOW_MS - 2 * DAY_MS, 0, 'imagewire');
  server.store.deliver([{ content_type: 'image', version: 1, row: {} }], NOW_MS);
  const { subscriptions, data_gaps } = await me();
  const { content_types, data_starts } = subscriptions[0];
  assert.deepEqual([content_types, data_starts, data_gaps], [['text'], { text: null }, { text: [] }]);
});

test("limits are those of the settings, or the account's own", async () => {
  await restart({ requests_per_minute: 7, daily_rows: 55 });
  const limits = async () => (await me()).limits;
  const { requests_per_minute, daily_rows } = await limits();
  assert.deepEqual([requests_per_minute, daily_rows], [7, 55]);
  setAccount(server.access, 'agency', { daily_rows: 12 });
  assert.equal((await limits()).daily_rows, 12);
  setKey(server.access, id, { daily_rows: 3 });
  assert.equal((await limits()).daily_rows, 12, "the account's allowance, not the key's");
});

test('works while the allowance is used up, and shows who is throttled and until when', async () => {
  server.store.deliver([{ content_type: 'text', version: 1, row: {} }], NOW_MS);
  setKey(server.access, id, { daily_rows: 1 });
  const throttle = async () => {
    const { limits } = await me();
    return [limits.throttled, limits.throttled_until];
  };
  assert.equal(await statusOf(ONE), 200);
  assert.equal(await statusOf(ONE), 429);
  assert.deepEqual(await throttle(), ['key', '2026-11-22T00:00:00Z']);
  const { limits } = await me();
  assert.deepEqual(Object.keys(limits).slice(-2), ['throttled', 'throttled_until']);

  setAccount(server.access, 'agency', { daily_rows: 1 });
  assert.deepEqual(await throttle(), ['account', '2026-11-22T00:00:00Z'], 'both are used up');
  setKey(server.access, id, { daily_rows: null });
  assert.deepEqual(await throttle(), ['account', '2026-11-22T00:00:00Z']);
  server.setNow(Date.parse('2026-11-22T00:00:00Z'));
  const after = (await me()).limits;
  assert.deepEqual([after.throttled, 'throttled_until' in after], [null, false]);
});
