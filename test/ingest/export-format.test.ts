/** The forms of export files: NDJSON and CSV, their packings, the trailer, and what is damaged or cut off. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { constants, gzipSync, zstdCompressSync } from 'node:zlib';
import { FORMS, type Form } from '../../src/ingest/format/file-name.ts';
import { type Appliance, showLogOfFailures, startAppliance } from '../support/appliance.ts';
import {
  contentOf,
  csv,
  fileName,
  idOf,
  ndjson,
  newRow,
  nextWindowMs,
  packed,
  type Row,
} from '../support/export-files.ts';
import { loggedFiles } from '../support/installation-state.ts';
import type { LogLine } from '../support/program.ts';

let appliance: Appliance;
showLogOfFailures(() => appliance?.serving());

before(async () => {
  appliance = await startAppliance();
});
after(() => appliance?.stop());

/** Drops a file for a window of its own. */
function dropped(form: Form, content: string | Buffer): Promise<LogLine> {
  return appliance.dropped(fileName('newswire', nextWindowMs(), form), content);
}

/** Drops a file that must be applied, and compares how many rows it had. */
async function applied(form: Form, content: string | Buffer, rows: readonly Row[]): Promise<LogLine> {
  const line = await dropped(form, content);
  assert.equal(line.msg, 'file applied', JSON.stringify(line));
  assert.equal(line.rows, rows.length);
  for (const row of rows.slice(-20)) assert.ok(await appliance.detection(idOf(row)), idOf(row));
  return line;
}

/** Drops a file that must fail; @returns its reason file */
async function failed(form: Form, content: string | Buffer) {
  const line = await dropped(form, content);
  assert.equal(line.msg, 'file failed', JSON.stringify(line));
  const path = join(appliance.drop, String(line.destination));
  assert.ok(readFileSync(path).equals(Buffer.from(content)), 'the file is kept as it was');
  return JSON.parse(readFileSync(`${path}.reason.json`, 'utf8'));
}

const newRows = (count: number) => Array.from({ length: count }, () => newRow());

for (const form of FORMS) {
  test(`${form}: the rows of a file of this form are applied`, async () => {
    const rows = Array.from({ length: 1200 }, (_, at) =>
      newRow({
        article_headline: `"${at}", ü`,
        article_print: at % 2 === 0,
        source_language: at % 3 ? 'en' : null,
      }),
    );
    await applied(form, contentOf(form, rows), rows);
    const [first] = rows;
    assert.ok(first);
    const detection = await appliance.detection(idOf(first));
    assert.equal(detection?.article.headline, '"0", ü');
    assert.equal(detection?.article.print, true);
    assert.equal(detection?.source.language, null);
  });

  test(`${form}: an empty file finishes its window`, async () => {
    const line = await dropped(form, packed(form, ''));
    assert.equal(line.msg, 'file applied', JSON.stringify(line));
    assert.equal(line.rows, 0);
    const windows: { file: number; status: string }[] = JSON.parse(
      appliance.cli(['window', 'list', 'newswire', '--json']).stdout,
    );
    assert.equal(windows.find(({ file }) => file === line.number)?.status, 'done');
  });
}

test('an uncompressed file of no bytes is given time, for its writer may be about to begin', async () => {
  const row = newRow();
  const name = fileName('newswire', nextWindowMs());
  const path = join(appliance.drop, name);
  writeFileSync(path, '');
  // Long after it was quiet, and before it counts as meant.
  await new Promise((resolve) => setTimeout(resolve, 200));
  appendFileSync(path, ndjson([row]));
  const line = await appliance.dealtWith(name);
  assert.equal(line.msg, 'file applied');
  assert.ok(await appliance.detection(idOf(row)));
});

test('NDJSON: blank lines, CRLF, a byte order mark and a missing last newline do not matter', async () => {
  const rows = newRows(3);
  const [a, b, c] = rows.map((row) => JSON.stringify(row));
  await applied('ndjson', `\ufeff\r\n${a}\r\n\n  \n\t${b}  \n\n${c}`, rows);
});

test('NDJSON: what is no object fails the file, and its line is named', async () => {
  const row = JSON.stringify(newRow());
  for (const [wrong, why] of [
    ['[1]', ''],
    ['"text"', ''],
    ['7', ''],
    ['null', ''],
    ['{"a":', ' (not valid JSON: it ends too early)'],
    ['{a:1}', ' (not valid JSON at character 2)'],
    ['{}{}', ' (not valid JSON at character 3)'],
    ['\ufeff{}', ' (not valid JSON: unexpected "\ufeff")'],
    ['{}\u0000', ' (not valid JSON at character 3)'],
  ]) {
    const reason = await failed('ndjson', `${row}\n\n${wrong}\n${row}\n`);
    assert.equal(reason.errors_total, 1);
    assert.equal(reason.errors[0].line, 3);
    assert.equal(reason.errors[0].value, wrong);
    assert.equal(reason.errors[0].expected, `a JSON object${why}`);
  }
});

test('NDJSON: text that is not UTF-8 fails the file, and every such line is named', async () => {
  const row = Buffer.from(`${JSON.stringify(newRow({ article_headline: 'X' }))}\n`);
  const wrong = [
    [0xff],
    [0xc3],
    [0xe2, 0x82],
    [0xed, 0xa0, 0x80],
    [0xc0, 0xaf],
    [0xf5, 0x80, 0x80, 0x80],
  ].map((bytes) =>
    Buffer.concat([
      row.subarray(0, row.indexOf('"X"') + 1),
      Buffer.from(bytes),
      row.subarray(row.indexOf('"X"') + 2),
    ]),
  );
  const reason = await failed('ndjson', Buffer.concat([row, ...wrong, row]));
  assert.deepEqual(
    reason.errors.map((error: { line: number; expected: string }) => [error.line, error.expected]),
    wrong.map((_, at) => [at + 2, 'UTF-8 text']),
  );
  const utf16 = await failed('ndjson', Buffer.from(ndjson([newRow()]), 'utf16le'));
  assert.ok(utf16.errors_total > 0);
});

test('characters that straddle the chunks in which a file is read stay whole', async () => {
  // Lines of 4,093 bytes of three-byte characters: chunk borders fall on every place within one.
  const rows = Array.from({ length: 300 }, () => newRow({ article_headline: '€'.repeat(1300) }));
  await applied('ndjson', ndjson(rows), rows);
  for (const row of rows.filter((_, at) => at % 50 === 0)) {
    assert.equal((await appliance.detection(idOf(row)))?.article.headline, '€'.repeat(1300));
  }
});

/** A row whose line has so many bytes. */
function rowOfBytes(bytes: number): Row {
  const row = newRow({ padding: '' });
  return { ...row, padding: 'x'.repeat(bytes - JSON.stringify(row).length) };
}

test('a line has at most 1 MiB', async () => {
  const most = 1024 * 1024;
  const rows = [rowOfBytes(most), newRow(), rowOfBytes(most)];
  await applied('ndjson', ndjson(rows), rows);
  for (const form of ['ndjson', 'ndjson.gz', 'csv.zst'] as const) {
    const row = form === 'csv.zst' ? { ...newRow(), padding: 'x'.repeat(most) } : rowOfBytes(most + 1);
    const reason = await failed(form, contentOf(form, [newRow({ padding: '' }), row]));
    assert.deepEqual(reason.errors, [
      {
        line: form === 'csv.zst' ? 3 : 2,
        column: null,
        value: form === 'csv.zst' ? null : JSON.stringify(row).slice(0, 200),
        expected: 'a line of at most 1,048,576 bytes',
      },
    ]);
  }
});

test('where bad rows are left out, so is a line of NDJSON that is longer', async () => {
  const other = await startAppliance({ WIREWATCH_INGEST_QUIET_MS: '0', WIREWATCH_INGEST_BAD_ROWS: 'skip' });
  try {
    const good = [newRow(), newRow(), newRow()] as const;
    const long = [rowOfBytes(1024 * 1024 + 1), rowOfBytes(5_000_000)] as const;
    const name = fileName('newswire', nextWindowMs(), 'ndjson.gz');
    const rows = [good[0], long[0], good[1], long[1], long[0], good[2]];
    const line = await other.dropped(name, packed('ndjson.gz', ndjson(rows)));
    assert.deepEqual([line.msg, line.rows, line.bad_rows, line.created], ['file applied', 6, 3, 3]);
    for (const row of good) assert.ok(await other.detection(idOf(row)));
    const skipped = readFileSync(join(other.drop, `${line.destination}.skipped.ndjson`), 'utf8');
    const notes = skipped
      .trimEnd()
      .split('\n')
      .map((text) => JSON.parse(text));
    assert.deepEqual(
      notes.map((note) => note.line),
      [2, 4, 5],
    );
  } finally {
    await other.stop();
  }
});

test('one endless line fails its file, however little it is packed', async () => {
  const endless = Buffer.alloc(64 * 1024 * 1024, 'x');
  for (const [form, content] of [
    ['ndjson.gz', gzipSync(endless, { level: 1 })],
    ['csv.zst', zstdCompressSync(endless)],
  ] as const) {
    const reason = await failed(form, content);
    assert.equal(reason.errors_total, 1);
    assert.equal(reason.errors[0].expected, 'a line of at most 1,048,576 bytes');
  }
});

test('a file that unpacks to nothing but blank lines is read to its end', async () => {
  const blank = Buffer.alloc(32 * 1024 * 1024, '\n');
  const row = newRow();
  const content = Buffer.concat([gzipSync(blank, { level: 1 }), gzipSync(ndjson([row]))]);
  await applied('ndjson.gz', content, [row]);
  const lines = Buffer.concat([Buffer.from(csv([newRow()])), blank.subarray(0, 4 * 1024 * 1024)]);
  const line = await dropped('csv.zst', zstdCompressSync(lines));
  assert.deepEqual([line.msg, line.rows], ['file applied', 1]);
});

test('gzip: a file of several members is read to its end', async () => {
  const rows = newRows(5);
  const members = rows.map((row) => gzipSync(ndjson([row])));
  await applied('ndjson.gz', Buffer.concat(members), rows);
});

test('gzip: members that end where a chunk of the file ends are not the last', async () => {
  const chunk = 256 * 1024;
  const first = newRow();
  // Stored, not deflated: the member's length can be chosen.
  const stored = (text: string) => gzipSync(text, { level: constants.Z_NO_COMPRESSION });
  const text = ndjson([first]);
  const blanks = (count: number) => `${' '.repeat(count - 1)}\n`;
  let padding = chunk - stored(text).length;
  while (stored(text + blanks(padding)).length > chunk) padding -= 1;
  const member = stored(text + blanks(padding));
  assert.equal(member.length, chunk);
  const rows = [first, ...newRows(3)];
  await applied('ndjson.gz', Buffer.concat([member, gzipSync(ndjson(rows.slice(1)))]), rows);
});

test('gzip: zeros at the end do not matter; anything else there damages the file, also behind zeros', async () => {
  const rows = newRows(2);
  const content = gzipSync(ndjson(rows));
  const zeros = Buffer.alloc(600 * 1024);
  await applied('ndjson.gz', Buffer.concat([content, zeros]), rows);
  const more = gzipSync(ndjson(newRows(1)));
  for (const rest of [
    Buffer.from('garbage'),
    Buffer.concat([zeros, more]),
    Buffer.concat([Buffer.alloc(1), more]),
  ]) {
    const reason = await failed('ndjson.gz', Buffer.concat([gzipSync(ndjson(newRows(1))), rest]));
    assert.match(reason.reason, /^the gzip data is (damaged|followed by other data)/);
  }
});

test('zstd: a file of several frames is read to its end, wherever they end', async () => {
  const rows = newRows(3000);
  const frames = rows.map((row) => zstdCompressSync(ndjson([row])));
  // More than a chunk of the file: frames end within chunks and across their borders.
  const content = Buffer.concat(frames);
  assert.ok(content.length > 256 * 1024);
  await applied('ndjson.zst', content, rows);
  const large = newRows(2000).map((row) => ({ ...row, article_headline: crypto.randomUUID().repeat(20) }));
  const half = large.length / 2;
  const two = [large.slice(0, half), large.slice(half)].map((part) => zstdCompressSync(ndjson(part)));
  await applied('ndjson.zst', Buffer.concat(two), large);
});

test('zstd: what follows the last frame and is none damages the file', async () => {
  const content = Buffer.concat([zstdCompressSync(ndjson(newRows(1))), Buffer.from('garbage')]);
  const reason = await failed('ndjson.zst', content);
  assert.match(reason.reason, /^the zstd data is (damaged|truncated)/);
});

for (const form of ['ndjson.gz', 'ndjson.zst', 'csv.gz', 'csv.zst'] as const) {
  const packing = form.endsWith('.gz') ? 'gzip' : 'zstd';

  test(`${form}: a file that is cut off fails once it has not changed for a while`, async () => {
    const whole = contentOf(form, newRows(500));
    const lengths = [0, 1, 10, Math.floor(whole.length / 2), whole.length - 1];
    const reasons = await Promise.all(lengths.map((length) => failed(form, whole.subarray(0, length))));
    for (const { reason } of reasons) assert.equal(reason, `the ${packing} data is truncated`);
  });

  test(`${form}: a file that is cut off and grows on is read when it is whole`, async () => {
    const rows = newRows(500);
    const whole = contentOf(form, rows);
    const name = fileName('newswire', nextWindowMs(), form);
    const path = join(appliance.drop, name);
    writeFileSync(path, whole.subarray(0, 100));
    await new Promise((resolve) => setTimeout(resolve, 150));
    assert.ok(existsSync(path), 'it is still there');
    appendFileSync(path, whole.subarray(100));
    const line = await appliance.dealtWith(name);
    assert.deepEqual([line.msg, line.rows], ['file applied', rows.length]);
  });

  test(`${form}: a file that is damaged fails at once`, async () => {
    const rows = Buffer.from(form.startsWith('csv') ? csv(newRows(500)) : ndjson(newRows(500)));
    const checksummed = { params: { [constants.ZSTD_c_checksumFlag]: 1 } };
    const damaged = packing === 'gzip' ? gzipSync(rows) : zstdCompressSync(rows, checksummed);
    // Within the checksum: all of it unpacks well before the damage shows.
    const at = damaged.length - (packing === 'gzip' ? 8 : 1);
    damaged.writeUInt8(damaged.readUInt8(at) ^ 1, at);
    for (const content of [damaged, rows]) {
      const reason = await failed(form, content);
      assert.match(reason.reason, new RegExp(`^the ${packing} data is damaged: `));
    }
  });
}

const TRAILER = (rows: number) => `{"end_of_export":true,"rows":${rows}}`;

test('a trailer that is last and right is no row', async () => {
  const rows = newRows(3);
  await applied('ndjson', `${ndjson(rows)}${TRAILER(3)}\n`, rows);
  await applied('ndjson.gz', packed('ndjson.gz', `${ndjson(rows)}\n${TRAILER(3)}\n\n`), rows);
  await applied('ndjson', `${TRAILER(0)}\n`, []);
});

test('a trailer with a wrong number of rows fails the file', async () => {
  for (const rows of [0, 2, 4]) {
    const reason = await failed('ndjson', `${ndjson(newRows(3))}${TRAILER(rows)}\n`);
    assert.deepEqual(reason.errors, [
      { line: 4, column: 'rows', value: rows, expected: '3, the number of rows in the file' },
    ]);
  }
});

test('a trailer that is not last fails the file', async () => {
  for (const after of [ndjson(newRows(1)), `${TRAILER(3)}\n`, 'x\n']) {
    const reason = await failed('ndjson', `${ndjson(newRows(3))}${TRAILER(3)}\n\n${after}`);
    assert.equal(reason.errors[0].line, 6);
    assert.equal(reason.errors[0].expected, 'no lines after the end_of_export line');
  }
});

test('a trailer that is malformed fails the file', async () => {
  for (const trailer of [
    '{"end_of_export":true}',
    '{"end_of_export":false,"rows":1}',
    '{"end_of_export":true,"rows":"1"}',
    '{"end_of_export":true,"rows":-1}',
    '{"end_of_export":true,"rows":1.5}',
    '{"end_of_export":null}',
  ]) {
    const reason = await failed('ndjson', `${ndjson(newRows(1))}${trailer}\n`);
    assert.equal(reason.errors[0].line, 2);
    assert.match(reason.errors[0].expected, /end_of_export/);
  }
});

test('CSV: quoted fields hold commas, quotes and line breaks; a byte order mark and either line end are fine', async () => {
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

test('CSV: the last line may lack its end, blank lines are no rows, the header may be quoted', async () => {
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

test('CSV: numbers and booleans are read strictly, and the reason names the line on which the row begins', async () => {
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

test('CSV: a column twice fails the file, known or not', async () => {
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
    'a header line with the columns subscription_id (misspelled as "subscription"?), first_detected_at, last_scored_at, strength_score, article_id (misspelled as "artcle_id"?)',
  );
});

test('CSV: a header alone is an export with nothing to report', async () => {
  const [header = ''] = csv(newRows(1)).split('\r\n');
  await applied('csv', `${header}\r\n`, []);
});

test('CSV: a very wide header is judged quickly', async () => {
  const [header = '', record = ''] = csv(newRows(1)).split('\r\n');
  const columns = Array.from({ length: 120_000 }, (_, at) => `c${at}`);
  const line = await dropped(
    'csv',
    `${header},${columns.join(',')}\r\n${record},${columns.map(() => '').join(',')}\r\n`,
  );
  assert.deepEqual([line.msg, line.rows], ['file applied', 1]);
  assert.ok(Array.isArray(line.ignored_columns) && line.ignored_columns.length === 50);
});

test('CSV: quotes that do not fit fail the file, and the line is named', async () => {
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

test('CSV: a long file is read without complaints on the log', async () => {
  const rows = Array.from({ length: 8000 }, () => newRow({ article_headline: 'x'.repeat(300) }));
  const content = csv(rows);
  assert.ok(content.length > 10 * 256 * 1024);
  await applied('csv', content, rows);
  const strange = appliance.serving().log.filter(({ level }) => level === 'not a log line');
  assert.deepEqual(strange, []);
});

test('the record of a file knows its content by the hash of what lay in the folder', async () => {
  const content = contentOf('ndjson.zst', newRows(2));
  const name = fileName('newswire', nextWindowMs(), 'ndjson.zst');
  const line = await appliance.dropped(name, content);
  const archived = join(appliance.drop, String(line.destination));
  assert.equal(statSync(archived).size, content.length);
  const record = loggedFiles(appliance.data).find(({ number }) => number === line.number);
  assert.equal(record?.sha256, createHash('sha256').update(content).digest('hex'));
  assert.equal(record.destination, line.destination);
});
