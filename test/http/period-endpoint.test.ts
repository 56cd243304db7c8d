/** Detections of a period over HTTP (contract: GET /v1/detections, RangePage). */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import {
  DAYS,
  idsOf,
  LATER,
  MINUTE_MS,
  type Page,
  row,
  startPeriodServer,
} from '../support/period-server.ts';
import { NOW_MS, PLAIN, startTestServer } from '../support/server.ts';

const { server, key, period, refusal } = await startPeriodServer();
after(() => server.close());

test('a page has its members in order, and every header that the contract names', async () => {
  const response = await server.get(`/v1/detections?${DAYS}`, key, PLAIN);
  assert.equal(response.status, 200);
  assert.match(response.headers.get('x-request-id') ?? '', /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  assert.equal(response.headers.get('cache-control'), 'no-store');
  assert.equal(response.headers.get('content-type'), 'application/json');
  assert.ok(response.headers.has('ratelimit-limit') && response.headers.has('ratelimit-policy'));
  const text = await response.text();
  assert.equal(response.headers.get('content-length'), String(Buffer.byteLength(text)));
  const page = JSON.parse(text);
  assert.deepEqual(Object.keys(page), [
    'data',
    'next_cursor',
    'has_more',
    'from',
    'to',
    'time_zone',
    'as_of',
  ]);
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
  const last = server.lines.findLast(({ path }) => path === '/v1/detections');
  assert.equal(last?.rows, 5, 'rows must be counted');
});

test('ascending reverses time, with ties in the same order', async () => {
  assert.deepEqual(idsOf(await period(`${DAYS}&sort=first_detected_at`)), [
    't.7001.1.1',
    'i.7001.3.1',
    't.7001.2.1',
    't.7002.4.1',
    't.7001.6.1',
  ]);
});

test('dates are in the zone of the only subscription; the zone is shown as written', async () => {
  const { key: berlin } = server.makeKey({ subscriptions: [{ id: 7003, content_types: null }] });
  const day = 'from=2026-11-20&to=2026-11-20';
  const own = await period(day, berlin);
  assert.deepEqual(
    [own.from, own.to, own.time_zone, idsOf(own)],
    ['2026-11-19T23:00:00Z', '2026-11-20T23:00:00Z', 'Europe/Berlin', ['t.7003.9.1']],
  );
  const utc = await period(`${day.replaceAll('20&', '19&')}&time_zone=utc`, berlin);
  assert.deepEqual([utc.from, utc.time_zone], ['2026-11-19T00:00:00Z', 'utc']);
  const instants = 'from=2026-11-19T23:00:00Z&to=2026-11-20T00:00:00Z';
  assert.equal((await period(`${instants}&time_zone=asia/KATHMANDU`, berlin)).time_zone, 'asia/KATHMANDU');
  assert.match(await refusal(`${instants}&time_zone=%2B01:00`, berlin), /^time_zone: /);
});

test('from may not be earlier than the day records begin; without records there is no bound and no row', async () => {
  assert.match(await refusal('from=2026-11-17&to=2026-11-21'), /^from: must not be before 2026-11-18/);
  assert.match(
    await refusal('from=2026-11-18&to=2026-11-21&content_type=image'),
    /must not be before 2026-11-19/,
  );
  const { key: berlin } = server.makeKey({ subscriptions: [{ id: 7003, content_types: null }] });
  assert.equal((await period('from=2026-11-19&to=2026-11-19', berlin)).data.length, 1);
  assert.match(await refusal('from=2026-11-18&to=2026-11-19', berlin), /must not be before 2026-11-19/);
  const { key: empty } = server.makeKey({ subscriptions: [{ id: 7004, content_types: null }] });
  const page = await period('from=2001-01-01&to=2001-01-31', empty);
  assert.deepEqual(
    [page.data, page.next_cursor, page.has_more, page.from, page.to],
    [[], null, false, '2001-01-01T00:00:00Z', '2001-02-01T00:00:00Z'],
  );
  assert.match(await refusal('from=2001-01-01&to=2001-02-01', empty), /31 calendar days/);
});

test('data_starts is accepted as from, in every zone and for each stream', async () => {
  const me = JSON.parse(await (await server.get('/v1/me', key)).text());
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

test('too wide, too many shards and too many subscriptions are refused', async () => {
  assert.match(await refusal('from=2026-10-20&to=2026-11-20'), /31 calendar days/);
  const detail = await refusal('from=2026-11-01&to=2026-11-20');
  assert.match(detail, /80 stream-days.*narrow the period or the subscriptions/);
  const ids = [7001, 7002, 7003, 7004, 8001];
  const { key: five } = server.makeKey({ subscriptions: ids.map((id) => ({ id, content_types: null })) });
  assert.match(await refusal(DAYS, five), /5 subscriptions; at most 4/);
  assert.equal((await period(`${DAYS}&subscription_id=7001,7002,7003,7004`, five)).data.length, 7);
  assert.match(
    await refusal(`${DAYS}&subscription_id=${ids}`, five),
    /^subscription_id: must not have more than 4/,
  );
});

test('an export that is switched off has no streams', async () => {
  const other = await startTestServer({ disabled: ['image'] });
  try {
    other.store.deliver([row('image', 1, '2026-11-19T10:00:00Z')], NOW_MS - MINUTE_MS);
    other.store.finishWindow('newswire', NOW_MS - 20 * MINUTE_MS);
    const response = await other.get(`/v1/detections?${DAYS}`, other.makeKey().key);
    const page: Page = JSON.parse(await response.text());
    assert.deepEqual([page.data, page.has_more, page.as_of], [[], false, '2026-11-21T11:50:00Z']);
  } finally {
    await other.close();
  }
});

test('a page over one stream has up to 1000 rows, over several up to 200', async () => {
  const other = await startTestServer();
  try {
    const headline = 'ü'.repeat(1000);
    const rows = Array.from({ length: 1201 }, (_, index) =>
      row('image', index, index < 600 ? '2026-11-19T10:00:00Z' : '2026-11-19T10:00:01Z', {
        article_headline: headline,
      }),
    );
    other.store.deliver([...rows, row('text', 1, '2026-11-19T10:00:00Z')], NOW_MS - MINUTE_MS);
    const { key: all } = other.makeKey();
    for (const [streams, size] of [
      ['&subscription_id=7001&content_type=image', 1000],
      ['&subscription_id=7001', 200],
    ] as const) {
      const response = await other.get(`/v1/detections?${LATER}&limit=1000${streams}`, all, PLAIN);
      const text = await response.text();
      assert.equal(response.headers.get('content-length'), String(Buffer.byteLength(text)));
      const page = JSON.parse(text);
      assert.deepEqual([page.data.length, page.has_more], [size, true]);
      assert.equal(page.data[0].source.image_url, `${other.url}/photos/1000?signature=abc`);
    }
    for (const limit of ['0', '1001', '01', '1.0']) {
      assert.equal((await other.get(`/v1/detections?${LATER}&limit=${limit}`, all)).status, 400);
    }
  } finally {
    await other.close();
  }
});

test('rows count against the daily allowance, which is checked after the parameters', async () => {
  const { key: small } = server.makeKey({ daily_rows: 2 });
  const { data, next_cursor } = await period(`${DAYS}&limit=3`, small);
  assert.equal(data.length, 3, 'while rows are left, a page must be complete');
  const used = await server.get(`/v1/detections?${DAYS}&limit=3&cursor=${next_cursor}`, small);
  assert.equal(used.status, 429);
  assert.equal(JSON.parse(await used.text()).title, 'Daily allowance used');
  assert.match(await refusal('from=2026-11-17&to=2026-11-21', small), /^from: must not be before/);
  server.setNow(NOW_MS + 24 * 60 * MINUTE_MS);
  try {
    assert.equal(
      (await period(`${DAYS}&limit=3&cursor=${next_cursor}`, small)).data.length,
      2,
      'the cursor must stay valid',
    );
  } finally {
    server.setNow(NOW_MS);
  }
});
