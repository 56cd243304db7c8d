/** Walks through a period by cursor: every page has the same period and filters (contract: QueryCursor). */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setKey } from '../../src/auth/keys.ts';
import { words } from '../support/manual.ts';
import { DAYS, idsOf, MINUTE_MS, type Page, row, startPeriodServer } from '../support/period-server.ts';
import { NOW_MS, startTestServer } from '../support/server.ts';

const { server, key, period, refusal } = await startPeriodServer();
after(() => server.close());

test('a walk by cursor returns the same as one page, with one period on every page', async () => {
  for (const sort of ['first_detected_at', '-first_detected_at']) {
    const query = `${DAYS}&sort=${sort}`;
    const whole = await period(query);
    const seen: string[] = [];
    let cursor = '';
    for (let pages = 1; ; pages += 1) {
      const page = await period(`${query}&limit=2${cursor}`);
      assert.deepEqual([page.from, page.to, page.time_zone], [whole.from, whole.to, 'UTC']);
      seen.push(...idsOf(page));
      assert.equal(page.has_more, page.next_cursor !== null);
      if (page.next_cursor === null) {
        assert.equal(pages, 3);
        break;
      }
      assert.match(page.next_cursor, /^[\w-]+$/);
      cursor = `&cursor=${page.next_cursor}`;
    }
    assert.deepEqual(seen, idsOf(whole));
  }
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
  const other = await startTestServer();
  try {
    const { key: reader } = other.makeKey();
    const today = '/v1/detections?from=2026-11-20&to=2026-11-21&sort=first_detected_at&limit=1';
    const read = async (more = ''): Promise<Page> => {
      const response = await other.get(`${today}${more}`, reader);
      assert.equal(response.status, 200);
      return JSON.parse(await response.text());
    };
    const walk = async (page: Page): Promise<string[]> => {
      const ids = idsOf(page);
      for (let at = page; at.has_more; ids.push(...idsOf(at))) at = await read(`&cursor=${at.next_cursor}`);
      return ids;
    };
    other.store.deliver(
      [row('text', 1, '2026-11-20T10:00:00Z'), row('text', 2, '2026-11-21T10:00:00Z')],
      NOW_MS - 2 * MINUTE_MS,
    );
    const first = await read();
    other.store.deliver(
      [row('text', 3, '2026-11-20T09:00:00Z'), row('text', 4, '2026-11-20T11:00:00Z')],
      NOW_MS - MINUTE_MS,
    );
    assert.deepEqual(await walk(first), ['t.7001.1.1', 't.7001.4.1', 't.7001.2.1']);
    assert.deepEqual(await walk(await read()), ['t.7001.3.1', 't.7001.1.1', 't.7001.4.1', 't.7001.2.1']);
  } finally {
    await other.close();
  }
  const text = words('periods');
  assert.match(text, /ended less than two days ago is still filling.*not a consistent snapshot/);
});

test('a cursor is refused once period, zone, sort, subscriptions or filters change', async () => {
  const zone = '&time_zone=UTC';
  const { next_cursor: given } = await period(`${DAYS}${zone}&limit=1`);
  const cursor = `&cursor=${given}`;
  for (const changed of [
    `from=2026-11-18&to=2026-11-20${zone}`,
    `from=2026-11-19&to=2026-11-21${zone}`,
    `${DAYS}&time_zone=Europe/Berlin`,
    DAYS,
    `${DAYS}&sort=first_detected_at`,
    `${DAYS}&subscription_id=7001`,
    `${DAYS}&content_type=text`,
    `${DAYS}&min_band=off`,
    `${DAYS}&exclude_domain=x.example`,
  ]) {
    assert.match(await refusal(changed + cursor), /^cursor: the period or filters changed; start again$/);
  }
  for (const same of [
    `${DAYS}${zone}${cursor}&limit=3`,
    `${DAYS}${zone}${cursor}&fields=id&schema_version=v1`,
    `to=2026-11-21&from=2026-11-18&time_zone=utc${cursor}`,
  ]) {
    assert.deepEqual(idsOf(await period(same)).slice(0, 3), ['t.7002.4.1', 'i.7001.3.1', 't.7001.2.1']);
  }
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
  assert.deepEqual(
    [gained.from, gained.to, gained.time_zone, idsOf(gained)],
    [first.from, first.to, 'Europe/Berlin', ['t.7003.8.1']],
  );
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
  change(7001);
  const named = `${query}&subscription_id=7003&content_type=text`;
  assert.match(await refusal(named, reader.key), /one of the key's subscriptions; GET \/v1\/me lists them$/);
  assert.match(
    await refusal(`${named}&cursor=${first.next_cursor}`, reader.key),
    /one of the key's subscriptions; GET \/v1\/me lists them\. If .* changed since the first page, start again without a cursor$/,
  );
});

test('a cursor that this endpoint did not issue is refused', async () => {
  const { next_cursor: given } = await period(`${DAYS}&limit=1`);
  const changes = await server.get('/v1/detections/changes?since=2026-11-21T00:00:00Z', key);
  const { next_cursor: ofStream } = JSON.parse(await changes.text());
  for (const cursor of [
    'x',
    `${given}A`,
    given?.slice(0, -1),
    `${given?.slice(0, 40)}${given?.[40] === 'B' ? 'C' : 'B'}${given?.slice(41)}`,
    ofStream,
  ]) {
    assert.equal(
      await refusal(`${DAYS}&cursor=${cursor}`),
      'cursor: invalid; use next_cursor from this endpoint, or leave cursor out to start again',
    );
  }
  assert.match(await refusal(`${DAYS}&cursor=`), /^cursor: must not be empty/);
  assert.match(await refusal(`cursor=${given}`), /^from: required/);
});
