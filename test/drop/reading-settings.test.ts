/**
 * Settings and access rights that decide which rows of a file are read: subscriptions, licences, bad_rows,
 * require_trailer, earliest_time.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { firstErrorText } from '../../src/exports/error-groups.ts';
import { createKey, sharedAppliance } from '../support/appliance.ts';
import { csv, fileName, idOf, ndjson, newRow, newRows, nextWindowMs } from '../support/export-files.ts';
import { exportTrials } from '../support/export-trials.ts';

const { inDrop, reasonBeside } = exportTrials(() => appliance);

const appliance = await sharedAppliance();
const SKIPPING = { WIREWATCH_INGEST_BAD_ROWS: 'skip' };
const drop = (content: string) => appliance.dropped(fileName('newswire', nextWindowMs()), content);
const replay = () => JSON.parse(appliance.cli(['ingest', 'replay', '--json']).stdout);
const skippedBeside = (destination: unknown) => inDrop(`${destination}.skipped.ndjson`);

test('rows of unknown subscriptions are skipped and counted, and a replay applies them', async () => {
  await appliance.restart({ WIREWATCH_INGEST_EARLIEST_TIME: '2001-01-01T00:00:00Z' });
  const old = { subscription_id: 7300, first_detected_at: '2002-01-01T00:00:00Z' };
  const [known, unknown, other] = [newRow(), newRow(old), newRow({ subscription_id: 999_999 })];
  const history = newRow(old);
  const first = await appliance.dropped('newswire.backfill-old.ndjson', ndjson([history]));
  assert.equal(first.msg, 'file applied');
  const text = await drop(ndjson([known, unknown, unknown, other]));
  assert.deepEqual([text.msg, text.rows, text.created], ['file applied', 4, 1]);
  assert.deepEqual(text.unknown_rows, { '7300:text': 2, '999999:text': 1 });
  // 7002 has no photos.
  const photo = newRow({ subscription_id: 7002 });
  const image = await appliance.dropped(fileName('imagewire', nextWindowMs()), ndjson([photo]));
  assert.deepEqual([image.msg, image.unknown_rows], ['file applied', { '7002:image': 1 }]);

  appliance.cli(['subscription', 'add', '7300', '--account', 'agency', '--content-types', 'text']);
  const key = createKey(appliance.cli, 'agency', '7300');
  assert.equal(await appliance.detection(idOf(unknown), key), null);
  const before = await appliance.detection(idOf(known));
  // It reads them with the earliest_time of then.
  await appliance.restart();
  const replayed = replay();
  assert.deepEqual([replayed.created, replayed.updated], [2, 0]);
  for (const row of [unknown, history]) assert.equal((await appliance.detection(idOf(row), key))?.version, 1);
  assert.deepEqual(await appliance.detection(idOf(known)), before);
  const again = replay();
  assert.deepEqual([again.created, again.updated, again.rescored, again.left_out], [0, 0, 0, 2]);
  await appliance.restart({ WIREWATCH_EXPORTS_IMAGEWIRE_ENABLED: 'false' });
  const { files, left_out } = replay();
  assert.deepEqual([files, left_out], [again.files - 1, 1], 'an export that is switched off is passed over');
});

test('bad_rows = skip skips bad rows, and writes them with reasons beside the archived file', async () => {
  await appliance.restart(SKIPPING);
  const [good, bad, alsoGood] = [newRow(), newRow({ strength_score: 101, source_id: 7 }), newRow()];
  const deep = `{"deep":${'['.repeat(200_000)}${']'.repeat(200_000)}}`;
  const content = `${ndjson([good])}not json\n${ndjson([bad, alsoGood])}${deep}\n`;
  const line = await drop(content);
  assert.deepEqual([line.msg, line.rows, line.created, line.bad_rows], ['file applied', 5, 2, 3]);
  const skipped = readFileSync(skippedBeside(line.destination), 'utf8').trim().split('\n');
  const [first, second, third] = skipped.map((text) => JSON.parse(text));
  assert.deepEqual([first.line, first.row], [2, 'not json']);
  assert.deepEqual([second.line, second.row], [3, bad]);
  const columns = second.errors.map(({ column }: { column: string }) => column).sort();
  assert.deepEqual(columns, ['source_id', 'strength_score']);
  assert.equal(third.line, 5);
  for (const row of [good, alsoGood]) assert.ok(await appliance.detection(idOf(row)));
  // The next file has no bad rows, and therefore no file beside it.
  const clean = await drop(ndjson([newRow()]));
  assert.ok(!existsSync(skippedBeside(clean.destination)));
  // A file that cannot be read as a whole still fails.
  const wrong = await drop(`${content}{"end_of_export":true,"rows":1}\n`);
  assert.equal(wrong.msg, 'file failed');
});

test('a file that had bad rows is applied again when it is dropped again; once it had none, it is repeated', async () => {
  await appliance.restart(SKIPPING);
  const old = newRow({ first_detected_at: '2002-01-01T00:00:00Z' });
  const [name, content] = [fileName('newswire', nextWindowMs()), ndjson([newRow(), old])];
  const dropped = async () => {
    const { msg, created, bad_rows } = await appliance.dropped(name, content);
    return [msg, created, bad_rows];
  };
  assert.deepEqual(await dropped(), ['file applied', 1, 1]);
  await appliance.restart({ ...SKIPPING, WIREWATCH_INGEST_EARLIEST_TIME: '2001-01-01T00:00:00Z' });
  assert.deepEqual(await dropped(), ['file applied', 1, 0]);
  assert.ok(await appliance.detection(idOf(old)));
  assert.deepEqual(await dropped(), ['file repeated', undefined, 0]);
});

test('a file with bad rows that is dropped again brings nothing of one owner of a number to the next', async () => {
  await appliance.restart(SKIPPING);
  const add = () => appliance.cli(['subscription', 'add', '7009', '--account', 'agency']);
  add();
  const bad = newRow({ strength_score: 101 });
  const name = fileName('newswire', nextWindowMs());
  const content = ndjson([newRow({ subscription_id: 7009 }), bad]);
  assert.equal((await appliance.dropped(name, content)).created, 1);
  appliance.cli(['subscription', 'remove', '7009', '--yes']);
  add();
  const { msg, created } = await appliance.dropped(name, content);
  assert.deepEqual([msg, created], ['file applied', 0]);
  assert.equal(replay().created, 0);
});

test('a reading that came to nothing leaves no notes of skipped rows, not even beside another file', async () => {
  await appliance.restart({ ...SKIPPING, WIREWATCH_INGEST_TRUNCATED_SECONDS: '600' });
  const name = fileName('newswire', nextWindowMs(), 'ndjson.gz');
  const rows = Array.from({ length: 2000 }, () => newRow({ source_id: randomUUID() }));
  const packed = gzipSync(`not json\n${ndjson(rows)}`);
  appliance.put(name, packed.subarray(0, packed.length / 2));
  // The file of a later window is read after the truncated one.
  const good = await drop(ndjson([newRow()]));
  assert.deepEqual([good.msg, good.bad_rows], ['file applied', 0]);
  assert.ok(!existsSync(skippedBeside(good.destination)));
  const { msg, bad_rows } = await appliance.dropped(name, packed);
  assert.deepEqual([msg, bad_rows], ['file applied', 1]);
  assert.deepEqual(readdirSync(inDrop('.taken')), []);
});

test('a file with mostly bad rows fails, and its notes are bounded', async () => {
  const good = (count: number) => ndjson(newRows(count));
  const bad = (count: number) => '{"x":1}\n'.repeat(count);
  const enough = await drop(good(899) + bad(100));
  assert.deepEqual([enough.msg, enough.created, enough.bad_rows], ['file applied', 899, 100]);
  const few = await drop(good(909) + bad(101));
  assert.deepEqual([few.msg, few.bad_rows], ['file applied', 101], 'a tenth');
  const more = await drop(good(908) + bad(101));
  assert.deepEqual([more.msg, more.bad_rows], ['file failed', 101]);
  const { errors, errors_total } = reasonBeside(more.destination);
  const expected = 'at most 100 bad rows, or 10% of the 1009 rows in the file, so that they can be skipped';
  assert.deepEqual(errors[0], { line: 0, column: null, value: 101, expected });
  assert.equal(firstErrorText({ errors: errors.slice(0, 1) }), `expected ${expected}, found 101`);
  assert.deepEqual([errors.length, errors[1].line], [20, 909]);
  assert.ok(errors_total > 101);

  const bomb = await drop(bad(12_000));
  assert.equal(bomb.msg, 'file failed');
  const notes = readFileSync(skippedBeside(bomb.destination), 'utf8');
  assert.ok(notes.length < 4 * 1024 * 1024 + 100, `${notes.length}`);
  const lines = notes.trimEnd().split('\n');
  assert.equal(lines.length - 1 + JSON.parse(lines.at(-1) ?? '').more_rows, 12_000);
});

test('reading ends with the bound of bad rows, whatever a small file unpacks to', async () => {
  const bomb = 'x\n'.repeat(4_000_000);
  for (const [bad_rows, rows, ended, expected] of [
    ['fail', 100, 'row 100, with 100 errors', /JSON/],
    ['skip', 100_001, 'row 100,001, with 100,002 errors', /^at most 100,000 bad rows in a file/],
  ] as const) {
    await appliance.restart({ WIREWATCH_INGEST_BAD_ROWS: bad_rows });
    const name = fileName('newswire', nextWindowMs(), 'ndjson.zst');
    const line = await appliance.dropped(name, zstdCompressSync(bomb));
    assert.deepEqual([line.msg, line.rows], ['file failed', rows]);
    assert.ok(String(line.reason).endsWith(`; reading ended at ${ended}`), String(line.reason));
    assert.match(reasonBeside(line.destination).errors[0].expected, expected);
  }
});

test('require_trailer makes the trailer mandatory for NDJSON only; earliest_time bounds first_detected_at', async () => {
  await appliance.restart({
    WIREWATCH_INGEST_REQUIRE_TRAILER: 'true',
    WIREWATCH_INGEST_EARLIEST_TIME: '2020-06-01T00:00:00Z',
  });
  const trailer = '{"end_of_export":true,"rows":1}\n';
  const firstDetected = (first_detected_at: string) => ndjson([newRow({ first_detected_at })]) + trailer;
  for (const [form, content, expected] of [
    ['ndjson', ndjson([newRow()]), 'a last line {"end_of_export":true,"rows":N}'],
    ['ndjson', ndjson([newRow()]) + trailer, null],
    ['csv', csv([newRow()]), null],
    ['ndjson', firstDetected('2020-06-01T00:00:00Z'), null],
    ['ndjson', firstDetected('2020-05-31T23:59:59Z'), 'a time not before 2020-06-01T00:00:00Z'],
  ] as const) {
    const line = await appliance.dropped(fileName('newswire', nextWindowMs(), form), content);
    assert.equal(line.msg, expected === null ? 'file applied' : 'file failed');
    if (expected !== null) assert.equal(reasonBeside(line.destination).errors[0].expected, expected);
  }
});
