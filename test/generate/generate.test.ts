/** Sample export files: reproducible, in the format of the drop folder, and alive over several windows. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { Command, CommanderError } from 'commander';
import { parse } from 'csv-parse/sync';
import { getDomain } from 'tldts';
import { type GenerateOptions, plannedFiles, register } from '../../src/cli/generate.ts';
import { EXPORT_NAMES, type ExportName } from '../../src/detection/content-type.ts';
import { type SampleFile, writeExportFile } from '../../src/generate/files.ts';
import { publishers, SITES } from '../../src/generate/publishers.ts';
import { drawScore, laterScore } from '../../src/generate/reports.ts';
import { exportRows, historyRows, type SampleRow, type SampleSubscription } from '../../src/generate/rows.ts';
import { timestamp } from '../../src/generate/timestamps.ts';
import { FORMS, type Form } from '../../src/ingest/format/file-name.ts';
import { Refused } from '../../src/refused.ts';
import { formatSeconds } from '../../src/time.ts';
import { seededPrng } from '../support/seeded-prng.ts';

const WINDOW_MS = 600_000;
const START_MS = Date.parse('2026-11-21T10:10:00Z');
const BOTH: SampleSubscription[] = [7001, 7002].map((id) => ({ id, contentTypes: ['text', 'image'] }));

const COMMON = [
  'subscription_id',
  'source_internal_id',
  'article_id',
  'first_detected_at',
  'last_scored_at',
  'strength_score',
  'first_detected_estimated',
  'exported_at',
  'source_id',
  'source_published_at',
];
const ARTICLE = [
  'article_url',
  'article_domain',
  'article_published_at',
  'article_headline',
  'article_publisher_id',
  'article_publisher_name',
];
/** The format's table, written down here once more, so that a slip in the generator's own list shows. */
const COLUMNS: Record<ExportName, string[]> = {
  newswire: [
    ...COMMON,
    'source_language',
    'source_syndicated',
    'source_sentences',
    'strength_matched_sentences',
    'strength_article_sentences',
    ...ARTICLE,
    'article_print',
  ],
  imagewire: [...COMMON, 'source_image_url', 'source_origin_url', ...ARTICLE, 'article_image_url'],
};

function rowsOf(exportName: ExportName, windowStartMs = START_MS, rows = 3000, seed = '1'): SampleRow[] {
  return [...exportRows({ seed, exportName, windowStartMs, rows, subscriptions: BOTH })];
}

function folderOf(t: TestContext): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'wirewatch-generate-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function sampleOf(exportName: ExportName, form: Form, more: Partial<SampleFile> = {}): SampleFile {
  return { seed: '1', exportName, form, windowStartMs: START_MS, rows: 1500, subscriptions: BOTH, ...more };
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

function keyOf(row: SampleRow): string {
  return `${row.subscription_id}.${row.source_internal_id}.${row.article_id}`;
}

function shared<T>(one: Set<T>, other: Set<T>): T[] {
  return [...one].filter((value) => other.has(value));
}

function wirewatch(...args: string[]) {
  const cwd = path.join(import.meta.dirname, '..', '..');
  return spawnSync(process.execPath, ['dist/main.cjs', ...args], { cwd, encoding: 'utf8' });
}

// The format

/** What the format's table says of each column; returns what is wrong with a value that is not null. */
const CHECKS: Record<string, (value: unknown, row: SampleRow, exportName: ExportName) => boolean> = {
  subscription_id: (value) => isInteger(value, 1),
  source_internal_id: (value) => isInteger(value, 0),
  article_id: (value) => isInteger(value, 0),
  first_detected_at: isTimestamp,
  last_scored_at: isTimestamp,
  strength_score: (value, _row, exportName) =>
    typeof value === 'number' && value >= 0 && value <= (exportName === 'newswire' ? 100 : 99),
  first_detected_estimated: isBoolean,
  exported_at: isTimestamp,
  source_id: (value) => isString(value) && [...value].length <= 200,
  source_published_at: isTimestamp,
  source_language: (value) => isString(value) && Intl.getCanonicalLocales(value)[0] === value,
  source_syndicated: isBoolean,
  source_sentences: (value) => isInteger(value, 0),
  source_image_url: isAddress,
  source_origin_url: isAddress,
  strength_matched_sentences: (value) => isInteger(value, 0),
  strength_article_sentences: (value) => isInteger(value, 0),
  article_url: isAddress,
  article_domain: isString,
  article_published_at: isTimestamp,
  article_headline: isString,
  article_publisher_id: (value) => isInteger(value, 1),
  article_publisher_name: (value) => isString(value) && value.trim() !== '',
  article_print: isBoolean,
  article_image_url: isAddress,
};
const REQUIRED = COMMON.slice(0, 6);

function isInteger(value: unknown, least: number): boolean {
  return (
    typeof value === 'number' && Number.isInteger(value) && value >= least && value <= 999_999_999_999_999
  );
}

function isBoolean(value: unknown): boolean {
  return typeof value === 'boolean';
}

function isString(value: unknown): value is string {
  return (
    typeof value === 'string' && value !== '' && value.isWellFormed() && Buffer.byteLength(value) <= 4096
  );
}

function isTimestamp(value: unknown): boolean {
  if (typeof value !== 'string' || !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(value)) return false;
  return new Date(value).toISOString() === value.replace('Z', '.000Z');
}

function isAddress(value: unknown): boolean {
  if (typeof value !== 'string' || !/^https?:\/\/[^\s/?#\\]+/.test(value) || /[\s\p{Cc}]/u.test(value))
    return false;
  return Buffer.byteLength(value) <= 8192 && URL.canParse(value);
}

for (const exportName of EXPORT_NAMES) {
  test(`${exportName} rows keep to the format's columns, types and ranges`, () => {
    for (const row of rowsOf(exportName)) {
      assert.deepEqual(Object.keys(row).toSorted(), COLUMNS[exportName].toSorted());
      for (const [column, value] of Object.entries(row)) {
        if (value === null) assert.ok(!REQUIRED.includes(column), `${column} is required`);
        else assert.ok(CHECKS[column]?.(value, row, exportName), `${column}: ${JSON.stringify(value)}`);
      }
      assert.ok([7001, 7002].includes(row.subscription_id));
    }
  });

  test(`${exportName} rows of a window are different detections, seen and scored in it or before`, () => {
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

  test(`${exportName} rows are varied: what may be unknown is so at times, and every band and threshold occurs`, () => {
    const rows = rowsOf(exportName);
    for (const column of COLUMNS[exportName].filter((name) => !REQUIRED.includes(name))) {
      const unknown = rows.filter((row) =>
        Object.entries(row).some(([name, value]) => name === column && value === null),
      );
      assert.ok(
        unknown.length > 0 && unknown.length < rows.length,
        `${column} is null in ${unknown.length} rows`,
      );
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

test('one wire story is found in several articles, and says the same of itself each time', () => {
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

test('some articles carry two items', () => {
  const articles = Map.groupBy(rowsOf('imagewire'), (row) => row.article_id);
  assert.ok([...articles.values()].some((rows) => rows.length === 2));
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

// Reproducible, and each window on its own

test('the same seed gives the same rows, another seed, export or window others', () => {
  assert.deepEqual(rowsOf('newswire'), rowsOf('newswire'));
  const keys = (seed: string) => new Set(rowsOf('newswire', START_MS, 3000, seed).map(keyOf));
  assert.deepEqual(shared(keys('1'), keys('2')), []);
  const sources = (name: ExportName) => new Set(rowsOf(name).map((row) => row.source_internal_id));
  assert.deepEqual(shared(sources('newswire'), sources('imagewire')), []);
});

test('rows do not depend on how many there are: a smaller file is the beginning of a larger one', () => {
  assert.deepEqual(rowsOf('imagewire', START_MS, 100), rowsOf('imagewire', START_MS, 3000).slice(0, 100));
});

test('a window written on its own repeats what the windows before it reported', () => {
  // Two days of windows, so that every way back ends within them.
  const earlier = new Map<string, SampleRow>();
  for (let window = 288; window > 0; window -= 1) {
    for (const row of rowsOf('newswire', START_MS - window * WINDOW_MS, 200)) {
      if (!earlier.has(keyOf(row))) earlier.set(keyOf(row), row);
    }
  }
  const repeated = rowsOf('newswire', START_MS, 200).filter(
    (row) => row.first_detected_at < '2026-11-21T10:10:00Z',
  );
  assert.ok(repeated.length >= 10);
  const changed = new Set<string>();
  for (const row of repeated) {
    const before = earlier.get(keyOf(row));
    assert.ok(before, `${keyOf(row)} was never reported before`);
    assert.ok(before.last_scored_at < row.last_scored_at);
    assert.equal(before.source_id, row.source_id);
    assert.equal(before.article_url, row.article_url);
    changed.add(changedColumns(before, row).join());
  }
  assert.ok(changed.has(''), 'none was scored again with the same outcome');
  assert.ok(
    [...changed].some((columns) => columns.includes('strength_score')),
    'no score has changed',
  );
});

test('detections change in several ways over a few windows of one run', () => {
  const seen = new Map<string, SampleRow>();
  const changes = new Map<string, number>();
  for (let window = 0; window < 6; window += 1) {
    for (const row of rowsOf('newswire', START_MS + window * WINDOW_MS)) {
      const before = seen.get(keyOf(row));
      seen.set(keyOf(row), row);
      if (!before) continue;
      const columns = changedColumns(before, row);
      for (const column of columns.length === 0 ? ['none'] : columns)
        changes.set(column, (changes.get(column) ?? 0) + 1);
    }
  }
  for (const column of [
    'none',
    'strength_score',
    'article_headline',
    'article_publisher_id',
    'article_published_at',
    'first_detected_at',
  ]) {
    assert.ok((changes.get(column) ?? 0) > 5, `${column}: ${changes.get(column)}`);
  }
});

/** The columns that would make another version of the detection. */
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
  const rows = [...historyRows({ ...options, rows: 10, windows: 3 })];
  const parts = [3, 3, 4].flatMap((count, at) => rowsOf('newswire', START_MS + at * WINDOW_MS, count));
  assert.deepEqual(rows, parts);
});

test('rows are only for subscriptions that have the content type', () => {
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

test('a later score is another one each time, and in range', () => {
  const prng = seededPrng('x', 'scores');
  for (const contentType of ['text', 'image'] as const) {
    for (let draw = 0; draw < 2000; draw += 1) {
      const first = drawScore(prng, contentType);
      const drift = prng.unit();
      const scores = [0, 1, 2, 3].map((phase) => laterScore(first, drift, phase, contentType));
      assert.equal(new Set(scores).size, 4);
      for (const score of scores) assert.ok(score >= 0 && score <= (contentType === 'text' ? 100 : 99));
    }
  }
});

test('timestamps are those of the clock', () => {
  for (const seconds of [0, 59, 60, START_MS / 1000, START_MS / 1000 + 3599, 951_782_399]) {
    assert.equal(timestamp(seconds), formatSeconds(seconds));
  }
});

// Files

test('files are byte-identical from run to run in every form, and unpack to the same rows', async (t) => {
  const [first, second] = [folderOf(t), folderOf(t)];
  for (const exportName of EXPORT_NAMES) {
    const expected = rowsOf(exportName, START_MS, 1500);
    for (const form of FORMS) {
      const a = await writeExportFile(first, sampleOf(exportName, form));
      const b = await writeExportFile(second, sampleOf(exportName, form));
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

/** As a strict reader of RFC 4180 sees it: the header's columns, and each field's text. */
function csvValues(text: string): Record<string, string>[] {
  assert.ok(text.endsWith('\r\n'));
  return parse(text, { columns: true, record_delimiter: '\r\n' });
}

function asText(row: SampleRow): Record<string, string> {
  return Object.fromEntries(
    Object.entries(row).map(([column, value]) => [column, value === null ? '' : String(value)]),
  );
}

test('the header of a CSV file names the columns in the order of the format', async (t) => {
  const folder = folderOf(t);
  for (const exportName of EXPORT_NAMES) {
    const { file } = await writeExportFile(folder, sampleOf(exportName, 'csv', { rows: 0 }));
    const header = readFileSync(file, 'utf8').trimEnd().split(',');
    assert.deepEqual(header.toSorted(), COLUMNS[exportName].toSorted());
    assert.deepEqual(header, Object.keys(rowsOf(exportName, START_MS, 1)[0] ?? {}));
  }
});

test('a trailer counts the rows; without rows a file is empty but for it', async (t) => {
  const folder = folderOf(t);
  const long = await writeExportFile(folder, sampleOf('newswire', 'ndjson', { trailer: true }));
  assert.deepEqual(ndjson(unpacked(long.file)).at(-1), { end_of_export: true, rows: 1500 });
  const none = await writeExportFile(folder, sampleOf('imagewire', 'ndjson', { trailer: true, rows: 0 }));
  assert.equal(unpacked(none.file), '{"end_of_export":true,"rows":0}\n');
  const empty = await writeExportFile(folder, sampleOf('imagewire', 'ndjson.zst', { rows: 0 }));
  assert.equal(unpacked(empty.file), '');
});

test('a backfill has its label in its name and no window', async (t) => {
  const backfill = { label: 'autumn-2026', windows: 3 };
  const written = await writeExportFile(folderOf(t), sampleOf('newswire', 'ndjson', { backfill, rows: 10 }));
  assert.equal(path.basename(written.file), 'newswire.backfill-autumn-2026.ndjson');
  assert.equal(written.window_start, null);
  assert.equal(ndjson(unpacked(written.file)).length, 10);
});

test('a file that is there is not overwritten', async (t) => {
  const folder = folderOf(t);
  const file = path.join(folder, 'newswire.20261121T1010Z.ndjson');
  writeFileSync(file, 'mine');
  await assert.rejects(writeExportFile(folder, sampleOf('newswire', 'ndjson')), (error: unknown) => {
    return error instanceof Refused && error.code === 'failed' && error.message.includes(file);
  });
  assert.equal(readFileSync(file, 'utf8'), 'mine');
  assert.deepEqual(readdirSync(folder), [path.basename(file)]);
});

test('until it is whole a file has a name that ends in .part, and a stopped one leaves nothing', async (t) => {
  const folder = folderOf(t);
  const stop = new AbortController();
  let during: string[] = [];
  const onRows = (rows: number) => {
    if (rows < 20_000 || stop.signal.aborted) return;
    during = readdirSync(folder);
    stop.abort();
  };
  const writing = writeExportFile(folder, sampleOf('newswire', 'ndjson', { rows: 10_000_000 }), {
    onRows,
    signal: stop.signal,
  });
  await assert.rejects(writing, (error: unknown) => error instanceof Refused && error.code === 'failed');
  assert.equal(during.length, 1);
  assert.match(during[0] ?? '', /^newswire\.20261121T1010Z\.ndjson\..*\.part$/);
  assert.deepEqual(readdirSync(folder), []);
});

test('a folder that cannot be written to is refused with its name', async (t) => {
  const file = path.join(folderOf(t), 'file');
  writeFileSync(file, '');
  await assert.rejects(
    writeExportFile(path.join(file, 'below'), sampleOf('newswire', 'csv')),
    (error: unknown) => {
      return error instanceof Refused && error.code === 'failed' && error.message.includes(file);
    },
  );
});

test('a large file is made in pieces, and tells how far it is', async (t) => {
  const folder = folderOf(t);
  const rows = 60_000;
  const stops: number[] = [];
  await writeExportFile(folder, sampleOf('imagewire', 'ndjson', { rows }), {
    onRows: (count) => stops.push(count),
  });
  assert.equal(stops.at(-1), rows);
  assert.ok(stops.length > 20, 'it came in pieces');
  assert.deepEqual(
    stops,
    stops.toSorted((a, b) => a - b),
  );
});

// The command

const OPTIONS: GenerateOptions = {
  out: 'drop',
  rows: 10,
  seed: '1',
  export: 'both',
  form: 'ndjson.gz',
  subscriptions: BOTH,
};

test('without a start the last window has just ended', () => {
  const nowMs = START_MS + 12 * 60_000;
  const files = plannedFiles({ ...OPTIONS, windows: 3 }, nowMs);
  assert.deepEqual(
    files.map(({ exportName, windowStartMs }) => [exportName, windowStartMs - START_MS]),
    [-2, -1, 0].flatMap((at) => [
      ['newswire', at * WINDOW_MS],
      ['imagewire', at * WINDOW_MS],
    ]),
  );
  assert.equal(plannedFiles(OPTIONS, START_MS + WINDOW_MS)[0]?.windowStartMs, START_MS);
  assert.equal(plannedFiles(OPTIONS, START_MS + WINDOW_MS - 1)[0]?.windowStartMs, START_MS - WINDOW_MS);
});

test('options that do not go together are wrong usage', () => {
  const text: SampleSubscription[] = [{ id: 7001, contentTypes: ['text'] }];
  for (const wrong of [
    { form: 'csv', trailer: true },
    { export: 'imagewire', subscriptions: text },
    { start: Date.parse('1999-12-31T00:00:00Z') },
    { start: Date.parse('2099-12-31T23:50:00Z'), windows: 2 },
  ] satisfies Partial<GenerateOptions>[]) {
    assert.throws(
      () => plannedFiles({ ...OPTIONS, ...wrong }, START_MS),
      (error: unknown) => error instanceof Refused && error.code === 'usage',
      JSON.stringify(wrong),
    );
  }
  assert.equal(plannedFiles({ ...OPTIONS, subscriptions: text }, START_MS).length, 2);
});

test('the command writes what it says, and refuses to do it twice', (t) => {
  const out = path.join(folderOf(t), 'new', 'drop');
  const args = [
    'generate',
    '--out',
    out,
    '--start',
    '20261121T1010Z',
    '--windows',
    '2',
    '--rows',
    '20',
    '--form',
    'csv',
    '--subscriptions',
    '7001:text,7001:image',
    '--json',
  ];
  const first = wirewatch(...args);
  assert.equal(first.status, 0, first.stderr);
  const written: unknown = JSON.parse(first.stdout);
  const windows = [
    ['20261121T1010Z', '2026-11-21T10:10:00Z'],
    ['20261121T1020Z', '2026-11-21T10:20:00Z'],
  ];
  const expected = windows.flatMap(([name, window_start]) =>
    EXPORT_NAMES.map((exportName) => ({
      file: path.join(out, `${exportName}.${name}.csv`),
      export: exportName,
      window_start,
      rows: 20,
    })),
  );
  assert.deepEqual(written, expected);
  assert.deepEqual(readdirSync(out).toSorted(), expected.map(({ file }) => path.basename(file)).toSorted());
  assert.ok(
    csvValues(readFileSync(path.join(out, 'imagewire.20261121T1020Z.csv'), 'utf8')).every(
      (row) => row.subscription_id === '7001',
    ),
  );
  const again = wirewatch(...args);
  assert.equal(again.status, 1);
  assert.match(again.stderr, /newswire\.20261121T1010Z\.csv already exists/);
  assert.equal(again.stdout, '');
});

test('option values that cannot be are wrong usage', () => {
  for (const wrong of [
    ['--start', '2026-11-21T10:11:00Z'],
    ['--start', '2026-02-30T00:00:00Z'],
    ['--start', ''],
    ['--windows', '0'],
    ['--rows', '-1'],
    ['--rows', '1e3'],
    ['--seed', ''],
    ['--export', 'text'],
    ['--form', 'json'],
    ['--subscriptions', ''],
    ['--subscriptions', '7001,'],
    ['--subscriptions', '0'],
    ['--subscriptions', '7001:video'],
    ['--subscriptions', '7001:text:image'],
    ['--backfill', 'Autumn'],
    ['--backfill', ''],
  ]) {
    const program = new Command('wirewatch').exitOverride().configureOutput({ writeErr() {} });
    register(program, async () => program);
    assert.throws(
      () => program.parse(['generate', '--out', 'never', ...wrong], { from: 'user' }),
      (error: unknown) => error instanceof CommanderError && error.exitCode === 1,
      wrong.join(' '),
    );
  }
  const ended = wirewatch('generate', '--rows', '1');
  assert.equal(ended.status, 2, 'there is no --out');
});
