/** The forms of export files: NDJSON lines, the trailer, files without rows, and compressed ones, truncated or damaged. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { constants, gzipSync, zstdCompressSync } from 'node:zlib';
import { FORMS } from '../../src/exports/file-name.ts';
import { sharedAppliance, startAppliance } from '../support/appliance.ts';
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
import { exportTrials, newRows } from '../support/export-trials.ts';
import { loggedFiles } from '../support/installation-state.ts';

const { dropped, applied, failed } = exportTrials(() => appliance);

const appliance = await sharedAppliance();

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

test('an empty uncompressed file gets time: its writer may be about to start', async () => {
  const row = newRow();
  const name = fileName('newswire', nextWindowMs());
  const path = join(appliance.drop, name);
  writeFileSync(path, '');
  // A scan that takes this one has seen the empty one before.
  await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));
  assert.ok(existsSync(path), 'the empty file must still be there');
  appendFileSync(path, ndjson([row]));
  const line = await appliance.processed(name);
  assert.equal(line.msg, 'file applied');
  assert.ok(await appliance.detection(idOf(row)));
});

test('NDJSON: blank lines, CRLF, a BOM and a missing last newline are accepted', async () => {
  const rows = newRows(3);
  const [a, b, c] = rows.map((row) => JSON.stringify(row));
  await applied('ndjson', `\ufeff\r\n${a}\r\n\n  \n\t${b}  \n\n${c}`, rows);
});

test('NDJSON: a line that is not an object fails the file, and is named', async () => {
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

test('NDJSON: invalid UTF-8 fails the file, and every such line is named', async () => {
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

test('characters across chunk boundaries stay intact', async () => {
  // Lines with 4,093 bytes of three-byte characters, so that chunks end at every byte of a character.
  const rows = Array.from({ length: 300 }, () => newRow({ article_headline: '€'.repeat(1300) }));
  await applied('ndjson', ndjson(rows), rows);
  for (const row of rows.filter((_, at) => at % 50 === 0)) {
    assert.equal((await appliance.detection(idOf(row)))?.article.headline, '€'.repeat(1300));
  }
});

/** A row whose line has this length. */
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
    const file = [newRow({ padding: '' }), row];
    const reason = await failed(form, contentOf(form, file));
    const line = form === 'csv.zst' ? csv(file).split('\r\n')[2] : JSON.stringify(row);
    assert.deepEqual(reason.errors, [
      {
        line: form === 'csv.zst' ? 3 : 2,
        column: null,
        value: line?.slice(0, 200),
        expected: 'a line of at most 1,048,576 bytes',
      },
    ]);
  }
});

test('if bad rows are skipped, so is a longer line of NDJSON', async () => {
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

test('one endless line fails its file, however well compressed', async () => {
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

const TRAILER = (rows: number) => `{"end_of_export":true,"rows":${rows}}`;

test('a correct trailer is not a row', async () => {
  const rows = newRows(3);
  await applied('ndjson', `${ndjson(rows)}${TRAILER(3)}\n`, rows);
  await applied('ndjson.gz', packed('ndjson.gz', `${ndjson(rows)}\n${TRAILER(3)}\n\n`), rows);
  await applied('ndjson', `${TRAILER(0)}\n`, []);
});

test('a trailer that is malformed, has a wrong number of rows, or is not last fails the file', async () => {
  const cases: [trailer: string, line: number, expected: RegExp][] = [
    ...[0, 2, 4].map((rows): [string, number, RegExp] => [
      TRAILER(rows),
      4,
      /^3, the number of rows in the file$/,
    ]),
    ...[ndjson(newRows(1)), TRAILER(3), 'x'].map((after): [string, number, RegExp] => [
      `${TRAILER(3)}\n\n${after}`,
      6,
      /^no lines after the end_of_export line$/,
    ]),
    ...['', ',"rows":"1"', ',"rows":-1', ',"rows":1.5'].map((rows): [string, number, RegExp] => [
      `{"end_of_export":true${rows}}`,
      4,
      /end_of_export/,
    ]),
    ['{"end_of_export":false,"rows":3}', 4, /end_of_export/],
    ['{"end_of_export":null}', 4, /end_of_export/],
  ];
  for (const [trailer, line, expected] of cases) {
    const reason = await failed('ndjson', `${ndjson(newRows(3))}${trailer}\n`);
    assert.equal(reason.errors[0].line, line, trailer);
    assert.match(reason.errors[0].expected, expected);
  }
});

test('the record of a file has the hash of the dropped file', async () => {
  const content = contentOf('ndjson.zst', newRows(2));
  const name = fileName('newswire', nextWindowMs(), 'ndjson.zst');
  const line = await appliance.dropped(name, content);
  const archived = join(appliance.drop, String(line.destination));
  assert.deepEqual(readFileSync(archived), Buffer.from(content));
  const record = loggedFiles(appliance.data).find(({ number }) => number === line.number);
  assert.equal(record?.sha256, createHash('sha256').update(content).digest('hex'));
  assert.equal(record.destination, line.destination);
});

test('gzip: a file of several members is read to its end', async () => {
  const rows = newRows(5);
  const members = rows.map((row) => gzipSync(ndjson([row])));
  await applied('ndjson.gz', Buffer.concat(members), rows);
});

test('gzip: a member that ends at a chunk boundary is not taken for the last', async () => {
  const chunk = 256 * 1024;
  const first = newRow();
  // Without compression, so that the test can choose the member's length.
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

test('gzip: zeros at the end are accepted; other trailing data is damage, also after zeros', async () => {
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

test('zstd: a file of several frames is read to its end', async () => {
  const rows = newRows(3000);
  const frames = rows.map((row) => zstdCompressSync(ndjson([row])));
  // Longer than a chunk of the file: frames end within chunks and across chunk boundaries.
  const content = Buffer.concat(frames);
  assert.ok(content.length > 256 * 1024);
  await applied('ndjson.zst', content, rows);
  const large = newRows(2000).map((row) => ({ ...row, article_headline: crypto.randomUUID().repeat(20) }));
  const half = large.length / 2;
  const two = [large.slice(0, half), large.slice(half)].map((part) => zstdCompressSync(ndjson(part)));
  await applied('ndjson.zst', Buffer.concat(two), large);
});

test('zstd: data after the last frame is damage', async () => {
  const content = Buffer.concat([zstdCompressSync(ndjson(newRows(1))), Buffer.from('garbage')]);
  const reason = await failed('ndjson.zst', content);
  assert.match(reason.reason, /^the zstd data is (damaged|truncated)/);
});

for (const form of ['ndjson.gz', 'ndjson.zst', 'csv.gz', 'csv.zst'] as const) {
  const packing = form.endsWith('.gz') ? 'gzip' : 'zstd';

  test(`${form}: a truncated file fails once it has not changed for a while`, async () => {
    const whole = contentOf(form, newRows(500));
    const lengths = [0, 1, 10, Math.floor(whole.length / 2), whole.length - 1];
    const reasons = await Promise.all(lengths.map((length) => failed(form, whole.subarray(0, length))));
    for (const { reason } of reasons) assert.equal(reason, `the ${packing} data is truncated`);
  });

  test(`${form}: a truncated file that keeps growing is read when complete`, async () => {
    const rows = newRows(500);
    const whole = contentOf(form, rows);
    const name = fileName('newswire', nextWindowMs(), form);
    const path = join(appliance.drop, name);
    writeFileSync(path, whole.subarray(0, 100));
    // A scan that takes this one has seen the truncated one before.
    await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));
    assert.ok(existsSync(path), 'the file must still be there');
    appendFileSync(path, whole.subarray(100));
    const line = await appliance.processed(name);
    assert.deepEqual([line.msg, line.rows], ['file applied', rows.length]);
  });

  test(`${form}: a damaged file fails at once`, async () => {
    const rows = Buffer.from(form.startsWith('csv') ? csv(newRows(500)) : ndjson(newRows(500)));
    const checksummed = { params: { [constants.ZSTD_c_checksumFlag]: 1 } };
    const damaged = packing === 'gzip' ? gzipSync(rows) : zstdCompressSync(rows, checksummed);
    // Damage the checksum: all data is unpacked before the error occurs.
    const at = damaged.length - (packing === 'gzip' ? 8 : 1);
    damaged.writeUInt8(damaged.readUInt8(at) ^ 1, at);
    for (const content of [damaged, rows]) {
      const reason = await failed(form, content);
      assert.match(reason.reason, new RegExp(`^the ${packing} data is damaged: `));
    }
  });
}
