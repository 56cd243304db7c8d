/** Exports of another shape: the same rows, as five systems would write them, end up as the same bytes. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import fc from 'fast-check';
import { droppedName, formOf, nameParser, numberedName } from '../../src/exports/file-name.ts';
import type { Mapping } from '../../src/exports/mapping.ts';
import { nameFormat, timeFormat } from '../../src/exports/time-format.ts';
import { formatMs } from '../../src/time.ts';
import { localClock } from '../../src/zone-days.ts';
import { ndjson, newRow, type Row } from '../support/export-files.ts';
import { forAll } from '../support/for-all.ts';
import { readContent } from '../support/read-export.ts';
import { rowsOf } from '../support/sample-rows.ts';

const OWN: Mapping = {
  columns: {},
  values: {},
  constants: {},
  csv: {},
  time_format: '',
  time_zone: '',
  decimal: '.',
};
/** An hour after clocks in Berlin went back: earlier times of its rows are in summer time. */
const START = '2026-10-25T02:00:00Z';
const TWICE = ['2026-10-25T00:00:00Z', START] as const;

async function linesOf(content: string | Buffer, form: 'ndjson' | 'csv', mapping: Mapping | null) {
  const options = { mapping, earliest: '2000-01-01T00:00:00Z', windowMs: Date.parse(START) };
  const { result, batches } = await readContent(form, content, options);
  return { result, bytes: Buffer.concat(batches.map(({ lines }) => lines)) };
}

interface Shape {
  readonly mapping: Mapping;
  readonly header?: boolean;
  readonly encode?: (text: string) => Buffer;
  readonly field?: (column: string, value: unknown) => string | undefined;
}

/** The rows as another system writes them, in the names of the mapping. */
function written(
  rows: readonly Row[],
  { mapping, header = true, encode = (text) => Buffer.from(text), field }: Shape,
): Buffer {
  const { delimiter = ',', quote = '"' } = mapping.csv;
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))].filter(
    (name) => !(name in mapping.constants),
  );
  const quoted = (text: string) =>
    [delimiter, quote, '\n'].some((one) => text.includes(one))
      ? quote + text.replaceAll(quote, quote + quote) + quote
      : text;
  const line = (texts: readonly string[]) => `${texts.map(quoted).join(delimiter)}\r\n`;
  const textOf = (row: Row) => (name: string) =>
    row[name] == null ? '' : (field?.(name, row[name]) ?? String(row[name]));
  const names = line(columns.map((name) => mapping.columns[name] ?? name));
  const text = rows.map((row) => line(columns.map(textOf(row)))).join('');
  return encode((header ? names : '') + text);
}

const decode = (byte: number) => new TextDecoder('windows-1252').decode(new Uint8Array([byte]));
const WINDOWS_1252 = new Map(Array.from({ length: 256 }, (_, byte) => [decode(byte), byte]));

const isTime = (value: unknown): value is string =>
  typeof value === 'string' && /^\d{4}-\d\d-\d\dT.*Z$/.test(value);

function inBerlin(time: string): string {
  const parts = new Intl.DateTimeFormat('en-GB', {
    timeZone: 'Europe/Berlin',
    ...{ year: 'numeric', month: '2-digit', day: '2-digit' },
    ...{ hour: '2-digit', minute: '2-digit', second: '2-digit' },
  }).formatToParts(new Date(time));
  const of = (type: string) => parts.find((part) => part.type === type)?.value ?? '';
  return `${of('day')}.${of('month')}.${of('year')} ${of('hour')}:${of('minute')}:${of('second')}`;
}

function generated(): Row[] {
  return rowsOf('newswire', Date.parse(START), 400)
    .filter((row) =>
      Object.values(row).every((value) => !isTime(value) || value < TWICE[0] || value >= TWICE[1]),
    )
    .filter((row) => [...JSON.stringify(row)].every((character) => WINDOWS_1252.has(character)))
    .map((row) => ({ ...row, exported_at: '2026-10-25T02:10:00Z' }));
}

const THEIRS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  article_print: { true: 'ja', false: 'nein' },
  subscription_id: { 7001: 'ACME', 7002: 'BOTE' },
};

test('generated rows in five shapes are read as the same rows in our own form', async () => {
  const rows = generated().map((row, index) =>
    // Before and after the clocks went back.
    index % 2 === 0 ? row : { ...row, first_detected_at: '2026-10-24T20:00:00Z' },
  );
  assert.ok(rows.length > 50, `${rows.length}`);
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const own = await linesOf(ndjson(rows), 'ndjson', null);
  assert.equal(own.result.kind, 'read');
  const shapes: Record<string, Shape> = {
    'semicolons and Windows-1252': {
      mapping: { ...OWN, csv: { delimiter: ';', encoding: 'windows-1252' } },
      encode: (text) => Buffer.from([...text].map((character) => WINDOWS_1252.get(character) ?? 0)),
    },
    'decimal commas, single quotes between spaces': {
      mapping: { ...OWN, decimal: ',', csv: { delimiter: ' ', quote: "'" } },
      field: (name, value) => (name === 'strength_score' ? String(value).replace('.', ',') : undefined),
    },
    'German dates with a change of summer time': {
      mapping: { ...OWN, time_format: 'DD.MM.YYYY HH:mm:ss', time_zone: 'Europe/Berlin' },
      field: (_, value) => (isTime(value) ? inBerlin(value) : undefined),
    },
    'no header, UTF-16': {
      mapping: { ...OWN, csv: { header: columns, encoding: 'utf-16le' } },
      header: false,
      encode: (text) => Buffer.from(`\ufeff${text}`, 'utf16le'),
    },
    'other names and values': {
      mapping: {
        ...OWN,
        columns: Object.fromEntries(columns.map((name, index) => [name, `Spalte ${index}`])),
        values: { article_print: { ja: true, nein: false }, subscription_id: { ACME: 7001, BOTE: 7002 } },
      },
      field: (name, value) => THEIRS[name]?.[String(value)],
    },
  };
  for (const [name, shape] of Object.entries(shapes)) {
    const read = await linesOf(written(rows, shape), 'csv', shape.mapping);
    assert.equal(read.result.kind, 'read', `${name}: ${JSON.stringify(read.result)}`);
    assert.equal(read.result.counts.rows, rows.length);
    assert.ok(read.bytes.equals(own.bytes), name);
  }
});

test('errors name column and value of the file, and ours', async () => {
  const mapping: Mapping = {
    ...OWN,
    columns: { strength_score: 'Anteil', first_detected_at: 'gefunden', last_scored_at: 'bewertet' },
    values: { article_print: { J: true, N: false } },
    constants: { subscription_id: 7001, source_internal_id: 1, article_id: 2 },
    time_format: 'DD.MM.YYYY HH:mm:ss',
    time_zone: 'Europe/Berlin',
    decimal: ',',
  };
  const { result } = await linesOf(
    'Anteil,gefunden,bewertet,article_print\n62.5,25.10.2026 02:30:00,20.11.1999 10:00:00,X\n"140,5",29.03.2026 02:30:00,20.11.2036 10:00:00,J\n',
    'csv',
    mapping,
  );
  assert.ok(result.kind === 'bad');
  const found = result.errors.map(({ column_in_file, column, value, value_in_file }) =>
    [column_in_file, column, value, value_in_file].filter((one) => one !== undefined),
  );
  assert.deepEqual(found, [
    ['Anteil', 'strength_score', '62.5'],
    ['gefunden', 'first_detected_at', '25.10.2026 02:30:00'],
    ['article_print', 'X'],
    ['Anteil', 'strength_score', 140.5, '140,5'],
    ['gefunden', 'first_detected_at', '29.03.2026 02:30:00'],
    ['bewertet', 'last_scored_at', '2036-11-20T09:00:00Z', '20.11.2036 10:00:00'],
  ]);
  const expected = result.errors.map((error) => error.expected).join('\n');
  const named = /a decimal comma[\s\S]*Europe\/Berlin show once, not twice[\s\S]*"J", "N"[\s\S]*do not skip/;
  assert.match(expected, named);
});

test('errors name a column as the row does; one that it lacks, as the settings do', async () => {
  const columns = { strength_score: 'score', source_id: 'article_id', article_id: 'artikel' };
  const rows = [{ strength_score: 'high' }, { score: 'high' }, { article_id: 'a' }];
  const { result } = await linesOf(ndjson(rows), 'ndjson', { ...OWN, columns });
  assert.ok(result.kind === 'bad');
  const namesOf = (ours: string) =>
    result.errors.flatMap(({ column, column_in_file = null }) => (column === ours ? [column_in_file] : []));
  assert.deepEqual(namesOf('strength_score'), [null, 'score', 'score']);
  assert.deepEqual(namesOf('article_id'), ['artikel', 'artikel', 'artikel']);
  assert.ok(result.errors.every(({ value_in_file }) => value_in_file === undefined));
});

test('NDJSON is mapped, too, and rows in our own form are read beside others', async () => {
  const mapping: Mapping = {
    ...OWN,
    columns: { article_id: 'artikel', source_id: 'article_id' },
    constants: { source_language: 'de' },
    time_zone: '+01:00',
  };
  const own = {
    subscription_id: 7001,
    source_internal_id: 1,
    first_detected_at: '2026-10-25T01:30:00Z',
    last_scored_at: '2026-10-25T01:30:00Z',
    exported_at: '2026-10-25T01:30:00Z',
    strength_score: 1,
  };
  const { article_id: _, ...row } = { ...own, article_id: 2, first_detected_at: '2026-10-25 02:30' };
  const theirs = { ...row, artikel: 2, article_id: 'urn:2' };
  const wanted = { ...own, article_id: 2, source_id: 'urn:2', source_language: 'de' };
  const read = await linesOf(ndjson([theirs]), 'ndjson', mapping);
  assert.equal(read.result.kind, 'read', JSON.stringify(read.result));
  assert.ok(read.bytes.equals((await linesOf(ndjson([wanted]), 'ndjson', null)).bytes));
  const { source_id: __, ...plain } = wanted;
  const both = await linesOf(ndjson([plain]), 'ndjson', { ...mapping, columns: { article_id: 'artikel' } });
  assert.ok(both.bytes.equals((await linesOf(ndjson([plain]), 'ndjson', null)).bytes));
});

test('bytes that the encoding does not know fail the file, at their line', async () => {
  const content = Buffer.concat([Buffer.from('article_id\n1\n'), Buffer.from([0x82]), Buffer.from('\n2\n')]);
  const header = { subscription_id: 1, source_internal_id: 1, strength_score: 1 };
  const times = { first_detected_at: START, last_scored_at: START };
  const mapping = { ...OWN, csv: { encoding: 'shift_jis' }, constants: { ...header, ...times } };
  const { result } = await linesOf(content, 'csv', mapping);
  assert.ok(result.kind === 'bad');
  assert.deepEqual([result.errors[0]?.line, result.errors[0]?.expected], [3, 'shift_jis text']);
});

test('times by letters', () => {
  const read = (format: string, text: string) => {
    const time = timeFormat(format)?.parse(text);
    return time == null ? time : `${formatMs(time.ms)}${time.isLocal ? ' local' : ''}`;
  };
  assert.equal(read('DD.MM.YYYY HH:mm:ss', '20.11.2026 11:12:08'), '2026-11-20T11:12:08Z local');
  assert.equal(read('M/D/YY h:mm A', '1/2/26 12:05 am'), '2026-01-02T00:05:00Z local');
  assert.equal(read('YYYYMMDD[T]HHmmss.SSSZ', '20260102T030405.999+0130'), '2026-01-02T01:34:05Z');
  for (const offset of ['-01', '-0100', '-01:00'])
    assert.equal(read('YYYY-MM-DD HH:mm:ssZ', `2026-01-02 03:04:05${offset}`), '2026-01-02T04:04:05Z');
  for (const [format, text] of [
    ['DD.MM.YYYY', '31.02.2026'],
    ['DD.MM.YYYY', '1.02.2026'],
    ['DD.MM.YYYY hh:mm A', '01.02.2026 13:00 PM'],
    ['DD.MM.YYYY HH', '01.02.2026 24'],
    ['YYYY.MM.DD', '2026-01-02'],
  ] as const)
    assert.equal(read(format, text), null, `${format}: ${text}`);
  for (const wrong of ['YYYY YY', 'hh:mm', 'HH A']) assert.equal(timeFormat(wrong), null, wrong);
  assert.equal(nameFormat('YYYY_{YYYY}')?.parse('YYYY_2026')?.ms, undefined);
});

test('a local time is the instant that shows it, skipped or twice', () => {
  const zones = ['Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Pacific/Apia', '+05:30', 'UTC'];
  for (const zone of zones) {
    const clock = localClock(zone);
    const offset = new Intl.DateTimeFormat('en', { timeZone: zone, timeZoneName: 'longOffset' });
    const localOf = (ms: number) => {
      const name = offset.formatToParts(ms).find(({ type }) => type === 'timeZoneName')?.value ?? '';
      const [, sign = '+', hours = 0, minutes = 0] = /([+-])(\d\d):(\d\d)/.exec(name) ?? [];
      return ms + (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000;
    };
    const times = fc.date({ min: new Date('1990-01-01'), max: new Date('2040-01-01'), noInvalidDate: true });
    forAll(200, times, (at) => {
      const ms = Math.floor(at.getTime() / 60_000) * 60_000;
      const local = localOf(ms);
      const near = [-60, -30, 30, 60].map((minutes) => ms + minutes * 60_000);
      const isTwice = near.some((other) => localOf(other) === local);
      assert.equal(clock(local), isTwice ? 'twice' : ms, `${zone} ${at.toISOString()}`);
    });
  }
  const berlin = localClock('Europe/Berlin');
  // Both sides of each change are known then.
  for (const day of ['2026-10-24', '2026-10-26', '2026-03-28', '2026-03-30'])
    berlin(Date.parse(`${day}T12:00:00Z`));
  for (const minute of ['02:00', '02:30', '02:59']) {
    assert.equal(berlin(Date.parse(`2026-10-25T${minute}:00Z`)), 'twice', minute);
    assert.equal(berlin(Date.parse(`2026-03-29T${minute}:00Z`)), 'skipped', minute);
  }
  assert.equal(berlin(Date.parse('2026-10-25T03:00:00Z')), Date.parse('2026-10-25T02:00:00Z'));
  assert.equal(berlin(Date.parse('2026-10-25T01:59:00Z')), Date.parse('2026-10-24T23:59:00Z'));
  assert.equal(localClock('Pacific/Apia')(Date.parse('2011-12-30T12:00:00Z')), 'skipped');
  assert.equal(localClock('+01:00')(Date.parse('2026-10-25T02:30:00Z')), Date.parse('2026-10-25T01:30:00Z'));
});

test('names by the setting file_name, beside our own', () => {
  const parse = nameParser({
    newswire: { file_name: 'treffer_{YYYYMMDD}_{HHmm}.txt.gz', time_zone: 'Europe/Berlin' },
    imagewire: { file_name: 'bilder.{YYYYMMDD}.{HHmm}.csv', time_zone: '' },
  });
  const startOf = (name: string) => {
    const parsed = parse(name);
    if (parsed.kind !== 'export') return parsed.kind === 'refused' ? parsed.reason : parsed.kind;
    const { file } = parsed;
    return file.window_start === null
      ? file.label
      : [file.export, formatMs(file.window_start), formOf(file.name)];
  };
  assert.deepEqual(startOf('treffer_20261120_1110.txt.gz'), ['newswire', '2026-11-20T10:10:00Z', 'csv.gz']);
  assert.deepEqual(startOf('newswire.20261120T1010Z.ndjson'), ['newswire', '2026-11-20T10:10:00Z', 'ndjson']);
  assert.equal(startOf('newswire.backfill-x.csv'), 'x');
  assert.equal(startOf('treffer_20261120_1110.txt.gz.part'), 'unfinished');
  assert.match(String(startOf('treffer_20261120_1111.txt.gz')), /not the start of a window/);
  assert.match(String(startOf('treffer_20261025_0210.txt.gz')), /show 2026-10-25 02:10 twice/);
  assert.match(String(startOf('treffer_20260329_0210.txt.gz')), /skip 2026-03-29 02:10/);
  assert.match(
    String(startOf('treffer_20261320_1110.txt.gz')),
    /must begin with "newswire\.".*; or as file_name in the settings: treffer_\{YYYYMMDD\}_\{HHmm\}\.txt\.gz or bilder/,
  );
  for (const name of [
    'treffer_20261120_1110.txt.gz',
    'bilder.20261120.1010.csv',
    'newswire.20261120T1010Z.csv',
  ])
    for (const number of ['12', '12.1']) assert.equal(droppedName(numberedName(name, number), parse), name);
  for (const name of ['bilder.csv', 'newswire.backfill-x.csv.skipped.ndjson'])
    assert.equal(droppedName(name, parse), null);
});

test('an object in place of a value is a bad value, whatever its members and its depth', async () => {
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
  const values = { article_print: { J: true, '': false } };
  for (const value of ['{"toString":1}', '["J"]', '{}', deep])
    for (const [column, expected] of [
      ['article_print', 'true or false'],
      ['strength_score', 'a number from 0 to 100'],
    ] as const) {
      const row = ndjson([
        newRow({ first_detected_at: START, last_scored_at: START, [column]: '@' }),
      ]).replace('"@"', value);
      const { result } = await linesOf(row, 'ndjson', { ...OWN, values });
      assert.ok(result.kind === 'bad', JSON.stringify(result));
      const found = result.errors.map((error) => [error.column, error.expected]);
      assert.deepEqual(found, [[column, expected]], value.slice(0, 20));
    }
});

test('columns that differ in every row fill no memory', () => {
  const script = `
    const { columnReader } = await import(${JSON.stringify(import.meta.resolve('../../src/exports/mapping.ts'))});
    const reader = columnReader(${JSON.stringify({ ...OWN, decimal: ',' })});
    for (let row = 0; row < 1_000_000; row += 1) reader.row({ ['column_' + row]: 1 });`;
  const node = ['--max-old-space-size=64', '--input-type=module', '--eval', script];
  const { status, stderr } = spawnSync(process.execPath, node, { encoding: 'utf8' });
  assert.equal(status, 0, stderr.slice(0, 1000));
});

test('the notes of a skipped row have what the file has, also where a mapping cannot read it', async () => {
  const mapping = { ...OWN, values: { subscription_id: { ACME: 7001 } } };
  const rows = ndjson([newRow({ subscription_id: 'ACME' }), newRow({ subscription_id: 'XX' })]);
  const { result } = await readContent('ndjson', rows, { mapping, bad_rows: 'skip' });
  const { row, errors } = JSON.parse(result.skipped);
  assert.equal(row.subscription_id, 'XX');
  assert.match(errors[0].expected, /^one of the values in the settings/);
});
