/** Pages of a period, against a model in memory, and how SQLite reads them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { streamName } from '../../src/detection/content-type.ts';
import { CHUNK_ROWS } from '../../src/limits/api-limits.ts';
import { filterSql } from '../../src/query/filters.ts';
import { readDataStarts, readFirstDataStart, readPeriodPage } from '../../src/query/period-page.ts';
import type { PeriodSort } from '../../src/query/period-request.ts';
import { parseFields } from '../../src/query/projection.ts';
import type { Database } from '../../src/store/database.ts';
import { NO_FILTERS, passes, someFilters, testRow } from '../support/filters.ts';
import { forAll } from '../support/for-all.ts';
import { createTestStore, type TestRow, testId, testMatch, textRow } from '../support/store.ts';
import { periodQuery } from '../support/streams.ts';

type PeriodQuery = Parameters<typeof readPeriodPage>[1];

const START = Date.parse('2026-11-20T08:00:00Z') / 1000;
/** Some ids start with the same digits, so that the order of bytes differs from that of numbers. */
const SUBSCRIPTIONS = [7001, 7002, 70011, 8];
const STREAMS = SUBSCRIPTIONS.flatMap((id) => [streamName(id, 'text'), streamName(id, 'image')]);
const SORTS: readonly PeriodSort[] = ['ascending', 'descending'];

const query = (changes: Partial<PeriodQuery>) => periodQuery({ streams: STREAMS, ...changes });

type ShownRow = Readonly<{ id: string; version: number; event?: string; source: { image_url?: string } }>;

const rowsOf = (data: Buffer): ShownRow[] => JSON.parse(`[${data}]`);

/** Reads to the end. @returns `id version` of every row in order, and the row count of each page */
function walk(db: Database, first: PeriodQuery, scanRowsMax?: number) {
  const seen: string[] = [];
  const sizes: number[] = [];
  let after = first.after;
  for (let count = 0; count < 1000; count += 1) {
    const page = readPeriodPage(db, { ...first, after }, scanRowsMax);
    const rows = rowsOf(page.data);
    assert.equal(rows.length, page.rows);
    assert.ok(page.rows <= first.limit);
    seen.push(...rows.map((row) => `${row.id} ${row.version}`));
    sizes.push(page.rows);
    if (page.next === null) return { seen, sizes };
    after = page.next;
  }
  throw new Error('the walk does not end');
}

const timestamp = (second: number): string => `${new Date(second * 1000).toISOString().slice(0, 19)}Z`;

/** Few seconds with many ids each; some ids sort differently as bytes and as numbers. */
const row: fc.Arbitrary<TestRow> = fc
  .record({
    base: testRow,
    second: fc.integer({ min: 0, max: 4 }),
    subscription_id: fc.constantFrom(...SUBSCRIPTIONS, 7003),
    source_internal_id: fc.integer({ min: 0, max: 12 }),
  })
  .map(({ base, second, subscription_id, source_internal_id }) => ({
    ...base,
    row: { ...base.row, subscription_id, source_internal_id, first_detected_at: timestamp(START + second) },
  }));

const secondOf = (given: TestRow): number => Date.parse(testMatch(given).first_detected_at) / 1000;

/** The rules in one function: current detections of the streams and the period that pass the filters, in order. */
function expected(rows: readonly TestRow[], { streams, filters, period, sort }: PeriodQuery): string[] {
  const current = new Map(rows.map((one) => [testId(testMatch(one)), one]));
  const sign = sort === 'ascending' ? 1 : -1;
  return [...current]
    .filter(([, one]) => {
      const stream = streamName(one.row.subscription_id ?? 7001, one.content_type);
      const second = secondOf(one);
      return streams.includes(stream) && second >= period.from && second < period.to && passes(one, filters);
    })
    .sort(
      ([a, first], [b, second]) =>
        sign * (secondOf(first) - secondOf(second)) || Buffer.compare(Buffer.from(a), Buffer.from(b)),
    )
    .map(([id, one]) => `${id} ${one.version}`);
}

test('pages of any size together are exactly the matching detections, in order, in both sorts', () => {
  forAll(
    80,
    fc.record({
      rows: fc.array(row, { maxLength: 60, size: 'max' }),
      streams: fc.subarray(STREAMS, { minLength: 1 }),
      filters: someFilters,
      from: fc.integer({ min: 0, max: 5 }),
      width: fc.integer({ min: 0, max: 6 }),
      sort: fc.constantFrom(...SORTS),
      limit: fc.integer({ min: 1, max: 9 }),
      scanRowsMax: fc.integer({ min: 1, max: 12 }),
      isProjected: fc.boolean(),
    }),
    ({ rows, streams, filters, from, width, sort, limit, scanRowsMax, isProjected }) => {
      using store = createTestStore();
      store.deliver(rows, 1000);
      const asked = query({
        streams,
        filters,
        sort,
        limit,
        period: { from: START + from, to: START + from + width },
        projection: isProjected ? parseFields('id') : null,
      });
      const { seen, sizes } = walk(store.reader, asked, scanRowsMax);
      assert.deepEqual(seen, expected(rows, asked));
      if (filterSql(filters).sql === '') {
        for (const size of sizes.slice(0, -1)) assert.equal(size, limit, 'full while there is more');
        assert.equal(sizes.length, Math.max(1, Math.ceil(seen.length / limit)), 'no extra page');
      }
    },
  );
});

test('a filter that matches little ends a page after 50 chunks, even within a second, and its cursor advances', () => {
  const scanned = 50 * CHUNK_ROWS;
  const foreign: TestRow = { content_type: 'image', version: 1, row: {} };
  using store = createTestStore();
  const many = Array.from({ length: scanned }, (_, index) =>
    textRow({ source_internal_id: 1_000_000 + index }),
  );
  store.deliver([...many, textRow({ article_id: 2, source_internal_id: 9_000_000 }), foreign], 1000);
  const streams = [streamName(7001, 'text')];
  const rare = query({ streams, filters: { ...NO_FILTERS, article_id: 2 } });
  for (const sort of SORTS) {
    const first = readPeriodPage(store.reader, { ...rare, sort });
    assert.deepEqual([first.rows, first.next], [0, { second: START, id: `t.7001.${999_999 + scanned}.1` }]);
    const second = readPeriodPage(store.reader, { ...rare, sort, after: first.next });
    assert.deepEqual([second.rows, second.next], [1, null]);
  }
  const exact = query({ streams, filters: { ...NO_FILTERS, article_id: 3 }, limit: 1 });
  assert.deepEqual(walk(store.reader, exact).sizes, [0, 0]);
  const fits = { ...exact, after: { second: START, id: 't.7001.1000000.1' } };
  assert.deepEqual(walk(store.reader, fits).sizes, [0], 'exactly fifty chunks remain');
});

test('a page that begins within a second has no more rows than its limit', () => {
  const given = [0, 0, 0, 1, 1, 1].map((offset, index) => {
    const ids = { source_internal_id: index + 1, article_id: 1 + (index % 2) };
    return textRow({ ...ids, first_detected_at: timestamp(START + offset) });
  });
  using store = createTestStore();
  store.deliver(given, 1000);
  for (const sort of SORTS)
    for (const filters of [NO_FILTERS, { ...NO_FILTERS, min_score: 0 }])
      assert.deepEqual(walk(store.reader, query({ sort, filters, limit: 2 })).sizes, [2, 2, 2]);
  // Each page reads one row: what lies behind it in the second is not on it.
  const some = query({ filters: { ...NO_FILTERS, article_id: 1 } });
  for (const sort of SORTS) assert.equal(walk(store.reader, { ...some, sort }, 1).seen.length, 3);
});

test('current versions are read, without event and with our photo URLs, complete and with fields', () => {
  using store = createTestStore();
  const image = (version: number, row: TestRow['row']): TestRow => ({ content_type: 'image', version, row });
  const versions = [1, 2].map((version) => image(version, { strength_score: 40 + version }));
  const other = image(1, { source_internal_id: 3, article_headline: '\\u0001 $& \u0001' });
  store.deliver([...versions, other], 1000);
  const base = "https://x.example/$&$'";
  for (const projection of [null, parseFields('event,source,article,first_detected_at')]) {
    const asked = query({ projection, baseUrl: Buffer.from(base) });
    const shown = rowsOf(readPeriodPage(store.reader, asked).data);
    const urls = shown.map(({ version, source }) => `${version} ${source.image_url}`);
    assert.deepEqual(urls, [`2 ${base}/photos/1?signature=abc`, `1 ${base}/photos/3?signature=abc`]);
    assert.ok(shown.every((one) => !('event' in one)));
  }
});

test('records begin with the earliest current first_detected_at of each stream', () => {
  const streams = [streamName(7001, 'text'), streamName(7001, 'image')];
  const at = (second: number, source_internal_id = 1, version = 1) =>
    textRow({ source_internal_id, first_detected_at: timestamp(second) }, version);
  using store = createTestStore();
  assert.equal(readFirstDataStart(store.reader, streams), null);
  store.deliver([at(START), at(START + 5, 2)], 1000);
  assert.deepEqual([...readDataStarts(store.reader, streams).values()], [START, null]);
  store.deliver([at(START - 60, 1, 2)], 1000);
  assert.equal(readFirstDataStart(store.reader, streams), START - 60);
  assert.equal(readFirstDataStart(store.reader, []), null);
});
