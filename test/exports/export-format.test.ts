/** The forms of export files: NDJSON lines, the trailer, files without rows, and compressed ones, truncated or damaged. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { constants, gzipSync, zstdCompressSync } from 'node:zlib';
import { FORMS, type Form } from '../../src/exports/file-name.ts';
import { DAY_MS, formatMs } from '../../src/time.ts';
import { contentOf, csv, ndjson, newRow, newRows, packed, type Row } from '../support/export-files.ts';
import { applied, failed, readContent } from '../support/read-export.ts';
import { words } from '../support/words.ts';

for (const form of FORMS)
  test(`${form}: the rows of a file of this form are read; it may have none`, async () => {
    const rows = Array.from({ length: 1200 }, (_, at) =>
      newRow({
        article_headline: `"${at}", ü`,
        article_print: at % 2 === 0,
        source_language: at % 3 ? 'en' : null,
      }),
    );
    const content = contentOf(form, rows);
    const matches = await applied(form, content, rows);
    for (const [at, { article, source }] of matches.entries())
      assert.deepEqual(
        [article.headline, article.print, source.language],
        [`"${at}", ü`, at % 2 === 0, at % 3 ? 'en' : null],
      );
    const { counts } = (await readContent(form, content)).result;
    assert.equal(counts.sha256, createHash('sha256').update(content).digest('hex'));
    await applied(form, packed(form, ''), []);
  });

test('NDJSON: blank lines, CRLF, a BOM and a missing last newline are accepted', async () => {
  const rows = newRows(3);
  const [a, b, c] = rows.map((row) => JSON.stringify(row));
  await applied('ndjson', `\ufeff\r\n${a}\r\n\n  \n\t${b}  \n\n${c}`, rows);
});

test('NDJSON: a line that is not an object fails the file, and is named', async () => {
  const row = JSON.stringify(newRow());
  for (const [wrong = '', why] of [
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
    const { errors } = await failed('ndjson', `${row}\n\n${wrong}\n${row}\n`);
    assert.deepEqual(errors, [{ line: 3, column: null, value: wrong, expected: `a JSON object${why}` }]);
  }
});

test('NDJSON: invalid UTF-8 fails the file, and every such line is named', async () => {
  const row = Buffer.from(`${JSON.stringify(newRow({ article_headline: 'X' }))}\n`);
  const at = row.indexOf('"X"') + 1;
  const wrong = ['ff', 'c3', 'e282', 'eda080', 'c0af', 'f5808080'].map((bytes) =>
    Buffer.concat([row.subarray(0, at), Buffer.from(bytes, 'hex'), row.subarray(at + 1)]),
  );
  const { errors } = await failed('ndjson', Buffer.concat([row, ...wrong, row]));
  const told = errors.map(({ line, expected }) => [line, expected]);
  const expected = wrong.map((_, index) => [index + 2, 'UTF-8 text']);
  assert.deepEqual(told, expected);
  await failed('ndjson', Buffer.from(ndjson([newRow()]), 'utf16le'));
});

test('characters across chunk boundaries stay intact', async () => {
  // Lines with 4,093 bytes of three-byte characters, so that chunks end at every byte of a character.
  const headline = '€'.repeat(1300);
  const rows = newRows(300, { article_headline: headline });
  for (const { article } of await applied('ndjson', ndjson(rows), rows))
    assert.equal(article.headline, headline);
});

/** A row whose line has this length. */
function rowOfBytes(bytes: number): Row {
  const row = newRow({ padding: '' });
  return { ...row, padding: 'x'.repeat(bytes - JSON.stringify(row).length) };
}

test('a line has at most 1 MiB; where bad rows are skipped, so is a longer one of NDJSON', async () => {
  const most = 1024 * 1024;
  const expected = 'a line of at most 1,048,576 bytes';
  const rows = [rowOfBytes(most), newRow(), rowOfBytes(most)];
  await applied('ndjson', ndjson(rows), rows);
  for (const form of ['ndjson', 'ndjson.gz', 'csv.zst'] as const) {
    const row = form === 'csv.zst' ? { ...newRow(), padding: 'x'.repeat(most) } : rowOfBytes(most + 1);
    const file = [newRow({ padding: '' }), row];
    const line = form === 'csv.zst' ? csv(file).split('\r\n')[2] : JSON.stringify(row);
    const { errors } = await failed(form, contentOf(form, file));
    const number = form === 'csv.zst' ? 3 : 2;
    assert.deepEqual(errors, [{ line: number, column: null, value: line?.slice(0, 200), expected }]);
  }
  const long = [rowOfBytes(most + 1), rowOfBytes(5_000_000)];
  const mixed = [newRow(), ...long, newRow(), ...long.slice(0, 1), newRow()];
  const content = packed('ndjson.gz', ndjson(mixed));
  const { result, skipped } = await readContent('ndjson.gz', content, { bad_rows: 'skip' });
  assert.deepEqual([result.kind, result.counts.rows, skipped], ['read', 6, [2, 3, 5]]);
  // However well compressed.
  const endless = Buffer.alloc(64 * 1024 * 1024, 'x');
  for (const [form, content] of [
    ['ndjson.gz', gzipSync(endless, { level: 1 })],
    ['csv.zst', zstdCompressSync(endless)],
  ] as const)
    assert.equal((await failed(form, content)).errors[0]?.expected, expected);
});

test('rows of a backfill are estimated by default; its times are at most a day after the time of reading', async () => {
  const given = [{}, { first_detected_estimated: false }, { first_detected_estimated: true }];
  const rows = given.map((members) => newRow(members));
  const backfill = { windowMs: null };
  const matches = await applied('ndjson', ndjson(rows), rows, backfill);
  const estimated = matches.map((match) => match.first_detected_estimated);
  assert.deepEqual(estimated, [true, false, true]);
  const at = (ms: number) => newRow({ first_detected_at: formatMs(ms), last_scored_at: formatMs(ms) });
  const near = [at(Date.now() + DAY_MS - 60_000)];
  await applied('ndjson', ndjson(near), near, backfill);
  const { errors } = await failed('ndjson', ndjson([at(Date.now() + DAY_MS + 600_000)]), backfill);
  const columns = errors.map(({ column }) => column);
  assert.deepEqual(columns, ['first_detected_at', 'last_scored_at']);
});

const TRAILER = (rows: number) => `{"end_of_export":true,"rows":${rows}}`;

test('a correct trailer is not a row', async () => {
  const rows = newRows(3);
  await applied('ndjson', `${ndjson(rows)}${TRAILER(3)}\n`, rows);
  await applied('ndjson.gz', packed('ndjson.gz', `${ndjson(rows)}\n${TRAILER(3)}\n\n`), rows);
  await applied('ndjson', `${TRAILER(0)}\n`, []);
});

test('a trailer that is malformed, has a wrong number of rows, or is not last fails the file', async () => {
  const malformed = words('true true,"rows":"1" true,"rows":-1 true,"rows":1.5 false,"rows":3 null');
  const cases: [line: number, expected: RegExp, trailers: string[]][] = [
    [4, /^3, the number of rows in the file$/, [0, 2, 4].map(TRAILER)],
    [6, /^no lines after the end_of_export/, ['{}', TRAILER(3), 'x'].map((end) => `${TRAILER(3)}\n\n${end}`)],
    [4, /end_of_export/, malformed.map((end) => `{"end_of_export":${end}}`)],
  ];
  for (const [line, expected, trailers] of cases)
    for (const trailer of trailers) {
      const [error] = (await failed('ndjson', `${ndjson(newRows(3))}${trailer}\n`)).errors;
      assert.equal(error?.line, line, trailer);
      assert.match(error?.expected ?? '', expected);
    }
});

/** A member without compression, so that the test can choose its length. */
function memberOfLength(length: number, row: Row): Buffer {
  const stored = (text: string) => gzipSync(text, { level: constants.Z_NO_COMPRESSION });
  const text = ndjson([row]);
  let blanks = length - stored(text).length;
  while (stored(`${text}${' '.repeat(blanks)}\n`).length > length) blanks -= 1;
  return stored(`${text}${' '.repeat(blanks)}\n`);
}

test('files of several members or frames, and blank lines of any length, are read to their end', async () => {
  const [first, ...more] = newRows(5);
  assert.ok(first);
  const rows = [first, ...more];
  await applied('ndjson.gz', Buffer.concat(rows.map((row) => gzipSync(ndjson([row])))), rows);
  // A member that ends at a chunk boundary is not taken for the last.
  const member = memberOfLength(256 * 1024, first);
  assert.equal(member.length, 256 * 1024);
  await applied('ndjson.gz', Buffer.concat([member, gzipSync(ndjson(more))]), rows);
  const blank = `${'\n'.repeat(1e6)}${`${' '.repeat(500_000)}\n`.repeat(56)}`;
  await applied('ndjson.gz', Buffer.concat([gzipSync(blank, { level: 1 }), gzipSync(ndjson(rows))]), rows);
  await applied('csv.zst', zstdCompressSync(`${csv(rows)}${blank.slice(0, 1e6)}`), rows);
  const many = newRows(3000);
  // Longer than a chunk of the file: frames end within chunks and across chunk boundaries.
  const frames = Buffer.concat(many.map((row) => zstdCompressSync(ndjson([row]))));
  assert.ok(frames.length > 256 * 1024);
  await applied('ndjson.zst', frames, many);
  const large = newRows(2000).map((row) => ({ ...row, article_headline: crypto.randomUUID().repeat(20) }));
  const halves = [large.slice(0, 1000), large.slice(1000)].map((part) => zstdCompressSync(ndjson(part)));
  await applied('ndjson.zst', Buffer.concat(halves), large);
});

/** @throws unless reading ends like this */
async function readAs(kind: 'truncated' | 'damaged', reason: RegExp, form: Form, content: Buffer) {
  const { result } = await readContent(form, content);
  assert.equal(result.kind, kind, JSON.stringify(result));
  assert.match('reason' in result ? result.reason : '', reason);
}

test('zeros after gzip data are accepted; other data at the end of a compressed file is damage', async () => {
  const rows = newRows(2);
  const zeros = Buffer.alloc(600 * 1024);
  const [gzip, zstd] = [gzipSync(ndjson(rows)), zstdCompressSync(ndjson(rows))];
  await applied('ndjson.gz', Buffer.concat([gzip, zeros]), rows);
  const garbage = Buffer.from('garbage');
  for (const rest of [[garbage], [zeros, gzip], [Buffer.alloc(1), gzip]])
    await readAs('damaged', /^the gzip data is/, 'ndjson.gz', Buffer.concat([gzip, ...rest]));
  const { result } = await readContent('ndjson.zst', Buffer.concat([zstd, garbage]));
  assert.match(result.kind, /^(damaged|truncated)$/);
});

for (const form of ['ndjson.gz', 'ndjson.zst', 'csv.gz', 'csv.zst'] as const)
  test(`${form}: a truncated file may still be growing, a damaged one not`, async () => {
    const packing = form.endsWith('.gz') ? 'gzip' : 'zstd';
    const whole = contentOf(form, newRows(500));
    for (const length of [0, 1, 10, Math.floor(whole.length / 2), whole.length - 1]) {
      const reason = new RegExp(`^the ${packing} data is truncated$`);
      await readAs('truncated', reason, form, whole.subarray(0, length));
    }
    const rows = Buffer.from(form.startsWith('csv') ? csv(newRows(500)) : ndjson(newRows(500)));
    const checksummed = { params: { [constants.ZSTD_c_checksumFlag]: 1 } };
    const damaged = packing === 'gzip' ? gzipSync(rows) : zstdCompressSync(rows, checksummed);
    // Damage the checksum: all data is unpacked before the error occurs.
    const at = damaged.length - (packing === 'gzip' ? 8 : 1);
    damaged.writeUInt8(damaged.readUInt8(at) ^ 1, at);
    const reason = new RegExp(`^the ${packing} data is damaged: `);
    for (const content of [damaged, rows]) await readAs('damaged', reason, form, content);
  });

test('rows that are left out, or were applied before, are passed on in batches too', async () => {
  const [good, bad] = [ndjson([newRow()]), '{}\n'].map((row) => row.repeat(45_000));
  for (const [content, options] of [
    [good, { streams: [] }],
    [good, { rows_to_skip: 45_000 }],
    [bad, { bad_rows: 'skip' }],
  ] as const) {
    const { batches } = await readContent('ndjson', content ?? '', options);
    assert.deepEqual(batches.map(({ rowsThrough }) => rowsThrough).slice(0, 2), [20_000, 40_000]);
  }
});
