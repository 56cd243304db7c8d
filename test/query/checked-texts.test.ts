/** Whatever reads stored detections: a text that does not match its checksum is refused, never answered. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { streamName } from '../../src/detection/content-type.ts';
import { detectionRows } from '../../src/log/detection-rows.ts';
import { readOneDetection } from '../../src/query/detection-text.ts';
import { newestRows, versionRows } from '../../src/query/latest-rows.ts';
import { type PeriodQuery, readPeriodPage } from '../../src/query/period-page.ts';
import { parseFields } from '../../src/query/projection.ts';
import { EVERY_STREAM } from '../../src/query/streams.ts';
import { isDamage } from '../../src/store/database-errors.ts';
import { NO_FILTERS } from '../support/filters.ts';
import { createTestStore, type TestStore, testId, testMatch, testState, textRows } from '../support/store.ts';
import { periodQuery } from '../support/streams.ts';

const STREAM = streamName(7001, 'text');
const BASE_URL = Buffer.from('https://api.example');
const ROWS = textRows(3);
const [, SECOND = ''] = ROWS.map((row) => testId(testMatch(row)));

const period = ({ reader }: TestStore, more: Partial<PeriodQuery> = {}) =>
  `${readPeriodPage(reader, periodQuery({ streams: [STREAM], ...more })).data}`;

const one = (store: TestStore, projection: PeriodQuery['projection'] = null) =>
  readOneDetection(store.reader, SECOND, { streams: [STREAM], projection, baseUrl: BASE_URL });

/** Still JSON, with the same members and length. */
const OTHER_TEXT = `replace(body, '"medium"', '"mediun"')`;

const READS: Readonly<Record<string, (store: TestStore) => unknown>> = {
  'a period': period,
  'a period, ascending': (store) => period(store, { sort: 'ascending' }),
  'a period with a filter': (store) => period(store, { filters: { ...NO_FILTERS, min_score: 1 } }),
  'a period with fields': (store) => period(store, { projection: parseFields('strength') }),
  'one detection': (store) => one(store),
  'one detection with fields': (store) => one(store, parseFields('strength')),
  'the next merge': (store) => detectionRows(store.writer).find(SECOND),
};

const READS_OF_VERSIONS: typeof READS = {
  'the newest rows of the console': ({ reader }) =>
    newestRows(reader, { ...EVERY_STREAM, ...NO_FILTERS }, 10),
  'the versions of the console': ({ reader }) => versionRows(reader, SECOND, null),
};

function storeWithRows(): TestStore {
  const store = createTestStore();
  store.deliver(ROWS, 1);
  return store;
}

/** Scores the second detection again, without a new version. */
function rescore({ writer }: TestStore): void {
  const [, row = assert.fail()] = ROWS;
  const match = { ...testMatch(row), last_scored_at: '2026-11-21T09:09:09Z' };
  assert.ok(detectionRows(writer).rescore(testState(match), row.version));
}

for (const [what, read] of Object.entries({ ...READS, ...READS_OF_VERSIONS }))
  test(`${what}: a changed text is refused`, () => {
    using store = storeWithRows();
    assert.doesNotThrow(() => read(store));
    const { changes } = store.writer
      .prepare(`UPDATE stream_row SET body = ${OTHER_TEXT} WHERE place = ${2 ** 34 + 2}`)
      .run();
    assert.equal(changes, 1);
    assert.throws(() => read(store), isDamage);
  });

for (const [what, read] of Object.entries(READS))
  test(`${what}: a changed text of a new scoring is refused`, () => {
    using store = storeWithRows();
    rescore(store);
    assert.match(period(store), /09:09:09/);
    assert.doesNotThrow(() => read(store));
    assert.equal(store.writer.prepare(`UPDATE rescored SET body = ${OTHER_TEXT}`).run().changes, 1);
    assert.throws(() => read(store), isDamage);
  });

test('a detection whose place is that of another one is refused', () => {
  using store = storeWithRows();
  store.writer.prepare('UPDATE detection SET place = ? WHERE id = ?').run(2 ** 34 + 1, SECOND);
  for (const read of [READS['one detection'], READS['the next merge']])
    assert.throws(() => read?.(store), isDamage);
});
