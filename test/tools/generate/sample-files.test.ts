/** Sample files: byte-identical, complete or absent, in every form. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { EXPORT_NAMES, type ExportName } from '../../../src/detection/content-type.ts';
import { FORMS, type Form } from '../../../src/exports/file-name.ts';
import { type SampleFile, writeExportFile } from '../../../src/tools/generate/files.ts';
import { exportRows, type RowsOptions, type SampleRow } from '../../../src/tools/generate/rows.ts';
import { BOTH, csvValues, rowsOf, START_MS } from '../../support/sample-rows.ts';
import { testFolder } from '../../support/test-folder.ts';

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
  const empty = await write(folder, 'imagewire', 'ndjson.zst', { rows: 0 });
  assert.equal(unpacked(empty.file), '');
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
