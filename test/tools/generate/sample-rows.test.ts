/** Sample rows: in the export format, varied, reproducible, and changing over several windows. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { getDomain } from 'tldts';
import { EXPORT_NAMES, type ExportName } from '../../../src/detection/content-type.ts';
import { exportRows, type SampleRow, type SampleSubscription } from '../../../src/tools/generate/rows.ts';
import { publishers, SITES } from '../../../src/tools/generate/words.ts';
import { BOTH, keyOf, rowsOf, START_MS, WINDOW_MS } from '../../support/sample-rows.ts';

function shared<T>(one: Set<T>, other: Set<T>): T[] {
  return [...one].filter((value) => other.has(value));
}

/** No row is without them. */
const REQUIRED = `subscription_id source_internal_id article_id first_detected_at last_scored_at strength_score`;

for (const exportName of EXPORT_NAMES) {
  test(`${exportName} rows of a window are distinct detections, first seen and scored in or before it`, () => {
    const rows = rowsOf(exportName);
    assert.equal(new Set(rows.map(keyOf)).size, rows.length);
    const start = '2026-11-21T10:10:00Z';
    const end = '2026-11-21T10:20:00Z';
    for (const row of rows) {
      assert.ok(row.last_scored_at >= start && row.last_scored_at < end, row.last_scored_at);
      assert.ok(row.first_detected_at <= row.last_scored_at);
      assert.ok(
        row.exported_at === null || (row.exported_at >= end && row.exported_at < '2026-11-21T10:21:00Z'),
      );
    }
    const share = rows.filter((row) => row.first_detected_at < start).length / rows.length;
    assert.ok(share > 0.06 && share < 0.14, `${share} were first detected before`);
  });

  test(`${exportName} rows vary: optional values are sometimes missing, and every band and threshold occurs`, () => {
    const rows = rowsOf(exportName);
    for (const column of Object.keys(rows[0] ?? {})) {
      const nulls = rows.filter((row) => Reflect.get(row, column) === null).length;
      if (REQUIRED.split(' ').includes(column)) assert.equal(nulls, 0, column);
      else assert.ok(nulls > 0 && nulls < rows.length, `${column} is null in ${nulls} rows`);
    }
    const thresholds = exportName === 'newswire' ? [0, 25, 50, 75, 95, 100] : [0, 30, 60, 99];
    const scores = rows.map((row) => row.strength_score);
    for (const threshold of thresholds) assert.ok(scores.includes(threshold), `${threshold}`);
    for (const [at, from] of thresholds.slice(0, -1).entries()) {
      assert.ok(
        scores.some((score) => score > from && score < (thresholds[at + 1] ?? 0)),
        `above ${from}`,
      );
    }
    const headlines = rows.map((row) => row.article_headline ?? '').join('');
    for (const odd of ['"', ',', 'ü', '\u{1F4F7}', '橋', 'ا', '\n', '\t', '\\', '\u200f']) {
      assert.ok(headlines.includes(odd), `no headline has ${JSON.stringify(odd)}`);
    }
    for (const id of [7001, 7002]) {
      const part = rows.filter((row) => row.subscription_id === id).length / rows.length;
      assert.ok(part > 0.3, `subscription ${id} has ${part}`);
    }
  });
}

test('a wire story is found in several articles, always with the same source', () => {
  const stories = Map.groupBy(rowsOf('newswire'), (row) => row.source_internal_id);
  const several = [...stories.values()].filter((rows) => rows.length > 1);
  assert.ok(several.length > 100, `${several.length} stories have several detections`);
  for (const rows of several) {
    assert.equal(
      new Set(rows.map((row) => JSON.stringify([row.source_id, row.source_published_at]))).size,
      1,
    );
  }
});

test('publishers and sites are many, distinct, and registrable domains', () => {
  const all = publishers();
  assert.ok(all.length >= 200);
  assert.equal(new Set(all.map(({ id }) => id)).size, all.length);
  assert.equal(new Set(all.map(({ asciiDomain }) => asciiDomain)).size, all.length);
  for (const { asciiDomain } of all) assert.equal(getDomain(asciiDomain), asciiDomain);
  for (const site of SITES) assert.equal(getDomain(site), site);
  assert.ok(all.some(({ asciiDomain }) => asciiDomain.includes('xn--')));
});

test('the same seed gives the same rows; another seed, export or window gives others', () => {
  assert.deepEqual(rowsOf('newswire'), rowsOf('newswire'));
  const keys = (seed: string) => new Set(rowsOf('newswire', START_MS, 3000, seed).map(keyOf));
  assert.deepEqual(shared(keys('1'), keys('2')), []);
  const sources = (name: ExportName) => new Set(rowsOf(name).map((row) => row.source_internal_id));
  assert.deepEqual(shared(sources('newswire'), sources('imagewire')), []);
});

test('rows do not depend on their number: a smaller file is the beginning of a larger one', () => {
  assert.deepEqual(rowsOf('imagewire', START_MS, 100), rowsOf('imagewire', START_MS, 3000).slice(0, 100));
});

test('detections change in several ways over a few windows of one run', () => {
  const seen = new Map<string, SampleRow>();
  const changes = new Map<string, number>();
  for (let window = 0; window < 6; window += 1) {
    for (const row of rowsOf('newswire', START_MS + window * WINDOW_MS)) {
      const before = seen.get(keyOf(row));
      seen.set(keyOf(row), row);
      if (!before) continue;
      assert.ok(before.last_scored_at < row.last_scored_at);
      assert.equal(before.source_id, row.source_id);
      const columns = changedColumns(before, row);
      for (const column of columns.length === 0 ? ['none'] : columns)
        changes.set(column, (changes.get(column) ?? 0) + 1);
    }
  }
  for (const column of ['none', 'strength_score', 'article_headline', 'article_published_at']) {
    assert.ok((changes.get(column) ?? 0) > 5, `${column}: ${changes.get(column)}`);
  }
});

/** The changed columns that would create a version of the detection. */
function changedColumns(before: SampleRow, after: SampleRow): string[] {
  const old = new Map<string, unknown>(Object.entries(before));
  return Object.entries(after)
    .filter(
      ([column, value]) =>
        column !== 'last_scored_at' && column !== 'exported_at' && old.get(column) !== value,
    )
    .map(([column]) => column);
}

test('history spreads its rows over its windows and agrees with their files', () => {
  const options = {
    seed: '1',
    exportName: 'newswire',
    windowStartMs: START_MS,
    subscriptions: BOTH,
  } as const;
  const rows = [...exportRows({ ...options, rows: 10, windows: 3 })];
  const parts = [3, 3, 4].flatMap((count, at) => rowsOf('newswire', START_MS + at * WINDOW_MS, count));
  assert.deepEqual(rows, parts);
});

test('rows only belong to subscriptions with the content type', () => {
  const subscriptions: SampleSubscription[] = [
    { id: 1, contentTypes: ['text'] },
    { id: 2, contentTypes: ['image'] },
  ];
  const ids = (exportName: ExportName) =>
    new Set(
      [...exportRows({ seed: 'x', exportName, windowStartMs: START_MS, rows: 50, subscriptions })].map(
        (row) => row.subscription_id,
      ),
    );
  assert.deepEqual([...ids('newswire')], [1]);
  assert.deepEqual([...ids('imagewire')], [2]);
});
