/**
 * Requests for data of another account and for data that does not exist get identical responses, byte for byte. Each
 * endpoint and parameter that names something is tested with both.
 *
 * The comparison ignores the request id, headers that depend on the clock, and the client's own values.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { addAccount } from '../../src/auth/accounts.ts';
import { addSubscription } from '../../src/auth/subscriptions.ts';
import { NOW_MS, sharedServer } from '../support/server.ts';

const FOREIGN = { subscription: 8001, source: 4004, article: 5005, publisher: 66, domain: 'foreign.example' };
const ABSENT = { subscription: 8002, source: 4104, article: 5105, publisher: 67, domain: 'nothere.example' };
type Named = typeof FOREIGN;

/** Headers that depend on the clock or on the number of requests. */
const CLOCK_HEADERS = ['date', 'ratelimit-remaining', 'ratelimit-reset', 'retry-after', 'x-request-id'];

const server = await sharedServer({ base_url: 'https://api.example' });
addAccount(server.access, { id: 'other', name: 'Other' }, NOW_MS);
addSubscription(server.access, { id: FOREIGN.subscription, account_id: 'other', name: 'Theirs' }, NOW_MS);
/** A key of the requesting account that reads only text of 7001. */
const narrow = server.makeKey({ subscriptions: [{ id: 7001, content_types: ['text'] }] });
const subscriptions = [{ id: FOREIGN.subscription, content_types: null }];
const foreign = server.makeKey({ account_id: 'other', subscriptions });
const theirs = {
  subscription_id: FOREIGN.subscription,
  source_internal_id: FOREIGN.source,
  article_id: FOREIGN.article,
  source_id: 'urn:theirs',
  article_publisher_id: FOREIGN.publisher,
  article_publisher_name: 'Theirs',
  article_domain: FOREIGN.domain,
  first_detected_at: '2026-11-01T08:00:00Z',
};
server.store.deliver(
  [
    { content_type: 'text', version: 1, row: { source_internal_id: 1 } },
    { content_type: 'text', version: 1, row: theirs },
    { content_type: 'image', version: 1, row: theirs },
    // Of the same account, but outside of the key's subscriptions and content types.
    { content_type: 'text', version: 1, row: { subscription_id: 7002, source_internal_id: 7 } },
    { content_type: 'image', version: 1, row: { source_internal_id: 8 } },
  ],
  NOW_MS - 60_000,
);
server.store.finishWindow('newswire', NOW_MS - 1_200_000);
server.store.finishWindow('imagewire', NOW_MS - 1_200_000);

/** The comparable parts of a response. @param written values of the client, which the response may repeat */
async function answerOf(path: string, key: string, written: readonly unknown[] = []): Promise<string> {
  const response = await server.get(path, key);
  const text = await response.text();
  const headers = [...response.headers].filter(([name]) => !CLOCK_HEADERS.includes(name)).sort();
  const named = [response.headers.get('x-request-id'), ...written].map(String);
  // Longest first: a value may contain another.
  const body = named
    .sort((a, b) => b.length - a.length)
    .reduce((replaced, word) => replaced.replaceAll(word, '…'), text);
  // Repeated values may have different lengths.
  const comparable = headers.filter(([name]) => written.length === 0 || name !== 'content-length');
  return [response.status, ...comparable.map(([name, value]) => `${name}: ${value}`), body].join('\n');
}

async function assertAlike(path: (named: Named) => string, status: number, key = narrow.key): Promise<void> {
  const written = (named: Named) => Object.values(named);
  const [theirs, nobodys] = [
    await answerOf(path(FOREIGN), key, written(FOREIGN)),
    await answerOf(path(ABSENT), key, written(ABSENT)),
  ];
  assert.equal(theirs, nobodys, path(FOREIGN));
  assert.match(theirs, new RegExp(`^${status}\n`), path(FOREIGN));
}

const CHANGES = '/v1/detections/changes?since=2026-11-01T00:00:00Z';
const PERIOD = '/v1/detections?from=2026-11-20&to=2026-11-21';

test('the owner can read everything compared here', async () => {
  const id = `t.${FOREIGN.subscription}.${FOREIGN.source}.${FOREIGN.article}`;
  assert.equal((await server.get(`/v1/detections/${id}`, foreign.key)).status, 200);
});

describe('one detection', () => {
  test('of another account', async () => {
    for (const type of ['t', 'i'])
      for (const query of ['', '?fields=strength', '?schema_version=v1'])
        await assertAlike(
          (named) => `/v1/detections/${type}.${named.subscription}.${named.source}.${named.article}${query}`,
          404,
        );
  });

  test('of the same account, in a subscription and of a type that the key does not read', async () => {
    const nobodys = await answerOf('/v1/detections/t.7001.999.1', narrow.key);
    assert.match(nobodys, /^404\n/);
    for (const id of ['t.7002.7.1', 'i.7001.8.1', 'i.7001.1.1', 't.9999.1.1'])
      assert.equal(await answerOf(`/v1/detections/${id}`, narrow.key), nobodys, id);
    assert.equal((await server.get('/v1/detections/t.7002.7.1', server.makeKey().key)).status, 200);
  });
});

for (const [endpoint, start] of Object.entries({ 'change stream': CHANGES, period: PERIOD })) {
  describe(endpoint, () => {
    test('a subscription of another account is refused like one that does not exist', async () => {
      await assertAlike((named) => `${start}&subscription_id=${named.subscription}`, 400);
      await assertAlike((named) => `${start}&subscription_id=7001,${named.subscription}`, 400);
      await assertAlike((named) => `${start}&subscription_id=${named.subscription}&content_type=image`, 400);
      await assertAlike((named) => `${start}&subscription_id=${named.subscription}&limit=0`, 400);
    });

    test("a subscription of the key's account that is not the key's is refused like one that does not exist", async () => {
      const own = await answerOf(`${start}&subscription_id=7002`, narrow.key, [7002]);
      assert.equal(own, await answerOf(`${start}&subscription_id=7009`, narrow.key, [7009]));
      assert.match(own, /^400\n/);
    });

    test('filters for values of other accounts find the same as filters for unknown values', async () => {
      assert.match(await answerOf(`${start}&publisher_id=1`, narrow.key), /^200\n/);
      const filters = (named: Named) => [
        `publisher_id=${named.publisher}`,
        `domain=${named.domain}`,
        `article_id=${named.article}`,
        `source_id=${named === FOREIGN ? 'urn:theirs' : 'urn:nobodys'}`,
        `exclude_publisher_id=${named.publisher}`,
        `exclude_domain=${named.domain}`,
      ];
      for (const [index, filter] of filters(FOREIGN).entries()) {
        const theirs = await answerOf(`${start}&${filter}`, narrow.key);
        const nobodys = await answerOf(`${start}&${filters(ABSENT)[index]}`, narrow.key);
        assert.equal(theirs, nobodys, filter);
      }
    });

    test('no detection of another account is on a page, for any query', async () => {
      for (const query of ['', '&fields=id', '&limit=1000', '&content_type=text', '&min_band=off']) {
        const page = await server.json(`${start}${query}`, narrow.key);
        const ids = page.data.map(({ id }: { id: string }) => id);
        assert.deepEqual(ids, ['t.7001.1.1'], query);
      }
    });
  });
}

test("data_starts depends only on the account's own streams", async () => {
  // The other account's data starts on 1 November.
  await assertAlike(() => '/v1/detections?from=2026-11-02&to=2026-11-03', 400);
  assert.equal((await server.get('/v1/detections?from=2026-11-02&to=2026-11-03', foreign.key)).status, 200);
});

test("another key's cursor reveals no more than one's own", async () => {
  const page = await server.json(`${CHANGES}&limit=1`, foreign.key);
  const read = await server.json(`/v1/detections/changes?cursor=${page.next_cursor}`, narrow.key);
  const others = read.data.filter(({ id }: { id: string }) => !id.startsWith('t.7001.'));
  assert.deepEqual(others, []);
  const walk = `/v1/detections?from=2026-11-01T00:00:00Z&to=2026-11-21T00:00:00Z&limit=1`;
  const theirs = await server.json(walk, foreign.key);
  assert.equal(typeof theirs.next_cursor, 'string');
  const next = `${walk}&cursor=${theirs.next_cursor}`;
  const refused = await server.get(next, narrow.key);
  const { detail } = Object(await refused.json());
  assert.deepEqual([refused.status, detail], [400, 'cursor: the period or filters changed; start again']);
  const sibling = server.makeKey({ account_id: 'other', subscriptions: [{ id: 8001, content_types: null }] });
  assert.equal((await server.get(next, sibling.key)).status, 200, 'another key of the same account');
});

test('/v1/me reveals nothing of another account', async () => {
  const me = await (await server.get('/v1/me', narrow.key)).text();
  assert.doesNotMatch(me, /8001|7002|[Tt]heirs|other|image/);
});
