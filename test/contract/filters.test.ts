/** Every filter on both list endpoints, one test each: which rows it keeps and drops. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ContentType } from '../../src/detection/content-type.ts';
import { NOW_MS, sharedServer } from '../support/server.ts';
import type { TestRow } from '../support/store.ts';

const LISTS = [
  '/v1/detections/changes?since=2026-11-19T00:00:00Z',
  '/v1/detections?from=2026-11-20&to=2026-11-20',
];
const MANY = '999999999999999';

function row(content_type: ContentType, article_id: number, more: TestRow['row']): TestRow {
  return { content_type, version: 1, row: { article_id, article_url: null, ...more } };
}

const server = await sharedServer();
server.store.deliver(
  [
    row('text', 1, { strength_score: 24.4, source_id: 'plumless' }),
    row('text', 2, {
      ...{ strength_score: 25, source_id: 'buckeroo' },
      ...{ article_publisher_id: 6, article_domain: 'example.org' },
    }),
    row('text', 3, { article_publisher_id: null, article_domain: null, source_id: 'a"\\b' }),
    row('text', 4, { strength_score: 75, article_print: true }),
    row('text', 5, { strength_score: 95, source_id: 'urn:x', subscription_id: 7002 }),
    row('image', 6, { strength_score: 29.5 }),
    row('image', 7, { strength_score: 30, article_publisher_id: null, article_domain: 'xn--bcher-kva.de' }),
    row('image', 8, { strength_score: 60, source_id: 'urn:X' }),
  ],
  NOW_MS - 60_000,
);
const key = server.makeKey().key;
const textKey = server.makeKey({ subscriptions: [{ id: 7001, content_types: ['text'] }] }).key;
const mixedKey = server.makeKey({
  subscriptions: [
    { id: 7001, content_types: null },
    { id: 7002, content_types: ['text'] },
  ],
}).key;

/** The articles of both lists with these parameters, which must be equal. */
async function articles(query: string, reader = key): Promise<number[]> {
  const found = await Promise.all(
    LISTS.map(async (list) => {
      const { data }: { data: { article: { id: number } }[] } = await server.json(`${list}&${query}`, reader);
      return data.map(({ article }) => article.id).sort();
    }),
  );
  assert.deepEqual(found[0], found[1], query);
  return found[0] ?? [];
}

/** The detail of a request that both lists must refuse with the same text. */
async function refused(query: string, reader = key): Promise<string> {
  const details = await Promise.all(
    LISTS.map(async (list) => String((await server.json(`${list}&${query}`, reader, 400)).detail)),
  );
  assert.equal(details[0], details[1], query);
  return details[0] ?? '';
}

const numbers = (count: number) => Array.from({ length: count }, (_, at) => at + 1).join(',');

test('subscription_id: only these; by default all of the key', async () => {
  assert.deepEqual(await articles('subscription_id=7002'), [5]);
  assert.deepEqual(await articles('subscription_id=7001,7002'), [1, 2, 3, 4, 5, 6, 7, 8]);
  const foreign =
    "subscription_id: every value must be one of the key's subscriptions; GET /v1/me lists them";
  assert.equal(await refused('subscription_id=7003'), foreign);
});

test('content_type: one that the key can read; by default all of them', async () => {
  assert.deepEqual(await articles('content_type=text'), [1, 2, 3, 4, 5]);
  assert.deepEqual(await articles('content_type=image'), [6, 7, 8]);
  assert.deepEqual(await articles('limit=9', textKey), [1, 2, 3, 4]);
  assert.deepEqual(await articles('content_type=image', mixedKey), [6, 7, 8]);
  assert.deepEqual(await articles('content_type=image&subscription_id=7002', mixedKey), []);
  const unread = 'content_type: must be one that the key can read; GET /v1/me lists them';
  assert.equal(await refused('content_type=image', textKey), unread);
});

test('publisher_id: matches article.publisher.id, never a detection without a publisher', async () => {
  assert.deepEqual(await articles('publisher_id=6'), [2]);
  assert.deepEqual(await articles('publisher_id=5,6'), [1, 2, 4, 5, 6, 8]);
  assert.deepEqual(await articles(`publisher_id=${MANY}`), []);
});

test('exclude_publisher_id: all but these, keeping detections without a publisher; up to 50', async () => {
  assert.deepEqual(await articles('exclude_publisher_id=5'), [2, 3, 7]);
  assert.deepEqual(await articles(`exclude_publisher_id=${numbers(50)}`), [3, 7]);
});

test('domain: a domain, or an http(s) URL without path, in lower case and punycode', async () => {
  assert.deepEqual(await articles('domain=example.org'), [2]);
  assert.deepEqual(await articles('domain=EXAMPLE.org'), [2]);
  assert.deepEqual(await articles(`domain=${encodeURIComponent('https://Example.org')}`), [2]);
  assert.deepEqual(await articles(`domain=${encodeURIComponent('http://example.org/')}`), [2]);
  assert.deepEqual(await articles(`domain=${encodeURIComponent('Bücher.de')}`), [7]);
  assert.deepEqual(await articles('domain=www.example.org'), [], 'the complete value must be compared');
});

test('exclude_domain: all but these, keeping detections without a domain', async () => {
  assert.deepEqual(await articles('exclude_domain=example.com,xn--bcher-kva.de'), [2, 3]);
});

test('min_band: this band or a stronger one, with the same word as the same step for both types', async () => {
  assert.deepEqual(await articles('min_band=off'), [1, 2, 3, 4, 5, 6, 7, 8]);
  assert.deepEqual(await articles('min_band=low'), [2, 3, 4, 5, 6, 7, 8]);
  assert.deepEqual(await articles('min_band=medium'), [3, 4, 5, 7, 8]);
  assert.deepEqual(await articles('min_band=high'), [4, 5, 8]);
  assert.deepEqual(await articles('min_band=max'), [5]);
});

test('band: exactly these; off and max match no image', async () => {
  assert.deepEqual(await articles('band=off'), [1]);
  assert.deepEqual(await articles('band=max'), [5]);
  assert.deepEqual(await articles('band=low,high'), [2, 4, 6, 8]);
  assert.deepEqual(await articles('band=low&min_band=medium'), [], 'both conditions must hold');
});

test('min_score: the rounded score is at least this, 0 to 100', async () => {
  assert.deepEqual(await articles('min_score=0'), [1, 2, 3, 4, 5, 6, 7, 8]);
  assert.deepEqual(await articles('min_score=24'), [1, 2, 3, 4, 5, 6, 7, 8], '24.4 is 24');
  assert.deepEqual(await articles('min_score=25'), [2, 3, 4, 5, 6, 7, 8]);
  assert.deepEqual(await articles('min_score=30'), [3, 4, 5, 6, 7, 8], '29.5 is 30');
  assert.deepEqual(await articles('min_score=31'), [3, 4, 5, 8]);
  assert.deepEqual(await articles('min_score=100'), []);
});

test('print: true is only print articles, false everything else; images are never print', async () => {
  assert.deepEqual(await articles('print=true'), [4]);
  assert.deepEqual(await articles('print=false'), [1, 2, 3, 5, 6, 7, 8]);
});

test('source_id: exact match, at most 200 characters', async () => {
  assert.deepEqual(await articles('source_id=urn:x'), [5]);
  assert.deepEqual(await articles('source_id=urn'), []);
  // Both have the same CRC-32, which stream rows store.
  assert.deepEqual([await articles('source_id=plumless'), await articles('source_id=buckeroo')], [[1], [2]]);
  assert.deepEqual(await articles(`source_id=${encodeURIComponent('a"\\b')}`), [3]);
  assert.deepEqual(await articles(`source_id=${'x'.repeat(200)}`), []);
});

test('article_id: matches article.id, 1 to 999,999,999,999,999', async () => {
  assert.deepEqual(await articles('article_id=7'), [7]);
  assert.deepEqual(await articles(`article_id=${MANY}`), []);
});

test('filters combine: all of them must hold', async () => {
  assert.deepEqual(await articles('publisher_id=5&content_type=text&min_score=50&print=true'), [4]);
  assert.deepEqual(await articles('publisher_id=5&exclude_publisher_id=5'), []);
});

test('schema_version: v1 is the only value, on every detection endpoint', async () => {
  assert.deepEqual(await articles('schema_version=v1&band=off'), [1]);
  assert.match(await refused('schema_version=v2'), /^schema_version: must be v1/);
  for (const [version, status] of Object.entries({ v1: 200, v2: 400 }))
    await server.json(`/v1/detections/t.7001.1.1?schema_version=${version}`, key, status);
});

test('fields: the named ones plus id and version, complete objects, in detection order', async () => {
  const ids = ['t.7001.1.4', 'i.7001.1.7'];
  const read = async (fields: string, id = ids[0]) => {
    const detection = await server.json(`/v1/detections/${id}?fields=${fields}`, key);
    for (const list of LISTS) {
      const { data } = await server.json(`${list}&fields=${fields}`, key);
      const found = data.find((one: { id: string }) => one.id === id);
      assert.deepEqual(found, detection, `${list} ${fields}`);
    }
    return detection;
  };
  assert.equal(JSON.stringify(await read('id')), `{"id":"${ids[0]}","version":1}`);
  const ordered = await read('strength.band,content_type,article.print');
  assert.deepEqual(Object.keys(ordered), ['id', 'version', 'content_type', 'strength', 'article']);
  assert.deepEqual([ordered.strength, ordered.article], [{ band: 'high' }, { print: true }]);
  const members = ['score', 'band', 'matched_sentences', 'article_sentences'];
  assert.deepEqual(Object.keys((await read('strength')).strength), members);
  assert.deepEqual(await read('strength.score,strength'), await read('strength'));
  assert.deepEqual(Object.keys((await read('article.print,article.id')).article), ['id', 'print']);
  assert.deepEqual((await read('article.publisher')).article, { publisher: { id: 5, name: 'Example' } });
  assert.deepEqual((await read('article.publisher.name')).article, { publisher: { name: 'Example' } });
  const photo = { id: ids[1], version: 1 };
  assert.deepEqual(await read('source.language,article.print', ids[1]), photo, 'photos do not have it');
  const noPublisher = { ...photo, article: { publisher: null } };
  assert.deepEqual(await read('article.publisher.name', ids[1]), noPublisher);
  assert.deepEqual(await read('customer,customer'), { id: ids[0], version: 1, customer: null });
  assert.match(await refused('fields=article.publisher.id.x'), /^fields: unknown path/);
});

test('fields: event is on the stream if requested, and nowhere else', async () => {
  for (const [at, list] of LISTS.entries()) {
    const { data } = await server.json(`${list}&fields=event&band=off`, key);
    const expected = { id: 't.7001.1.1', version: 1, ...(at === 0 ? { event: 'created' } : {}) };
    assert.deepEqual(data, [expected]);
  }
});
