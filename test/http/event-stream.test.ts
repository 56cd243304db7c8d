/** The change stream as server-sent events, read with the manual's own example. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { CONNECTION_TIMES } from '../../src/http/listener.ts';
import { MINUTE_MS, SECOND_MS } from '../../src/time.ts';
import type { ChangesPage } from '../support/appliance.ts';
import { example } from '../support/manual.ts';
import { bearer, rawRequest } from '../support/raw-http.ts';
import { NOW_MS, startTestServer, type TestServer } from '../support/server.ts';
import { until } from '../support/until.ts';

const CHANGES = '/v1/detections/changes';
const EVENTS = { accept: 'text/event-stream' };
const SINCE = 'since=2026-11-20T00:00:00Z';

const module: { pages(url: string, key: string): AsyncGenerator<ChangesPage> } = await import(
  `data:text/javascript,${encodeURIComponent(example('change-stream', 'events'))}`
);

let server: TestServer;
let key: string;
let keyId: string;

async function start(options: Parameters<typeof startTestServer>[0] = {}, commentMs = 10): Promise<void> {
  server = await startTestServer({ times: { ...CONNECTION_TIMES, commentMs }, ...options });
  ({ key, id: keyId } = server.makeKey());
}

const pages = (query = SINCE, ofKey = key): AsyncGenerator<ChangesPage> =>
  module.pages(`${server.url}${CHANGES}?${query}`, ofKey);

async function next(stream: AsyncGenerator<ChangesPage>): Promise<ChangesPage> {
  const { value } = await stream.next();
  assert.ok(value !== undefined, 'the stream has ended');
  return value;
}

describe('an event stream', () => {
  beforeEach(() => start());
  afterEach(() => server.close());

  test('has one page an event, each counted as a request, and the cursor as its id', async () => {
    server.deliverOne();
    server.deliverOne();
    const before = server.lines.length;
    const stream = pages(`${SINCE}&limit=1`);
    const first = await next(stream);
    const second = await next(stream);
    assert.deepEqual([first.has_more, second.has_more], [true, false]);
    await until('it waits', () => server.waiting.count() === 1);
    server.deliverOne();
    const third = await next(stream);
    assert.equal(new Set([first, second, third].flatMap(({ data }) => data.map(({ id }) => id))).size, 3);
    const again = await server.json(`${CHANGES}?cursor=${second.next_cursor}`, key);
    assert.deepEqual(again.data, third.data);
    const lines = server.lines.slice(before).filter(({ msg }) => msg === 'request');
    const counted = lines.map(({ rows, key_id }) => [rows, key_id]);
    assert.deepEqual(counted, Array(4).fill([1, keyId]));
    assert.equal(server.dailyRows.used('key', keyId, NOW_MS), 4);
    await stream.return(undefined);
    await until('nobody waits', () => server.waiting.count() === 0);
    const response = await server.get(`${CHANGES}?${SINCE}`, key, { headers: EVENTS });
    assert.equal(response.headers.get('content-type'), 'text/event-stream');
    assert.equal(response.headers.get('cache-control'), 'no-store');
    await response.body?.cancel();
  });

  test('its id is the cursor, also as Last-Event-ID, whatever since says', async () => {
    server.deliverOne();
    const text = await beginning(`${SINCE}`);
    const [, id = '', body = ''] = /^id: (\S+)\ndata: (.+)\n\n/.exec(text) ?? [];
    const page: ChangesPage = JSON.parse(body);
    assert.equal(page.next_cursor, id);
    server.deliverOne(7002);
    for (const query of ['since=2020-01-01T00:00:00Z', `cursor=${id}`, ''])
      assert.match(await beginning(query, { 'last-event-id': id }), /"subscription_id":7002/, query);
    for (const [query, lastEventId, detail] of [
      [`cursor=${page.next_cursor}`, 'AQ', /cursor, Last-Event-ID: they differ/],
      ['', 'AQ', /cursor: invalid/],
    ] as const) {
      const headers = { ...EVENTS, 'last-event-id': lastEventId };
      const refused = await server.get(`${CHANGES}?${query}`, key, { headers });
      assert.equal(refused.status, 400);
      assert.match(await refused.text(), detail);
    }
    const asJson = await server.get(`${CHANGES}?${SINCE}`, key, { headers: { 'last-event-id': 'AQ' } });
    assert.equal(JSON.parse(await asJson.text()).data.length, 2);
  });

  /** @returns the first event of an answer as it is sent */
  async function beginning(query: string, headers: Record<string, string> = {}): Promise<string> {
    const response = await server.get(`${CHANGES}?${query}`, key, { headers: { ...EVENTS, ...headers } });
    let text = '';
    for await (const piece of response.body ?? []) {
      text += Buffer.from(piece).toString();
      if (text.includes('\n\n')) break;
    }
    return text;
  }

  test('other values of Accept get JSON', async () => {
    for (const accept of ['*/*', 'text/*', 'application/json, text/event-stream', 'text/event-streams']) {
      const response = await server.get(`${CHANGES}?${SINCE}`, key, { headers: { accept } });
      assert.deepEqual(JSON.parse(await response.text()).data, [], accept);
    }
    const withToken = `${CHANGES}?${SINCE}&access_token=${key}`;
    assert.equal((await server.get(withToken, undefined, { headers: EVENTS })).status, 401);
  });

  test('gets comments while nothing comes, and the cursor once filters have dropped changes', async () => {
    const response = await server.get(`${CHANGES}?${SINCE}&subscription_id=7001`, key, { headers: EVENTS });
    let text = '';
    let dropped = '';
    for await (const piece of response.body ?? []) {
      text += Buffer.from(piece).toString();
      if (dropped === '' && /\n\n:\n\n:\n\n/.test(text)) {
        server.deliverOne(7002);
        dropped = text;
      }
      if (dropped !== '' && text.split('id: ').length === 3) break;
    }
    assert.match(text.slice(dropped.length), /id: \S+\ndata: {"data":\[\],/);
  });

  for (const [what, change] of [
    ['its key is revoked', () => server.access.exec(`UPDATE api_key SET revoked_at = ${NOW_MS}`)],
    ['its key expires', () => server.access.exec(`UPDATE api_key SET expires_at = ${NOW_MS}`)],
    ['its key loses the scope', () => server.access.exec(`UPDATE api_key SET scopes = '["reports:read"]'`)],
    ['the allowance is used up', () => server.access.exec('UPDATE account SET daily_rows = 0')],
    ['the server closes', () => void server.running.close(MINUTE_MS)],
  ] as const)
    test(`ends when ${what}`, async () => {
      const stream = pages();
      await next(stream);
      change();
      assert.equal((await stream.next()).done, true);
      await until('nobody waits', () => server.waiting.count() === 0);
    });

  test('is cut off, and logged, where a page cannot be read', async () => {
    const stream = pages();
    await next(stream);
    server.store.deliver([{ content_type: 'text', version: 1, row: {} }], NOW_MS);
    server.store.writer.exec("UPDATE stream_row SET body = replace(body, '7001', '7003')");
    server.waiting.changed();
    await assert.rejects(stream.next());
    await until('it is logged', () => server.lines.some(({ level }) => Number(level) >= 50));
  });
});

describe('limits of an event stream', () => {
  afterEach(() => server.close());

  test('it ends with the requests of a minute, and the next answer says how long to wait', async () => {
    await start({ requests_per_minute: 3 });
    for (let count = 0; count < 5; count += 1) server.deliverOne();
    const stream = pages(`${SINCE}&limit=1`);
    for (let count = 0; count < 3; count += 1) await next(stream);
    assert.equal((await stream.next()).done, true);
    const refused = await server.get(`${CHANGES}?${SINCE}`, key, { headers: EVENTS });
    assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '60']);
  });

  test('a client that never reads holds one page, and is disconnected', async () => {
    await start({ times: { ...CONNECTION_TIMES, idleMs: 3 * SECOND_MS } });
    for (let count = 0; count < 20; count += 1)
      server.deliverOne(7001, { article_headline: 'x'.repeat(1_000_000) });
    const client = connect(server.port, '127.0.0.1').pause();
    client.on('error', () => {});
    const headers = `${bearer(key)}Accept: text/event-stream\r\n`;
    client.write(rawRequest(`GET ${CHANGES}?${SINCE}&limit=1`, headers));
    const sent = () => server.lines.filter(({ msg }) => msg === 'request').length;
    await until('the first page is sent', () => sent() > 0);
    await until('it is disconnected', () => server.running.connections() === 0);
    assert.ok(sent() < 20, `${sent()} pages were read for a client that read none`);
    assert.equal(server.waiting.count(), 0);
    client.destroy();
  });
});
