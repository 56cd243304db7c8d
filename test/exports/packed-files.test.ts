/** Compressed export files: members and frames, and truncated or damaged files. */
import assert from 'node:assert/strict';
import { appendFileSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { constants, gzipSync, zstdCompressSync } from 'node:zlib';
import { sharedAppliance } from '../support/appliance.ts';
import { contentOf, csv, fileName, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { exportTrials, newRows } from '../support/export-trials.ts';

const { applied, failed } = exportTrials(() => appliance);

const appliance = await sharedAppliance();

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
