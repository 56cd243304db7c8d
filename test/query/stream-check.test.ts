/** The change stream refuses to read a damaged database: it never serves fewer rows. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { streamName } from '../../src/detection/content-type.ts';
import { readChangesPage } from '../../src/query/changes-page.ts';
import { parseFields } from '../../src/query/projection.ts';
import { openDatabase } from '../../src/store/database.ts';
import { isDamage } from '../../src/store/database-errors.ts';
import { changeDetections } from '../support/database-content.ts';
import { NO_FILTERS } from '../support/filters.ts';
import { createTestStore, type TestStore } from '../support/store.ts';
import { after, changesQuery } from '../support/streams.ts';

const TEXT = streamName(7001, 'text');
const IMAGE = streamName(7001, 'image');

/** Six rows at positions 10 to 60, alternating between two streams. */
function storeWithRows(): TestStore {
  const store = createTestStore(10);
  for (let at = 1; at <= 6; at += 1) {
    const content_type = at % 2 === 1 ? 'text' : 'image';
    store.deliver([{ content_type, version: 1, row: { article_id: at } }], at * 1000);
  }
  return store;
}

const pageOf = (store: TestStore, more: Parameters<typeof changesQuery>[0] = {}) =>
  readChangesPage(store.reader, changesQuery({ streams: [TEXT, IMAGE], ...more }));

const changed = (what: string, position: number) =>
  `UPDATE stream_row SET ${what} WHERE position = ${position};`;
const OTHER_LETTER = changed(`body = replace(body, '"event"', '"evenu"')`, 30);
const gone = (at: string) => `DELETE FROM stream_row WHERE position ${at}`;
const from = (position: number) => ({ start: after(position) });
const textAfter = (position: number) => ({ ...from(position), streams: [TEXT] });

const DAMAGES: readonly [
  what: string,
  sql: string,
  more?: Parameters<typeof pageOf>[1],
  head?: 'new head',
][] = [
  ['a row in between is gone', gone('= 30')],
  ['the first row is gone', gone('= 10')],
  ['the last row of all is gone', gone('= 60')],
  ['the last row of one stream is gone', gone('= 50')],
  [
    'the row behind the cursor is gone, and the page is cut',
    gone('= 30'),
    { ...from(20), limit: 1, streams: [TEXT] },
  ],
  ['every row behind the cursor is gone', gone('> 40'), from(40)],
  [
    'a row lies behind others, where the page ends before',
    changed('position = 55', 10),
    { ...from(0), limit: 2 },
  ],
  ['a row is of another stream', changed(`place = ${2 ** 34 + 9}`, 40)],
  ['a sequence number is another', changed('place = place + 7', 30)],
  [
    'a row stands twice',
    `INSERT INTO stream_row SELECT place + 2, 45, version, publisher_id, domain, band, score, print, source_hash,
      article_id, body, checksum FROM stream_row WHERE position = 30`,
  ],
  [
    'two rows have changed places',
    changed('position = 1000', 10) + changed('position = 10', 30) + changed('position = 30', 1000),
  ],
  [
    'a position in the middle of a page is far ahead',
    changed('position = 45', 20),
    { streams: [IMAGE], limit: 2 },
  ],
  ['the last position of a stream is another', changed('position = 51', 50), { streams: [TEXT] }],
  ['a head is another', "UPDATE stream SET sequence = 2 WHERE content_type = 'text'"],
  ['a head is ahead of all rows', "UPDATE stream SET position = 70 WHERE content_type = 'text'"],
  ['a head is gone', "DELETE FROM stream WHERE content_type = 'text'"],
  ['the last transaction is gone', 'DELETE FROM delivery WHERE first_position = 60', {}, 'new head'],
  ['a text is no UTF-8', changed("body = CAST(x'7bff7d' AS TEXT)", 30)],
  ['a text is cut off', changed('body = substr(body, 1, 50)', 30)],
  ['a letter of a text is another', OTHER_LETTER],
  [
    'a letter of a text is another, and fields are asked for',
    OTHER_LETTER,
    { projection: parseFields('id') },
  ],
  [
    'a letter of a text is another, and a filter is set',
    OTHER_LETTER,
    { filters: { ...NO_FILTERS, min_score: 1 } },
  ],
  [
    'two texts have changed places',
    `UPDATE stream_row AS row SET (body, checksum) = (
        SELECT body, checksum FROM stream_row WHERE position = 40 - row.position)
      WHERE position IN (10, 30)`,
  ],
  [
    'the rows behind the cursor are gone, and a filter is set',
    gone('> 20'),
    { ...from(20), filters: { ...NO_FILTERS, min_band: 1 } },
  ],
  [
    'times of delivery go back',
    'UPDATE delivery SET delivered_at = 5500 WHERE first_position = 20',
    { start: { kind: 'since', since_ms: 2500 } },
  ],
];

test('damage that SQLite does not detect is refused', () => {
  for (const [what, sql, more, head] of DAMAGES) {
    using store = storeWithRows();
    // Checks of the complete table run once per stream head: unless the head is new, this reader has already made
    // them.
    if (head === undefined) assert.equal(pageOf(store).rows, 6);
    store.writer.exec(sql);
    assert.throws(() => pageOf(store, more), isDamage, what);
  }
});

/** Runs SQL without updating an index, as if its page had been lost or changed. */
function withoutIndex(store: TestStore, index: string, sql: string): void {
  const select = store.writer.prepare('SELECT sql FROM sqlite_schema WHERE name = ?').pluck();
  const written = String(select.get(index));
  const define = (definition: string) =>
    changeDetections(store.folder, (db) => {
      db.unsafeMode().pragma('writable_schema = ON');
      db.prepare('UPDATE sqlite_schema SET sql = ? WHERE name = ?').run(definition, index);
    });
  define(/ WHERE /.test(written) ? written.replace(' WHERE ', ' WHERE 0 AND ') : `${written} WHERE 0`);
  changeDetections(store.folder, sql);
  define(written);
}

test('rows of several streams are refused if one has another position than the index, which orders them', () => {
  for (const more of [{}, { filters: { ...NO_FILTERS, min_band: 0 } }]) {
    using store = storeWithRows();
    withoutIndex(store, 'stream_row_by_position', changed('position = 25', 30));
    assert.throws(() => pageOf(store, more), isDamage);
  }
});

test('a wrong index is refused if a row would be missed', () => {
  const cases: [index: string, sql: string, more: Parameters<typeof pageOf>[1]][] = [
    ['stream_row_by_position', changed('position = 15', 30), textAfter(20)],
    ['stream_row_by_position', changed('position = 45', 30), textAfter(30)],
    ['stream_row_by_position', changed('place = place + 10', 30), { limit: 3 }],
    [
      'stream_by_name',
      "UPDATE stream SET content_type = 'picture' WHERE content_type = 'text'",
      textAfter(0),
    ],
    ['stream_by_name', "UPDATE stream SET ordinal = 9 WHERE content_type = 'text'", textAfter(0)],
  ];
  for (const [index, sql, more] of cases) {
    using store = storeWithRows();
    withoutIndex(store, index, sql);
    using reader = openDatabase(store.path, 'read');
    assert.throws(() => pageOf({ ...store, reader }, more), isDamage, sql);
  }
});

test('a schema with another name in it is damage, too', () => {
  using store = storeWithRows();
  store.writer.unsafeMode().pragma('writable_schema = ON');
  store.writer.exec(
    "UPDATE sqlite_schema SET sql = replace(sql, 'sequence', 'sequense') WHERE name = 'stream'",
  );
  using reader = openDatabase(store.path, 'read');
  assert.throws(() => pageOf({ ...store, reader }, textAfter(0)), isDamage);
});
