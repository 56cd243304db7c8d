/** Detections of a period over HTTP, and walks by cursor. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setKey } from '../../src/auth/keys.ts';
import { addSubscription } from '../../src/auth/subscriptions.ts';
import type { ContentType } from '../../src/detection/content-type.ts';
import { MINUTE_MS } from '../../src/time.ts';
import { NOW_MS, PLAIN, sharedServer, startTestServer } from '../support/server.ts';
import type { TestRow } from '../support/store.ts';

const DAYS = 'from=2026-11-18&to=2026-11-21';

function row(content_type: ContentType, id: number, first_detected_at: string, more: TestRow['row'] = {}) {
  return { content_type, version: 1, row: { source_internal_id: id, first_detected_at, ...more } };
}

/** It has subscriptions 7001 to 7004 and 8001; the key reads the first two. */
const server = await sharedServer({ base_url: 'https://api.example/ww' });
const { key } = server.makeKey();
const zoned = { account_id: 'agency', name: null, content_types: ['text', 'image'] } as const;
addSubscription(server.access, { ...zoned, id: 7003, time_zone: 'Europe/Berlin' }, NOW_MS);
addSubscription(server.access, { ...zoned, id: 7004, time_zone: 'UTC' }, NOW_MS);
addSubscription(server.access, { ...zoned, id: 8001, time_zone: 'UTC', content_types: ['text'] }, NOW_MS);
server.store.deliver(
  [
    row('text', 1, '2026-11-18T10:00:00Z'),
    row('text', 2, '2026-11-19T10:00:00Z'),
    { ...row('text', 2, '2026-11-19T10:00:00Z', { strength_score: 96 }), version: 2 },
    row('image', 3, '2026-11-19T10:00:00Z'),
    row('text', 4, '2026-11-19T23:30:00Z', { subscription_id: 7002 }),
    row('text', 5, '2026-11-20T10:00:00Z', { subscription_id: 9009 }),
    row('text', 6, '2026-11-20T23:59:59Z'),
    row('text', 7, '2026-11-21T12:00:00Z'),
    row('text', 8, '2026-11-19T22:59:59Z', { subscription_id: 7003 }),
    row('text', 9, '2026-11-19T23:00:00Z', { subscription_id: 7003 }),
    row('text', 10, '2026-11-01T10:00:00Z', { subscription_id: 8001 }),
    row('text', 11, '2026-11-01T11:00:00Z', { subscription_id: 8001 }),
  ],
  NOW_MS - MINUTE_MS,
);
server.store.finishWindow('newswire', NOW_MS - 20 * MINUTE_MS);
server.store.finishWindow('imagewire', NOW_MS - 30 * MINUTE_MS);

interface Page {
  readonly data: { readonly id: string; readonly version: number }[];
  readonly next_cursor: string | null;
  readonly has_more: boolean;
  readonly from: string;
  readonly to: string;
  readonly time_zone: string;
}

const idsOf = (page: Page) => page.data.map(({ id }) => id);

const period = (query: string, withKey = key): Promise<Page> =>
  server.json(`/v1/detections?${query}`, withKey);
const refusal = async (query: string, withKey = key): Promise<string> =>
  (await server.json(`/v1/detections?${query}`, withKey, 400)).detail;

test('a page has its members in order', async () => {
  const response = await server.get(`/v1/detections?${DAYS}`, key, PLAIN);
  const text = await response.text();
  assert.equal(response.headers.get('content-length'), String(Buffer.byteLength(text)));
  const page = JSON.parse(text);
  assert.equal(Object.keys(page).join(), 'data,next_cursor,has_more,from,to,time_zone,as_of');
  const { data, ...rest } = page;
  assert.deepEqual(rest, {
    next_cursor: null,
    has_more: false,
    from: '2026-11-18T00:00:00Z',
    to: '2026-11-21T12:00:00Z',
    time_zone: 'UTC',
    as_of: '2026-11-21T11:40:00Z',
  });
  assert.deepEqual(
    data.map(({ id, version }: { id: string; version: number }) => `${id} ${version}`),
    ['t.7001.6.1 1', 't.7002.4.1 1', 'i.7001.3.1 1', 't.7001.2.1 2', 't.7001.1.1 1'],
    'current states, newest first, ties by id; without other accounts and future rows',
  );
  assert.deepEqual(Object.keys(data[0]).slice(0, 3), ['id', 'version', 'content_type'], 'without event');
  assert.equal(data[2].source.image_url, 'https://api.example/ww/photos/3?signature=abc');
});

test('dates are in the zone of the only subscription; the zone is shown as written', async () => {
  const { key: berlin } = server.makeKey({ subscriptions: [{ id: 7003, content_types: null }] });
  const day = 'from=2026-11-20&to=2026-11-20';
  const own = await period(day, berlin);
  assert.deepEqual([own.from, own.to], ['2026-11-19T23:00:00Z', '2026-11-20T23:00:00Z']);
  assert.deepEqual([own.time_zone, idsOf(own)], ['Europe/Berlin', ['t.7003.9.1']]);
  const utc = await period(`${day.replaceAll('20&', '19&')}&time_zone=utc`, berlin);
  assert.deepEqual([utc.from, utc.time_zone], ['2026-11-19T00:00:00Z', 'utc']);
  const instants = 'from=2026-11-19T23:00:00Z&to=2026-11-20T00:00:00Z';
  assert.equal((await period(`${instants}&time_zone=asia/KATHMANDU`, berlin)).time_zone, 'asia/KATHMANDU');
  assert.match(await refusal(`${instants}&time_zone=%2B01:00`, berlin), /^time_zone: /);
});

test('from may not be earlier than the day records begin; without records there is no bound and no row', async () => {
  assert.match(await refusal('from=2026-11-17&to=2026-11-21'), /^from: must not be before 2026-11-18/);
  const images = 'from=2026-11-18&to=2026-11-21&content_type=image';
  assert.match(await refusal(images), /must not be before 2026-11-19/);
  const { key: berlin } = server.makeKey({ subscriptions: [{ id: 7003, content_types: null }] });
  assert.equal((await period('from=2026-11-19&to=2026-11-19', berlin)).data.length, 1);
  assert.match(await refusal('from=2026-11-18&to=2026-11-19', berlin), /must not be before 2026-11-19/);
  const { key: empty } = server.makeKey({ subscriptions: [{ id: 7004, content_types: null }] });
  const page = await period('from=2001-01-01&to=2001-01-31', empty);
  assert.deepEqual([page.data, page.next_cursor, page.has_more], [[], null, false]);
  assert.deepEqual([page.from, page.to], ['2001-01-01T00:00:00Z', '2001-02-01T00:00:00Z']);
  assert.match(await refusal('from=2001-01-01&to=2001-02-01', empty), /31 calendar days/);
});

test('data_starts is accepted as from, in every zone and for each stream', async () => {
  const me = await server.json('/v1/me', key);
  let asked = 0;
  for (const { id, data_starts } of me.subscriptions) {
    for (const [type, start] of Object.entries(data_starts)) {
      if (typeof start !== 'string') continue;
      // The same day in UTC, the day before and the day after.
      for (const zone of ['UTC', 'Pacific/Pago_Pago', 'Asia/Kathmandu', 'Pacific/Kiritimati']) {
        const stream = `&subscription_id=${id}&content_type=${type}&time_zone=${zone}`;
        assert.ok((await period(`from=${start}&to=2026-11-21${stream}`)).data.length > 0, stream);
        asked += 1;
      }
    }
  }
  assert.equal(asked, 12);
  // The 19th starts there at 2026-11-18T10:00:00Z.
  const ahead = 'to=2026-11-21&time_zone=Pacific/Kiritimati';
  assert.equal((await period(`from=2026-11-18T10:00:00Z&${ahead}`)).data.length, 5);
  assert.match(
    await refusal(`from=2026-11-18T09:59:59Z&${ahead}`),
    /^from: must not be before 2026-11-19 \(Pacific\/Kiritimati\).* earliest data_starts .* 2026-11-18T10:00:00Z/,
  );
});

test('the period of a walk is fixed, even if to is in the future', async () => {
  const query = 'from=2026-11-18&to=2026-12-31&limit=1';
  const first = await period(query);
  assert.equal(first.to, '2026-11-21T12:00:00Z');
  try {
    // By then, the same period would be too long for a first page.
    server.setNow(NOW_MS + 40 * 24 * 60 * MINUTE_MS);
    const second = await period(`${query}&cursor=${first.next_cursor}`);
    assert.deepEqual([second.from, second.to], [first.from, first.to]);
    assert.deepEqual(idsOf(second), ['t.7002.4.1']);
    assert.match(await refusal(query), /31 calendar days/);
  } finally {
    server.setNow(NOW_MS);
  }
});

test('late detections of a current period are on unread pages, and in the next walk', async () => {
  await using other = await startTestServer();
  const { key: reader } = other.makeKey();
  const today = '/v1/detections?from=2026-11-20&to=2026-11-21&sort=first_detected_at&limit=1';
  const read = (more = ''): Promise<Page> => other.json(`${today}${more}`, reader);
  const walk = async (page: Page): Promise<string[]> => {
    const ids = idsOf(page);
    for (let at = page; at.has_more; ids.push(...idsOf(at))) at = await read(`&cursor=${at.next_cursor}`);
    return ids;
  };
  const early = [row('text', 1, '2026-11-20T10:00:00Z'), row('text', 2, '2026-11-21T10:00:00Z')];
  other.store.deliver(early, NOW_MS - 2 * MINUTE_MS);
  const first = await read();
  const late = [row('text', 3, '2026-11-20T09:00:00Z'), row('text', 4, '2026-11-20T11:00:00Z')];
  other.store.deliver(late, NOW_MS - MINUTE_MS);
  assert.deepEqual(await walk(first), ['t.7001.1.1', 't.7001.4.1', 't.7001.2.1']);
  assert.deepEqual(await walk(await read()), ['t.7001.3.1', 't.7001.1.1', 't.7001.4.1', 't.7001.2.1']);
});

test('a cursor is refused once period, zone, sort, subscriptions or filters change', async () => {
  const asked = {
    ...{ from: '2026-11-18T00:00:00Z', to: '2026-11-21', time_zone: 'UTC', subscription_id: '7001,7002' },
    ...{ publisher_id: '5,6', domain: 'b.example,example.com', band: 'max,medium', limit: '1' },
  };
  /** @param changes an empty one leaves the parameter out */
  const changed = (changes: Record<string, string>) =>
    `${new URLSearchParams(Object.entries({ ...asked, ...changes }).filter(([, value]) => value !== ''))}`;
  const { next_cursor } = await period(changed({}));
  const cursor = next_cursor ?? assert.fail('there is only one page');
  for (const other of [
    ...[{ from: '2026-11-18T00:00:01Z' }, { from: '2026-11-18' }, { to: '2026-11-20' }],
    ...[{ time_zone: 'Europe/Berlin' }, { time_zone: '' }, { sort: 'first_detected_at' }],
    ...[{ subscription_id: '7001' }, { subscription_id: '' }, { content_type: 'text' }],
    ...[{ publisher_id: '5' }, { publisher_id: '' }, { exclude_publisher_id: '7' }],
    ...[{ domain: 'example.com' }, { exclude_domain: 'x.example' }, { band: 'medium' }, { min_band: 'off' }],
    ...[{ min_score: '0' }, { print: 'false' }, { source_id: 'x' }, { article_id: '1' }],
  ]) {
    const why = await refusal(changed({ ...other, cursor }));
    assert.equal(why, 'cursor: the period or filters changed; start again', JSON.stringify(other));
  }
  for (const same of [
    ...[{ limit: '3', fields: 'id', schema_version: 'v1' }, { from: '2026-11-18T01:00:00.000+01:00' }],
    ...[{ time_zone: 'utc' }, { sort: '-first_detected_at' }, { subscription_id: '7002,7001,7002' }],
    ...[{ publisher_id: '6,5,6' }, { domain: 'https://Example.com/,B.example' }, { band: 'medium,max' }],
  ])
    assert.equal(idsOf(await period(changed({ ...same, cursor })))[0], 't.7002.4.1', JSON.stringify(same));
});

test("a walk continues after the key's subscriptions change, or is refused with the reason", async () => {
  const only = (...ids: number[]) => ids.map((id) => ({ id, content_types: null }));
  const reader = server.makeKey({ subscriptions: only(7003) });
  const change = (...ids: number[]) => setKey(server.access, reader.id, { subscriptions: only(...ids) });
  const query = 'from=2026-11-19&to=2026-11-20&limit=1';
  const first = await period(query, reader.key);
  assert.deepEqual(idsOf(first), ['t.7003.9.1']);
  const next = `${query}&cursor=${first.next_cursor}`;
  change(7001, 7002, 7003);
  const gained = await period(next, reader.key);
  // The default zone has changed: a new walk would have another period.
  assert.deepEqual([gained.from, gained.to, gained.time_zone], [first.from, first.to, 'Europe/Berlin']);
  assert.deepEqual(idsOf(gained), ['t.7003.8.1']);
  assert.equal((await period(query, reader.key)).time_zone, 'UTC', 'the period of a new walk');
  const after = await period(`${query.replace('&limit=1', '')}&cursor=${gained.next_cursor}`, reader.key);
  assert.deepEqual(idsOf(after), ['i.7001.3.1', 't.7001.2.1'], 'from here on also the new subscription');
  change(7001);
  assert.deepEqual(idsOf(await period(`${query}&cursor=${gained.next_cursor}`, reader.key)), ['i.7001.3.1']);
  change(7001, 7002, 7003, 7004, 8001);
  assert.match(
    await refusal(next, reader.key),
    /5 subscriptions.* Name up to 4 of them\. If the key's subscriptions changed.*start again without a cursor$/,
  );
  change(8001);
  const long = 'from=2026-11-01&to=2026-11-21&limit=1';
  const { next_cursor } = await period(long, reader.key);
  change(7001, 7002, 7003, 7004);
  const many = await refusal(`${long}&cursor=${next_cursor}`, reader.key);
  assert.match(many, /168 stream-days .* at most 64 .*start again without a cursor$/);
  change(7001);
  const named = `${query}&subscription_id=7003&content_type=text`;
  assert.match(await refusal(named, reader.key), /one of the key's subscriptions; GET \/v1\/me lists them$/);
  assert.match(
    await refusal(`${named}&cursor=${first.next_cursor}`, reader.key),
    /one of the key's subscriptions; GET \/v1\/me lists them\. If .* changed since the first page, start again without a cursor$/,
  );
});
