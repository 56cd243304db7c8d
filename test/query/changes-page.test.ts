/** Pages of the change stream, against a model in memory, and how SQLite reads them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type ContentType, type StreamName, streamName } from '../../src/detection/content-type.ts';
import { CHUNK_ROWS } from '../../src/limits/api-limits.ts';
import { type ChangesQuery, readChangesPage } from '../../src/query/changes-page.ts';
import type { DetectionFilters } from '../../src/query/filters.ts';
import { parseFields } from '../../src/query/projection.ts';
import type { Database } from '../../src/store/database.ts';
import { NO_FILTERS, passes, someFilters, testRow } from '../support/filters.ts';
import { forAll } from '../support/for-all.ts';
import { createTestStore, type TestRow, testId, testMatch, textRow } from '../support/store.ts';
import { after, changesQuery, STREAMS } from '../support/streams.ts';

const query = (changes: Partial<ChangesQuery>) =>
  changesQuery({ baseUrl: Buffer.from('https://api.example/ww'), ...changes });

const rowsOf = (data: Buffer): { id: string; version: number; event: string }[] => JSON.parse(`[${data}]`);

/** Reads to the end. @returns `id version` of every row in order, and the pages */
function walk(db: Database, first: ChangesQuery) {
  const seen: string[] = [];
  const pages = [];
  let { start } = first;
  for (let count = 0; count < 10_000; count += 1) {
    const page = readChangesPage(db, { ...first, start });
    const rows = rowsOf(page.data);
    assert.equal(rows.length, page.rows);
    assert.ok(page.rows <= first.limit);
    if (start.kind === 'after') assert.ok(page.position >= start.position);
    seen.push(...rows.map((row) => `${row.id} ${row.version}`));
    pages.push(page);
    start = after(page.position);
    if (!page.has_more) return { seen, pages };
  }
  throw new Error('the walk does not end');
}

function expected(rows: readonly TestRow[], streams: readonly StreamName[], f: DetectionFilters): string[] {
  const streamOf = ({ row, content_type }: TestRow) => streamName(row.subscription_id ?? 7001, content_type);
  const expected = rows.filter((one) => streams.includes(streamOf(one)) && passes(one, f));
  return expected.map((one) => `${testId(testMatch(one))} ${one.version}`);
}

test('pages of any size together are exactly the matching rows, in order of arrival', () => {
  const streams = fc.subarray(STREAMS, { minLength: 1 });
  forAll(
    60,
    fc.array(testRow, { maxLength: 40, size: 'max' }),
    streams,
    someFilters,
    fc.integer({ min: 1, max: 7 }),
    fc.boolean(),
    (rows, read, f, limit, projected) => {
      using store = createTestStore(3);
      for (let at = 0; at < rows.length; at += 5) store.deliver(rows.slice(at, at + 5), 1000);
      const projection = projected ? parseFields('id') : null;
      const { seen, pages } = walk(store.reader, query({ streams: read, filters: f, limit, projection }));
      assert.deepEqual(seen, expected(rows, read, f));
      const end = pages.at(-1)?.position;
      assert.equal(end, rows.length * 3, 'the last cursor must be at the end of all streams');
      for (const page of pages.slice(0, -1))
        assert.equal(page.rows, limit, 'a page is full while there is more');
    },
  );
});

test('a page ends after fifty chunks, with a cursor past the filtered rows', () => {
  const scanned = 50 * CHUNK_ROWS;
  const image: TestRow = { content_type: 'image', version: 1, row: {} };
  const many = Array.from({ length: scanned + 1 }, () => textRow());
  using store = createTestStore();
  // Rows of unread streams do not count.
  store.deliver([image, ...many, image, textRow({ article_id: 2 })], 1000);
  const [stream] = STREAMS;
  assert.ok(stream !== undefined);
  const first = query({ streams: [stream], filters: { ...NO_FILTERS, article_id: 2 }, limit: 1000 });
  const page = readChangesPage(store.reader, first);
  assert.deepEqual([page.rows, page.has_more, page.position], [0, true, scanned + 1]);
  assert.deepEqual(walk(store.reader, first).seen, ['t.7001.1.2 1']);
  const exact = query({ ...first, start: after(4) });
  assert.deepEqual(readChangesPage(store.reader, exact).has_more, false, 'exactly fifty chunks remain');
  const none = query({ ...first, filters: { ...NO_FILTERS, article_id: 3 } });
  assert.equal(walk(store.reader, none).pages.length, 2);
});

test('has_more is false when the last row of the streams is on a full page', () => {
  const one = (subscription_id: number) => textRow({ subscription_id });
  using store = createTestStore();
  store.deliver([one(7001), one(7001), one(7003)], 1000);
  const page = readChangesPage(store.reader, query({ limit: 2 }));
  assert.deepEqual([page.rows, page.has_more, page.position], [2, false, 3]);
  const again = readChangesPage(store.reader, query({ start: after(page.position) }));
  assert.deepEqual([again.rows, again.has_more, again.position], [0, false, 3]);
  const ahead = readChangesPage(store.reader, query({ start: after(900) }));
  assert.deepEqual([ahead.rows, ahead.has_more], [0, false]);
  assert.equal(ahead.position, 900, 'a cursor must not go back');
  const nothing = readChangesPage(store.reader, query({ streams: [], content_types: [] }));
  assert.deepEqual([nothing.rows, nothing.has_more, nothing.position, nothing.as_of_ms], [0, false, 3, null]);
});

test('since starts with the first transaction delivered at or after it', () => {
  using store = createTestStore();
  store.deliver([textRow(), textRow()], 1000);
  store.deliver([textRow()], 2000);
  const [third] = store.deliver([textRow()], null);
  const [fourth] = store.deliver([textRow()], null);
  assert.ok(third !== undefined && fourth !== undefined);
  const pageSince = (since_ms: number, recent: readonly number[]) => {
    const recentDeliveries = new Map(recent.map((ms, at) => [[third, fourth][at] ?? 0, ms]));
    return readChangesPage(store.reader, query({ start: { kind: 'since', since_ms }, recentDeliveries }));
  };
  const since = (ms: number, ...recent: number[]) => pageSince(ms, recent).rows;
  assert.deepEqual([since(1000), since(1001), since(2000)], [5, 3, 3]);
  assert.equal(since(2001), 2, 'a row without a delivery time counts as the latest');
  assert.equal(since(9_000_000), 2);
  assert.deepEqual([since(3000, 3000), since(3001, 3000), since(4001, 3000, 4000)], [2, 1, 0]);
  const none = pageSince(4001, [3000, 4000]);
  assert.deepEqual([none.position, none.has_more], [5, false], 'the end of the newest stream');
});

test('as_of is the earliest of the newest finished windows of the types read', () => {
  using store = createTestStore();
  const asOf = (...types: ContentType[]) =>
    readChangesPage(store.reader, query({ content_types: types })).as_of_ms;
  assert.equal(asOf('text', 'image'), null);
  store.finishWindow('newswire', 1_200_000);
  store.finishWindow('newswire', 600_000);
  assert.equal(asOf('text', 'image'), null, 'an export without a finished window');
  assert.equal(asOf('text'), 1_800_000);
  store.finishWindow('imagewire', 0);
  assert.equal(asOf('text', 'image'), 600_000);
  assert.equal(asOf(), null);
  store.writer.exec(`INSERT INTO export_window (export, window_start, status, since)
    VALUES ('newswire', 1800000, 'failed', 1), ('imagewire', 600000, 'missing', 1)`);
  assert.equal(asOf('text'), 1_800_000);
  assert.equal(asOf('image'), 600_000, 'not the end of a window that is not done');
});
