/** Sample files: byte-identical, complete or absent, in every form; their rows vary, and change over several windows. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { EXPORT_NAMES, type ExportName } from '../../../src/detection/content-type.ts';
import { FORMS, type Form } from '../../../src/exports/file-name.ts';
import { WINDOW_MS } from '../../../src/time.ts';
import { type SampleFile, writeExportFile } from '../../../src/tools/generate/files.ts';
import { exportRows, type RowsOptions, type SampleRow } from '../../../src/tools/generate/rows.ts';
import { idOf } from '../../support/export-files.ts';
import { BOTH, csvValues, rowsOf, START_MS } from '../../support/sample-rows.ts';
import { testFolder } from '../../support/test-folder.ts';
import { words } from '../../support/words.ts';

type Sample = SampleFile & RowsOptions;

function write(folder: string, exportName: ExportName, form: Form, more: Partial<Sample> = {}) {
  const window = { windowStartMs: START_MS, part: START_MS };
  const sample = { seed: '1', exportName, form, ...window, rows: 1500, subscriptions: BOTH, ...more };
  return writeExportFile(folder, sample, exportRows(sample));
}

function unpacked(file: string): string {
  const bytes = readFileSync(file);
  if (file.endsWith('.gz')) return gunzipSync(bytes).toString();
  return (file.endsWith('.zst') ? zstdDecompressSync(bytes) : bytes).toString();
}

const ndjson = (text: string) => text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));

const asText = (row: SampleRow) => {
  const texts = Object.entries(row).map(([column, value]) => [column, value === null ? '' : String(value)]);
  return Object.fromEntries(texts);
};

test('files are byte-identical across runs in every form, and unpack to the same rows', async () => {
  const [first, second] = [testFolder(), testFolder()];
  for (const exportName of EXPORT_NAMES) {
    const expected = rowsOf(exportName, START_MS, 1500);
    for (const form of FORMS) {
      const { file, ...written } = await write(first, exportName, form);
      const again = await write(second, exportName, form);
      assert.equal(path.basename(file), `${exportName}.20261121T1010Z.${form}`);
      assert.deepEqual(written, { export: exportName, window_start: '2026-11-21T10:10:00Z', rows: 1500 });
      assert.ok(readFileSync(file).equals(readFileSync(again.file)), form);
      const text = unpacked(file);
      if (form.startsWith('ndjson')) assert.deepEqual(ndjson(text), expected);
      else assert.deepEqual(csvValues(text), expected.map(asText));
    }
  }
  assert.ok(readdirSync(first).every((name) => !name.endsWith('.part')));
});

test('a trailer counts the rows; a file without rows has only the trailer', async () => {
  const folder = testFolder();
  const long = await write(folder, 'newswire', 'ndjson', { trailer: true });
  assert.deepEqual(ndjson(unpacked(long.file)).at(-1), { end_of_export: true, rows: 1500 });
  const none = await write(folder, 'imagewire', 'ndjson', { trailer: true, rows: 0 });
  assert.equal(unpacked(none.file), '{"end_of_export":true,"rows":0}\n');
  assert.equal(unpacked((await write(folder, 'imagewire', 'ndjson.zst', { rows: 0 })).file), '');
});

test('a backfill has its label in its name and no window', async () => {
  const written = await write(testFolder(), 'newswire', 'ndjson', { part: 'autumn', windows: 3, rows: 10 });
  assert.equal(path.basename(written.file), 'newswire.backfill-autumn.ndjson');
  assert.deepEqual([written.window_start, ndjson(unpacked(written.file)).length], [null, 10]);
});

test('an existing file is not overwritten, and an unwritable folder is named', async () => {
  const folder = testFolder();
  const file = path.join(folder, 'newswire.20261121T1010Z.ndjson');
  writeFileSync(file, 'mine');
  for (const place of [folder, path.join(file, 'below')])
    await assert.rejects(write(place, 'newswire', 'ndjson'), (error: Error) => {
      assert.ok(error.message.includes(file), error.message);
      return 'code' in error && error.code === 'failed';
    });
  assert.equal(readFileSync(file, 'utf8'), 'mine');
  assert.deepEqual(readdirSync(folder), [path.basename(file)]);
});

test('until a file is complete its name ends in .part, and an error leaves nothing', async () => {
  const folder = testFolder();
  let during: string[] = [];
  function* content() {
    for (let row = 0; row < 100_000; row += 1) yield { row };
    during = readdirSync(folder);
    throw new Error('no more rows');
  }
  const sample = { exportName: 'newswire', part: START_MS, form: 'ndjson' } as const;
  await assert.rejects(writeExportFile(folder, sample, content()), /no more rows/);
  assert.deepEqual(during, ['newswire.20261121T1010Z.ndjson.part']);
  assert.deepEqual(readdirSync(folder), []);
});

/** No row is without them. */
const REQUIRED = words(
  'subscription_id source_internal_id article_id first_detected_at last_scored_at strength_score',
);
const THRESHOLDS = { newswire: [0, 25, 50, 75, 95, 100], imagewire: [0, 30, 60, 99] };

for (const exportName of EXPORT_NAMES) {
  test(`${exportName} rows of a window are distinct detections, first seen and scored in or before it`, () => {
    const rows = rowsOf(exportName);
    assert.equal(new Set(rows.map((row) => idOf({ ...row }))).size, rows.length);
    const [start, end] = ['2026-11-21T10:10:00Z', '2026-11-21T10:20:00Z'];
    for (const { first_detected_at, last_scored_at, exported_at } of rows) {
      assert.ok(last_scored_at >= start && last_scored_at < end, last_scored_at);
      assert.ok(first_detected_at <= last_scored_at);
      assert.ok(exported_at === null || (exported_at >= end && exported_at < '2026-11-21T10:21:00Z'));
    }
    const share = rows.filter((row) => row.first_detected_at < start).length / rows.length;
    assert.ok(share > 0.06 && share < 0.14, `${share} were first detected before`);
  });

  test(`${exportName} rows vary: optional values are sometimes missing, and every band and threshold occurs`, () => {
    const rows = rowsOf(exportName);
    for (const column of Object.keys(rows[0] ?? {})) {
      const nulls = rows.filter((row) => Reflect.get(row, column) === null).length;
      if (REQUIRED.includes(column)) assert.equal(nulls, 0, column);
      else assert.ok(nulls > 0 && nulls < rows.length, `${column} is null in ${nulls} rows`);
    }
    const scores = rows.map((row) => row.strength_score);
    for (const [at, from] of THRESHOLDS[exportName].entries()) {
      assert.ok(scores.includes(from), `${from}`);
      const to = THRESHOLDS[exportName][at + 1];
      const isBetween = (score: number) => score > from && (to === undefined || score < to);
      assert.ok(to === undefined || scores.some(isBetween), `above ${from}`);
    }
    const headlines = rows.map((row) => row.article_headline ?? '').join('');
    for (const odd of ['"', ',', 'ü', '\u{1F4F7}', '橋', 'ا', '\n', '\t', '\\', '\u200f'])
      assert.ok(headlines.includes(odd), `no headline has ${JSON.stringify(odd)}`);
  });
}

test('the same seed gives the same rows, however many; another seed or export gives others', () => {
  assert.deepEqual(rowsOf('imagewire', START_MS, 100), rowsOf('imagewire').slice(0, 100));
  const keys = (name: ExportName, seed: string) =>
    new Set(rowsOf(name, START_MS, 3000, seed).map((row) => row.source_internal_id));
  assert.ok(keys('newswire', '1').isDisjointFrom(keys('newswire', '2')));
  assert.ok(keys('newswire', '1').isDisjointFrom(keys('imagewire', '1')));
});

test('history spreads its rows over its windows and agrees with their files', () => {
  const window = { seed: '1', exportName: 'newswire', windowStartMs: START_MS, subscriptions: BOTH } as const;
  const parts = [3, 3, 4].flatMap((count, at) => rowsOf('newswire', START_MS + at * WINDOW_MS, count));
  assert.deepEqual([...exportRows({ ...window, rows: 10, windows: 3 })], parts);
});

test('detections change in several ways over a few windows of one run', () => {
  const seen = new Map<string, SampleRow>();
  const changes = new Map<string, number>();
  for (let window = 0; window < 6; window += 1)
    for (const row of rowsOf('newswire', START_MS + window * WINDOW_MS)) {
      const before = seen.get(idOf({ ...row }));
      seen.set(idOf({ ...row }), row);
      if (!before) continue;
      const { last_scored_at, exported_at } = row;
      assert.ok(before.last_scored_at < last_scored_at);
      // A change of them alone makes no version.
      const old = new Map<string, unknown>(Object.entries({ ...before, last_scored_at, exported_at }));
      const changed = Object.entries(row).flatMap(([name, value]) => (old.get(name) === value ? [] : [name]));
      for (const column of changed.length === 0 ? ['none'] : changed)
        changes.set(column, (changes.get(column) ?? 0) + 1);
    }
  for (const column of words('none strength_score article_headline article_published_at'))
    assert.ok((changes.get(column) ?? 0) > 5, `${column}: ${changes.get(column)}`);
});
