/** What is wrong with a database is refused by the change stream, and never served as if there were less. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { streamNumber } from '../src/detection/content-type.ts';
import { readChangesPage } from '../src/query/changes-page.ts';
import { parseFields } from '../src/query/projection.ts';
import { headsSql, lastUpToSql } from '../src/query/stream-check.ts';
import { isDamage } from '../src/store/database-errors.ts';
import { damageOften, type Kind } from './support/damage.ts';
import { NO_FILTERS } from './support/filters.ts';
import { createTestStore, type TestStore } from './support/store.ts';

const TIMES = 60;
const TEXT = streamNumber(7001, 'text');
const IMAGE = streamNumber(7001, 'image');

for (const kind of ['bit', 'block'] as const satisfies Kind[]) {
  test(`a ${kind} flipped anywhere: a walk of the stream has every row, or is refused`, () => {
    const outcomes = damageOften(kind, TIMES, 'stream-check');
    assert.equal(outcomes['served wrong'], 0, JSON.stringify(outcomes));
    assert.ok(outcomes.refused > 0 && outcomes['all as it was'] > 0, JSON.stringify(outcomes));
  });
}

/** Six rows at positions 10 to 60, in turn of two streams. */
function withRows(use: (store: TestStore) => void): void {
  const store = createTestStore(10);
  try {
    for (let at = 1; at <= 6; at += 1) {
      const content_type = at % 2 === 1 ? 'text' : 'image';
      store.deliver([{ content_type, version: 1, row: { article_id: at } }], at * 1000);
    }
    use(store);
  } finally {
    store.close();
  }
}

function pageOf(store: TestStore, more: Partial<Parameters<typeof readChangesPage>[1]> = {}) {
  return readChangesPage(store.reader, {
    streams: [TEXT, IMAGE],
    content_types: ['text', 'image'],
    filters: NO_FILTERS,
    start: { kind: 'after', position: 0 },
    limit: 100,
    projection: null,
    baseUrl: Buffer.from('https://api.example'),
    recentDeliveries: new Map(),
    ...more,
  });
}

const DAMAGES: readonly [what: string, sql: string, more?: Parameters<typeof pageOf>[1]][] = [
  ['a row in between is gone', 'DELETE FROM stream_row WHERE position = 30'],
  ['the first row is gone', 'DELETE FROM stream_row WHERE position = 10'],
  ['the last row of all is gone', 'DELETE FROM stream_row WHERE position = 60'],
  ['the last row of one stream is gone', 'DELETE FROM stream_row WHERE position = 50'],
  [
    'the row behind the cursor is gone, and the page is cut',
    'DELETE FROM stream_row WHERE position = 30',
    { start: { kind: 'after', position: 20 }, limit: 1, streams: [TEXT] },
  ],
  [
    'every row behind the cursor is gone',
    'DELETE FROM stream_row WHERE position > 40',
    { start: { kind: 'after', position: 40 } },
  ],
  [
    'a row lies behind others, where the page ends before',
    'UPDATE stream_row SET position = 55 WHERE position = 10',
    { start: { kind: 'after', position: 0 }, limit: 2 },
  ],
  ['a row is of another stream', `UPDATE stream_row SET stream = ${TEXT} WHERE position = 40`],
  ['a sequence number is another', 'UPDATE stream_row SET sequence = 7 WHERE position = 30'],
  ['a head is another', `UPDATE stream_head SET sequence = 2 WHERE stream = ${TEXT}`],
  ['a head is gone', `DELETE FROM stream_head WHERE stream = ${TEXT}`],
  ['a text is no UTF-8', "UPDATE stream_row SET body = CAST(x'7bff7d' AS TEXT) WHERE position = 30"],
  ['a text is cut off', 'UPDATE stream_row SET body = substr(body, 1, 50) WHERE position = 30'],
  [
    'a text is no UTF-8, and fields are asked for',
    "UPDATE stream_row SET body = CAST(x'7bff7d' AS TEXT) WHERE position = 30",
    { projection: parseFields('id') },
  ],
  [
    'a text is no JSON, and fields are asked for',
    "UPDATE stream_row SET body = '{]' WHERE position = 30",
    { projection: parseFields('id') },
  ],
  [
    'a row in between is gone, and fields are asked for',
    'DELETE FROM stream_row WHERE position = 30',
    { projection: parseFields('id') },
  ],
  [
    'the rows behind the cursor are gone, and a filter is set',
    'DELETE FROM stream_row WHERE position > 20',
    { start: { kind: 'after', position: 20 }, filters: { ...NO_FILTERS, min_band: 1 } },
  ],
  [
    'times of delivery go back',
    'UPDATE delivery SET delivered_at = 5500 WHERE first_position = 20',
    { start: { kind: 'since', since_ms: 2500 } },
  ],
];

test('damage that SQLite does not see is refused', () => {
  for (const [what, sql, more] of DAMAGES) {
    withRows((store) => {
      assert.equal(pageOf(store).rows, 6);
      store.writer.exec(sql);
      assert.throws(() => pageOf(store, more), isDamage, what);
    });
  }
});

test('what checks a page finds what it needs by index', () => {
  withRows(({ reader }) => {
    const planOf = (sql: string) =>
      reader
        .prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`)
        .all(Object.fromEntries([...sql.matchAll(/@(\w+)/g)].map(([, name = '']) => [name, 1])))
        .map(({ detail }) => detail)
        .join('\n');
    for (const sql of [lastUpToSql(4), headsSql(4)])
      assert.doesNotMatch(planOf(sql), /SCAN stream_|TEMP B-TREE/);
  });
});
