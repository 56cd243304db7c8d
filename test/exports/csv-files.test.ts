/** CSV files: quoting, headers, values and what fails the file. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { csvEntries } from '../../src/exports/csv.ts';
import type { RawEntry } from '../../src/exports/lines.ts';
import { csv, newRow, newRows, type Row } from '../support/export-files.ts';
import { applied, failed, readContent } from '../support/read-export.ts';

const VALID: Row = { article_print: true, source_syndicated: false, article_id: 5, strength_score: 99.5 };
/** The header of these files, and one record with a quoted field at neither end. */
const [HEADER = '', RECORD = ''] = csv([newRow()]).split('\r\n');

test('CSV: quoted fields can have commas, quotes and line breaks; a BOM and either line end are accepted', async () => {
  const headline = 'He said "no, never",\r\nand\nleft';
  for (const [mark, end] of [
    ['\ufeff', '\r\n'],
    ['', '\n'],
  ] as const) {
    const rows = [newRow({ article_headline: headline }), newRow({ article_headline: 'x' })];
    const ended = (text: string) => text.replaceAll('\r\n', '\n').replaceAll('\n', end);
    const [first] = await applied('csv', mark + ended(csv(rows)), rows);
    assert.equal(first?.article.headline, ended(headline));
  }
});

test('CSV: the last newline is optional, blank lines are ignored, the header may be quoted, and stand alone', async () => {
  const rows = newRows(2);
  const [header = '', a = '', b = ''] = csv(rows).split('\r\n');
  await applied('csv', `${header.replaceAll(/\w+/g, '"$&"')}\r\n\r\n${a}\r\n\r\n${b}`, rows);
  await applied('csv', `${header}\r\n`, []);
});

test('CSV: an empty field is null, quoted or not', async () => {
  const row = newRow({ article_headline: '', source_id: null, article_publisher_id: '', article_print: '' });
  const content = csv([row]).replace(/,,,,\r\n$/, ',"",,"",\r\n');
  assert.ok(content.endsWith(',"",,"",\r\n'));
  const [match] = await applied('csv', content, [row]);
  assert.deepEqual([match?.article.headline, match?.article.publisher], [null, null]);
});

test('CSV: numbers and booleans are parsed strictly, and errors name the first line of the row', async () => {
  for (const [column, values] of Object.entries({
    article_print: ['TRUE', '1'],
    source_syndicated: ['yes'],
    article_id: ['01', '+1', ' 1', '1.0', '1e3', '0x10', '9007199254740993'],
    strength_score: ['.5', '5.', '1,5', 'NaN', 'Infinity'],
  }))
    for (const value of values) {
      const good = newRow({ article_headline: 'a\r\nb', [column]: VALID[column] });
      const bad = newRow({ article_headline: 'c\n\rd', [column]: value });
      const { errors } = await failed('csv', csv([good, bad, good]));
      const found = errors.map((error) => [error.line, error.column, String(error.value)]);
      assert.deepEqual(found, [[4, column, value.replace(/93$/, '92')]]);
    }
});

test('CSV: scores may have an exponent, and minus zero is zero', async () => {
  for (const [text, score] of Object.entries({ '5e1': 50, '2.5E-1': 0.25, '-0': 0 })) {
    const row = newRow({ strength_score: text });
    const [match] = await applied('csv', csv([row]), [row]);
    assert.equal(match?.strength.score, score);
  }
});

const FIELDS = HEADER.split(',').length;
const WITHOUT = HEADER.replace('article_id', 'article');

const WRONG_RECORDS = [`${RECORD},`, RECORD.slice(0, RECORD.lastIndexOf(',')), 'x', ','];
const COLUMNS = ['article_id', 'zeta', ''];

/** What fails a file, at its line. `values`: what the error of each content shows. */
const FAILING: readonly [
  what: string,
  contents: readonly string[],
  line: number,
  expected: string | RegExp,
  values?: readonly string[],
][] = [
  [
    'a record with another number of fields than the header',
    WRONG_RECORDS.map((wrong) => `${HEADER}\r\n${RECORD}\r\n${wrong}\r\n${RECORD}\r\n`),
    3,
    `${FIELDS} fields, as in the header`,
    WRONG_RECORDS,
  ],
  [
    'a repeated column, known or not',
    COLUMNS.map((twice) => `${HEADER},${twice},${twice}\r\n${RECORD},1,1\r\n`),
    1,
    'every column only once',
    COLUMNS,
  ],
  [
    'a column of the other export',
    [`${HEADER},source_origin_url\r\n${RECORD},\r\n`],
    1,
    'no column source_origin_url in newswire files',
  ],
  [
    'a header without a required column, also without rows',
    [`${WITHOUT}\r\n`, `${WITHOUT}\r\n${RECORD}\r\n`],
    1,
    'a header line with the column article_id (misspelled as "article"?)',
  ],
  [
    'a header without several required columns',
    ['subscription,source_internal_id,artcle_id\n1,2,3\n'],
    1,
    'a header line with the columns subscription_id (misspelled as "subscription"?), article_id (misspelled as "artcle_id"?), first_detected_at, last_scored_at, strength_score',
  ],
  [
    'a row in the place of the header, with a value twice',
    ['7001,9001,501,2026-11-29T06:01:00Z,2026-11-29T06:01:00Z,5\n'],
    1,
    /^a header line with the columns subscription_id, .*strength_score$/,
  ],
  [
    'lines that end with CR alone',
    [`${HEADER},article_headline\r${RECORD},x\r`],
    1,
    'lines that end with LF or CRLF',
  ],
  [
    'unbalanced quotes',
    [`x"y"${RECORD}`, `"a"b${RECORD}`].map(
      (wrong) => `${HEADER}\r\n${`${RECORD}\r\n`.repeat(3)}${wrong}\r\n${RECORD}\r\n`,
    ),
    5,
    /^CSV as in RFC 4180/,
  ],
];

for (const [what, contents, line, expected, values] of FAILING)
  test(`CSV: ${what}: the file fails, and the line is named`, async () => {
    for (const [at, content] of contents.entries()) {
      const { errors, errors_total } = await failed('csv', content);
      assert.deepEqual([errors_total, errors[0]?.line], [1, line], content);
      if (values !== undefined) assert.equal(errors[0]?.value, values[at]);
      if (typeof expected === 'string') assert.equal(errors[0]?.expected, expected);
      else assert.match(errors[0]?.expected ?? '', expected);
    }
  });

test('CSV: a quote that is never closed, and text that is not UTF-8, fail the file', async () => {
  const many = `${RECORD}\r\n`.repeat(3);
  const { errors } = await failed('csv', `${HEADER}\r\n${many}"${RECORD}\r\n${RECORD}\r\n`);
  assert.match(errors[0]?.expected ?? '', /^CSV as in RFC 4180/);
  assert.ok((errors[0]?.line ?? 0) >= 5, 'where the quote begins, or later');
  const content = Buffer.from(csv([newRow({ article_headline: 'X' })]), 'latin1');
  content[content.indexOf('X')] = 0xfc;
  const [error] = (await failed('csv', content)).errors;
  assert.deepEqual([error?.line, error?.expected], [2, 'UTF-8 text']);
});

test('CSV: a very wide header is checked quickly, and few of its columns are named', async () => {
  const columns = Array.from({ length: 120_000 }, (_, at) => `c${at}`).join();
  const { result } = await readContent('csv', `${HEADER},${columns}\r\n${RECORD},${','.repeat(119_999)}\r\n`);
  assert.deepEqual([result.kind, result.counts.rows], ['read', 1]);
  assert.equal(result.counts.ignored_columns.length, 50);
  const [error] = (await failed('csv', columns)).errors;
  assert.match(error?.expected ?? '', /^a header line with the columns subscription_id, /);
});

test('CSV: a long file is read without warnings', async () => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => void warnings.push(warning);
  process.on('warning', onWarning);
  const rows = newRows(8000, { article_headline: 'x'.repeat(300) });
  await applied('csv', csv(rows), rows);
  // Warnings are emitted in a later turn.
  await new Promise((resolve) => setImmediate(resolve));
  process.off('warning', onWarning);
  assert.deepEqual(warnings, []);
});

test('CSV: neither long rows nor many columns fill the memory', async () => {
  const required = Object.keys(newRow());
  const values = csv([newRow()]).split('\r\n')[1];
  const sizes = async (columns: readonly string[], rest: string, rows: number) => {
    async function* chunks() {
      yield Buffer.from(`${[...required, ...columns].join()}\n`);
      for (let row = 0; row < rows; row += 1) yield Buffer.from(`${values}${rest}\n`);
    }
    const groups: RawEntry[][] = [];
    for await (const group of csvEntries(chunks(), 'newswire', null)) groups.push(group);
    assert.equal(groups.flat().length, rows);
    const entries = groups.flat().map((entry) => (entry.kind === 'row' ? Object.keys(entry.raw).length : 0));
    return { rows: Math.max(...groups.map((group) => group.length)), columns: Math.max(...entries) };
  };
  const long = await sizes(['text'], `,${'x'.repeat(200_000)}`, 20);
  assert.ok(long.rows <= 2, `${long.rows} rows at once`);
  const names = Array.from({ length: 1000 }, (_, index) => `extra_${index}`);
  const wide = await sizes(names, ','.repeat(names.length), 3);
  assert.equal(wide.columns, required.length + 50);
});
