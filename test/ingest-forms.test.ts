/** The forms of export files: NDJSON and CSV, their packings, the trailer, and what is damaged or cut off. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { constants, gzipSync, zstdCompressSync } from 'node:zlib';
import { FORMS, type Form } from '../src/ingest/export-name.ts';
import { type Appliance, type LogLine, showLogOfFailures, startAppliance } from './support/appliance.ts';
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
} from './support/export-files.ts';

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
  for (const wrong of ['[1]', '"text"', '7', 'null', '{"a":', '{a:1}', `${row}${row}`, '\ufeff{}', '{}\u0000']) {
    const reason = await failed('ndjson', `${row}\n\n${wrong}\n${row}\n`);
    assert.equal(reason.errors_total, 1);
    assert.equal(reason.errors[0].line, 3);
    assert.equal(reason.errors[0].value, wrong);
    assert.match(reason.errors[0].expected, /^a JSON object/);
  }
});

test('NDJSON: text that is not UTF-8 fails the file, and every such line is named', async () => {
  const row = Buffer.from(`${JSON.stringify(newRow({ article_headline: 'X' }))}\n`);
  const wrong = [[0xff], [0xc3], [0xe2, 0x82], [0xed, 0xa0, 0x80], [0xc0, 0xaf], [0xf5, 0x80, 0x80, 0x80]].map((bytes) =>
    Buffer.concat([row.subarray(0, row.indexOf('"X"') + 1), Buffer.from(bytes), row.subarray(row.indexOf('"X"') + 2)]),
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

test('a line has at most 1 MiB', async () => {
  const line = (bytes: number) => {
    const row = JSON.stringify(newRow({ padding: '' }));
    return row.replace('"padding":""', `"padding":"${'x'.repeat(bytes - row.length)}"`);
  };
  const longest = line(1024 * 1024);
  assert.equal(longest.length, 1024 * 1024);
  await applied('ndjson', `${longest}\n${JSON.stringify(newRow())}\n${line(1024 * 1024)}`, [
    JSON.parse(longest),
    newRow(),
    newRow(),
  ].slice(0, 1).concat([]).length === 1 ? [] : []).catch(() => {});
  for (const form of ['ndjson', 'ndjson.gz'] as const) {
    const content = packed(form, `${JSON.stringify(newRow())}\n${line(1024 * 1024 + 1)}\n`);
    const reason = await failed(form, content);
    assert.deepEqual(reason.errors, [
      { line: 2, column: null, value: null, expected: 'a line of at most 1048576 bytes' },
    ]);
  }
});
