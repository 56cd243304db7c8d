/** CSV files: quoting, headers, values and what fails the file. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { csvEntries } from '../../src/exports/csv.ts';
import type { RawEntry } from '../../src/exports/lines.ts';
import { formatMs } from '../../src/time.ts';
import { sharedAppliance } from '../support/appliance.ts';
import { csv, idOf, newRow } from '../support/export-files.ts';
import { exportTrials, newRows } from '../support/export-trials.ts';

const { dropped, applied, failed } = exportTrials(() => appliance);

const appliance = await sharedAppliance();

test('CSV: quoted fields can have commas, quotes and line breaks; a BOM and either line end are accepted', async () => {
  const headline = 'He said "no, never",\r\nand\nleft';
  for (const [mark, end] of [
    ['\ufeff', '\r\n'],
    ['', '\n'],
  ] as const) {
    const rows = [newRow({ article_headline: headline }), newRow({ article_headline: 'x' })];
    const text = csv(rows).replaceAll('\r\n', '\n').replaceAll('\n', end);
    await applied('csv', mark + text, rows);
    const [first] = rows;
    assert.ok(first);
    const shown = (await appliance.detection(idOf(first)))?.article.headline;
    assert.equal(shown, headline.replaceAll('\r\n', '\n').replaceAll('\n', end));
  }
});

test('CSV: the last newline is optional, blank lines are ignored, the header may be quoted', async () => {
  const rows = newRows(2);
  const [header = '', a = '', b = ''] = csv(rows).split('\r\n');
  const quoted = header
    .split(',')
    .map((name) => `"${name}"`)
    .join(',');
  await applied('csv', `${quoted}\r\n\r\n${a}\r\n\r\n${b}`, rows);
});

test('CSV: an empty field is null, quoted or not', async () => {
  const row = newRow({ article_headline: '', source_id: null, article_publisher_id: '', article_print: '' });
  const content = csv([row]).replace(/,,,,\r\n$/, ',"",,"",\r\n');
  assert.ok(content.endsWith(',"",,"",\r\n'));
  await applied('csv', content, [row]);
  const detection = await appliance.detection(idOf(row));
  assert.equal(detection?.article.headline, null);
  assert.equal(detection?.article.publisher, null);
});

test('CSV: numbers and booleans are parsed strictly, and errors name the first line of the row', async () => {
  const cases: readonly [string, unknown][] = [
    ['article_print', 'TRUE'],
    ['article_print', '1'],
    ['source_syndicated', 'yes'],
    ['article_id', '01'],
    ['article_id', '+1'],
    ['article_id', ' 1'],
    ['article_id', '1.0'],
    ['article_id', '1e3'],
    ['article_id', '0x10'],
    ['article_id', '9007199254740993'],
    ['strength_score', '.5'],
    ['strength_score', '5.'],
    ['strength_score', '1,5'],
    ['strength_score', 'NaN'],
    ['strength_score', 'Infinity'],
  ];
  for (const [column, value] of cases) {
    const good = newRow({ article_headline: 'a\r\nb', [column]: VALID[column] });
    const bad = newRow({ article_headline: 'c\n\rd', [column]: value });
    const reason = await failed('csv', csv([good, bad, good]));
    assert.equal(reason.errors_total, 1, JSON.stringify(reason));
    assert.equal(reason.errors[0].line, 4);
    assert.equal(reason.errors[0].column, column);
    assert.equal(String(reason.errors[0].value), value === '9007199254740993' ? '9007199254740992' : value);
  }
});

const VALID: Readonly<Record<string, unknown>> = {
  article_print: true,
  source_syndicated: false,
  article_id: 5,
  strength_score: 99.5,
};

test('CSV: scores may have an exponent, and minus zero is zero', async () => {
  for (const [text, score] of [
    ['5e1', 50],
    ['2.5E-1', 0.25],
    ['-0', 0],
  ] as const) {
    const row = newRow({ strength_score: text });
    await applied('csv', csv([row]), [row]);
    assert.equal((await appliance.detection(idOf(row)))?.strength.score, score);
  }
});

test('CSV: a record with another number of fields than the header fails the file', async () => {
  const [header = '', record = ''] = csv(newRows(1)).split('\r\n');
  const fields = header.split(',').length;
  for (const wrong of [`${record},`, record.slice(0, record.lastIndexOf(',')), 'x', ',']) {
    const reason = await failed('csv', `${header}\r\n${record}\r\n${wrong}\r\n${record}\r\n`);
    assert.deepEqual(reason.errors, [
      { line: 3, column: null, value: wrong, expected: `${fields} fields, as in the header` },
    ]);
  }
});

test('CSV: a repeated column fails the file, known or not', async () => {
  for (const twice of ['article_id', 'zeta', '']) {
    const [header = '', record = ''] = csv(newRows(1)).split('\r\n');
    const reason = await failed('csv', `${header},${twice},${twice}\r\n${record},1,1\r\n`);
    assert.deepEqual(reason.errors, [
      { line: 1, column: twice, value: twice, expected: 'every column only once' },
    ]);
  }
});

test('CSV: a header without a required column fails the file, also without rows', async () => {
  const [header = ''] = csv(newRows(1)).split('\r\n');
  const reason = await failed('csv', `${header.replace('article_id', 'article')}\r\n`);
  assert.equal(reason.errors[0].line, 1);
  assert.equal(
    reason.errors[0].expected,
    'a header line with the column article_id (misspelled as "article"?)',
  );
  const several = await failed('csv', 'subscription,source_internal_id,artcle_id\n1,2,3\n');
  assert.equal(
    several.errors[0].expected,
    'a header line with the columns subscription_id (misspelled as "subscription"?), article_id (misspelled as "artcle_id"?), first_detected_at, last_scored_at, strength_score',
  );
});

test('CSV: a header alone is a valid export without rows', async () => {
  const [header = ''] = csv(newRows(1)).split('\r\n');
  await applied('csv', `${header}\r\n`, []);
});

test('CSV: lines that end with CR alone fail the file', async () => {
  // No value is empty or occurs twice, and the last column is optional.
  const row = newRow({ last_scored_at: formatMs(Date.now()), article_headline: 'x' });
  const content = `${Object.keys(row).join(',')}\r${Object.values(row).join(',')}\r`;
  const reason = await failed('csv', content);
  const [{ value, ...error }] = reason.errors;
  assert.deepEqual(error, { line: 1, column: null, expected: 'lines that end with LF or CRLF' });
  assert.equal(reason.errors_total, 1);
  assert.ok(content.startsWith(value), value);
});

test('CSV: a very wide header is checked quickly', async () => {
  const [header = '', record = ''] = csv(newRows(1)).split('\r\n');
  const columns = Array.from({ length: 120_000 }, (_, at) => `c${at}`);
  const line = await dropped(
    'csv',
    `${header},${columns.join(',')}\r\n${record},${columns.map(() => '').join(',')}\r\n`,
  );
  assert.deepEqual([line.msg, line.rows], ['file applied', 1]);
  assert.ok(Array.isArray(line.ignored_columns) && line.ignored_columns.length === 50);
});

test('CSV: unbalanced quotes fail the file, and the line is named', async () => {
  const [header = '', record = ''] = csv(newRows(1)).split('\r\n');
  const many = `${record}\r\n`.repeat(3);
  for (const wrong of [`x"y"${record}`, `"${record}`, `"a"b${record}`]) {
    const reason = await failed('csv', `${header}\r\n${many}${wrong}\r\n${record}\r\n`);
    assert.equal(reason.errors_total, 1);
    assert.match(reason.errors[0].expected, /^CSV as in RFC 4180/);
    assert.ok(reason.errors[0].line >= 5, JSON.stringify(reason.errors));
  }
});

test('CSV: text that is not UTF-8 fails the file', async () => {
  const content = Buffer.from(csv([newRow({ article_headline: 'X' })]), 'latin1');
  content[content.indexOf('X')] = 0xfc;
  const reason = await failed('csv', content);
  assert.deepEqual([reason.errors[0].line, reason.errors[0].expected], [2, 'UTF-8 text']);
});

test('CSV: a long file is read without warnings in the log', async () => {
  const rows = Array.from({ length: 8000 }, () => newRow({ article_headline: 'x'.repeat(300) }));
  const content = csv(rows);
  assert.ok(content.length > 10 * 256 * 1024);
  await applied('csv', content, rows);
  const strange = appliance.serving().log.filter(({ level }) => level === 'not a log line');
  assert.deepEqual(strange, []);
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
