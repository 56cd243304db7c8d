/** Sample files: byte-identical, complete or absent, in every form. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { EXPORT_NAMES, type ExportName } from '../../../src/detection/content-type.ts';
import { FORMS, type Form } from '../../../src/exports/file-name.ts';
import { Refused } from '../../../src/refused.ts';
import { type SampleFile, type WriteOptions, writeExportFile } from '../../../src/tools/generate/files.ts';
import { exportRows, type RowsOptions, type SampleRow } from '../../../src/tools/generate/rows.ts';
import { BOTH, COLUMNS, csvValues, folderOf, rowsOf, START_MS } from '../../support/sample-rows.ts';

type Sample = SampleFile & RowsOptions;

function sampleOf(exportName: ExportName, form: Form, more: Partial<Sample> = {}): Sample {
  const window = { windowStartMs: START_MS, part: START_MS };
  return { seed: '1', exportName, form, ...window, rows: 1500, subscriptions: BOTH, ...more };
}

function write(folder: string, sample: Sample, options: WriteOptions = {}) {
  return writeExportFile(folder, sample, exportRows(sample), options);
}

function unpacked(file: string): string {
  const bytes = readFileSync(file);
  if (file.endsWith('.gz')) return gunzipSync(bytes).toString();
  return (file.endsWith('.zst') ? zstdDecompressSync(bytes) : bytes).toString();
}

function ndjson(text: string): Record<string, unknown>[] {
  return text === ''
    ? []
    : text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line));
}

test('files are byte-identical across runs in every form, and unpack to the same rows', async (t) => {
  const [first, second] = [folderOf(t), folderOf(t)];
  for (const exportName of EXPORT_NAMES) {
    const expected = rowsOf(exportName, START_MS, 1500);
    for (const form of FORMS) {
      const a = await write(first, sampleOf(exportName, form));
      const b = await write(second, sampleOf(exportName, form));
      assert.equal(path.basename(a.file), `${exportName}.20261121T1010Z.${form}`);
      assert.deepEqual(a, {
        file: a.file,
        export: exportName,
        window_start: '2026-11-21T10:10:00Z',
        rows: 1500,
      });
      assert.ok(readFileSync(a.file).equals(readFileSync(b.file)), form);
      const text = unpacked(a.file);
      if (form.startsWith('ndjson')) assert.deepEqual(ndjson(text), expected);
      else assert.deepEqual(csvValues(text), expected.map(asText));
    }
  }
  assert.ok(readdirSync(first).every((name) => !name.endsWith('.part')));
});

function asText(row: SampleRow): Record<string, string> {
  return Object.fromEntries(
    Object.entries(row).map(([column, value]) => [column, value === null ? '' : String(value)]),
  );
}

test('the header of a CSV file names the columns in the order of the format', async (t) => {
  const folder = folderOf(t);
  for (const exportName of EXPORT_NAMES) {
    const { file } = await write(folder, sampleOf(exportName, 'csv', { rows: 0 }));
    const header = readFileSync(file, 'utf8').trimEnd().split(',');
    assert.deepEqual(header.toSorted(), COLUMNS[exportName].toSorted());
    assert.deepEqual(header, Object.keys(rowsOf(exportName, START_MS, 1)[0] ?? {}));
  }
});

test('a trailer counts the rows; a file without rows has only the trailer', async (t) => {
  const folder = folderOf(t);
  const long = await write(folder, sampleOf('newswire', 'ndjson', { trailer: true }));
  assert.deepEqual(ndjson(unpacked(long.file)).at(-1), { end_of_export: true, rows: 1500 });
  const none = await write(folder, sampleOf('imagewire', 'ndjson', { trailer: true, rows: 0 }));
  assert.equal(unpacked(none.file), '{"end_of_export":true,"rows":0}\n');
  const empty = await write(folder, sampleOf('imagewire', 'ndjson.zst', { rows: 0 }));
  assert.equal(unpacked(empty.file), '');
});

test('a backfill has its label in its name and no window', async (t) => {
  const backfill = { part: 'autumn-2026', windows: 3, rows: 10 };
  const written = await write(folderOf(t), sampleOf('newswire', 'ndjson', backfill));
  assert.equal(path.basename(written.file), 'newswire.backfill-autumn-2026.ndjson');
  assert.equal(written.window_start, null);
  assert.equal(ndjson(unpacked(written.file)).length, 10);
});

test('an existing file is not overwritten', async (t) => {
  const folder = folderOf(t);
  const file = path.join(folder, 'newswire.20261121T1010Z.ndjson');
  writeFileSync(file, 'mine');
  await assert.rejects(write(folder, sampleOf('newswire', 'ndjson')), (error: unknown) => {
    return error instanceof Refused && error.code === 'failed' && error.message.includes(file);
  });
  assert.equal(readFileSync(file, 'utf8'), 'mine');
  assert.deepEqual(readdirSync(folder), [path.basename(file)]);
});

test('an incomplete file has a name that ends in .part, and a stop leaves nothing', async (t) => {
  const folder = folderOf(t);
  const stop = new AbortController();
  let during: string[] = [];
  const onRows = (rows: number) => {
    if (rows < 20_000 || stop.signal.aborted) return;
    during = readdirSync(folder);
    stop.abort();
  };
  const writing = write(folder, sampleOf('newswire', 'ndjson', { rows: 10_000_000 }), {
    onRows,
    signal: stop.signal,
  });
  await assert.rejects(writing, (error: unknown) => error instanceof Refused && error.code === 'failed');
  assert.equal(during.length, 1);
  assert.match(during[0] ?? '', /^newswire\.20261121T1010Z\.ndjson\..*\.part$/);
  assert.deepEqual(readdirSync(folder), []);
});

test('an unwritable folder is refused by name', async (t) => {
  const file = path.join(folderOf(t), 'file');
  writeFileSync(file, '');
  await assert.rejects(write(path.join(file, 'below'), sampleOf('newswire', 'csv')), (error: unknown) => {
    return error instanceof Refused && error.code === 'failed' && error.message.includes(file);
  });
});

test('a large file is written in pieces, with progress', async (t) => {
  const folder = folderOf(t);
  const rows = 60_000;
  const stops: number[] = [];
  await write(folder, sampleOf('imagewire', 'ndjson', { rows }), {
    onRows: (count) => stops.push(count),
  });
  assert.equal(stops.at(-1), rows);
  assert.ok(stops.length > 20, 'the file must be written in several pieces');
  assert.deepEqual(
    stops,
    stops.toSorted((a, b) => a - b),
  );
});
