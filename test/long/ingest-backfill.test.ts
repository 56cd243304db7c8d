/** Backfills: checked completely, applied in bounded transactions, resumed where they stopped. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { formatMs } from '../../src/time.ts';
import { sharedAppliance } from '../support/appliance.ts';
import { NO_PRELOAD } from '../support/command.ts';
import { fileName, idOf, ndjson, newRow, newRows, nextWindowMs, type Row } from '../support/export-files.ts';
import { exportTrials } from '../support/export-trials.ts';
import { loggedFiles } from '../support/installation-state.ts';
import { preloaded } from '../support/preload.ts';
import { until } from '../support/until.ts';

/** Several transactions of 20,000 rows. */
const MANY_ROWS = 150_000;

const appliance = await sharedAppliance();

const { reasonBeside } = exportTrials(() => appliance);

/** Waits until a row of a file that is being applied can be read. */
const becameVisible = (row: Row) =>
  until('a row of the file', async () => (await appliance.detection(idOf(row))) !== null);

/** The numbers of the files that the log names as applied, in its order. */
const appliedInLog = (): number[] =>
  loggedFiles(appliance.data).flatMap(({ outcome, number }) => (outcome === 'applied' ? number : []));

test('the same content under the same label changes nothing; under another it is merged', async () => {
  const rows = newRows(2);
  const first = await appliance.dropped('newswire.backfill-same.ndjson', ndjson(rows));
  assert.match(String(first.destination), /^archive\/\d{4}-\d\d-\d\d\/newswire\.backfill-same\.ndjson$/);
  assert.equal((await appliance.detection(idOf(rows[0] ?? {})))?.first_detected_estimated, true);
  assert.deepEqual(JSON.parse(appliance.cli(['window', 'list', '--json']).stdout), [], 'it is no window');
  const again = await appliance.dropped('newswire.backfill-same.ndjson', ndjson(rows));
  assert.deepEqual(
    [again.msg, again.reason],
    ['file repeated', `same content as file ${first.number}, which was already applied`],
  );
  const other = await appliance.dropped('newswire.backfill-other.ndjson', ndjson(rows));
  assert.deepEqual([other.msg, other.unchanged], ['file applied', 2]);
});

test('a backfill that is damaged or invalid at its very end applies nothing', async () => {
  const rows = newRows(45_000);
  const [first] = rows;
  assert.ok(first);
  const text = ndjson(rows);
  const wrong = await appliance.dropped('newswire.backfill-wrong.ndjson', `${text}{}\n`);
  assert.equal(wrong.msg, 'file failed');
  assert.equal(reasonBeside('failed/newswire.backfill-wrong.ndjson').errors[0].line, rows.length + 1);
  const whole = zstdCompressSync(text);
  const cutOff = await appliance.dropped('newswire.backfill-cut.ndjson.zst', whole.subarray(0, -1));
  assert.equal(cutOff.msg, 'file failed');
  assert.equal(await appliance.detection(idOf(first)), null);
  const numbers = appliedInLog();
  assert.ok(!numbers.includes(Number(wrong.number)) && !numbers.includes(Number(cutOff.number)));
});

test('windows are read between the transactions of a long backfill, and both are logged', async () => {
  const rows = newRows(MANY_ROWS);
  const [first] = rows;
  const row = newRow();
  assert.ok(first);
  const name = fileName('newswire', nextWindowMs());
  appliance.put('newswire.backfill-long.ndjson', ndjson(rows));
  await becameVisible(first);
  const window = await appliance.dropped(name, ndjson([row]));
  assert.equal(window.msg, 'file applied');
  assert.ok(
    existsSync(join(appliance.drop, '.taken', `${Number(window.number) - 1}.newswire.backfill-long.ndjson`)),
  );
  assert.ok(await appliance.detection(idOf(row)));
  const backfill = await appliance.processed('newswire.backfill-long.ndjson');
  assert.deepEqual([backfill.msg, backfill.created], ['file applied', rows.length]);
  assert.ok(Number(backfill.number) < Number(window.number));
  const both = appliedInLog().filter((number) => number === backfill.number || number === window.number);
  assert.deepEqual(both, [window.number, backfill.number]);
});

test('a backfill interrupted by a stop continues at the next start, even with other settings', async () => {
  const rows = newRows(MANY_ROWS);
  const bad = { ...newRow(), strength_score: 101 };
  const [first] = rows;
  const last = rows.at(-1);
  assert.ok(first && last);
  await appliance.restart({ WIREWATCH_INGEST_BAD_ROWS: 'skip' });
  appliance.put('newswire.backfill-stopped.ndjson', ndjson([...rows, bad]));
  await becameVisible(first);
  await appliance.restart({
    WIREWATCH_INGEST_REQUIRE_TRAILER: 'true',
    WIREWATCH_INGEST_EARLIEST_TIME: formatMs(Date.now()),
  });
  const line = await appliance.processed('newswire.backfill-stopped.ndjson');
  const resumed = appliance.serving().log.find(({ msg }) => msg === 'backfill resumed');
  assert.ok(Number(resumed?.rows_applied) >= 20_000, JSON.stringify(resumed));
  assert.deepEqual([line.msg, line.created, line.bad_rows], ['file applied', rows.length, 1]);
  assert.equal(line.unchanged, 0, 'committed rows must not be applied again');
  assert.equal((await appliance.detection(idOf(last)))?.version, 1);
  const skipped = readFileSync(join(appliance.drop, `${line.destination}.skipped.ndjson`), 'utf8')
    .trim()
    .split('\n');
  assert.equal(skipped.length, 1);
  assert.equal(appliedInLog().filter((number) => number === line.number).length, 1);
});

/** Reading a backfill to apply it waits after so many bytes, as long as `flag` exists. */
const waiting = (flag: string, bytes: number) =>
  preloaded(`
    import { existsSync } from 'node:fs';
    import files from 'node:fs/promises';
    import { syncBuiltinESMExports } from 'node:module';
    const { open } = files;
    files.open = async (path, ...rest) => {
      const file = await open(path, ...rest);
      if (!/\\.taken\\/\\d+\\.newswire\\.backfill-/.test(String(path))) return file;
      const read = file.read.bind(file);
      let done = 0;
      file.read = async (...args) => {
        while (done > ${bytes} && existsSync(${JSON.stringify(flag)}))
          await new Promise((resolve) => setTimeout(resolve, 20));
        const result = await read(...args);
        done += result.bytesRead;
        return result;
      };
      return file;
    };
    syncBuiltinESMExports();
  `);

test('rights that change while a backfill is applied hold for its next transactions', {
  skip: NO_PRELOAD,
}, async () => {
  const print = { article_print: true, article_url: 'https://print.example.com/1' };
  const rows = newRows(60_000, print);
  const later = newRow({ subscription_id: 7400 });
  const [first, last] = [rows[0], rows.at(-1)];
  assert.ok(first && last);
  const content = ndjson([...rows, newRow({ subscription_id: 7500 }), later]);
  const flag = join(dirname(appliance.data), 'wait');
  writeFileSync(flag, '');
  appliance.cli(['account', 'set', 'agency', '--print-metadata', 'on']);
  appliance.cli(['subscription', 'add', '7500', '--account', 'agency']);
  await appliance.restart(waiting(flag, content.length / 2));
  appliance.put('newswire.backfill-rights.ndjson', content);
  await becameVisible(first);
  appliance.cli(['account', 'set', 'agency', '--print-metadata', 'off']);
  appliance.cli(['subscription', 'set', '7500', '--content-types', 'image']);
  appliance.cli(['subscription', 'add', '7400', '--account', 'agency']);
  rmSync(flag);
  const line = await appliance.processed('newswire.backfill-rights.ndjson');
  assert.deepEqual([line.msg, line.created, line.unchanged], ['file applied', rows.length + 1, 0]);
  assert.deepEqual(line.unknown_rows, { '7500:text': 1 });
  assert.equal((await appliance.detection(idOf(first)))?.article.url, print.article_url);
  assert.equal((await appliance.detection(idOf(last)))?.article.url, null);
});

test('windows do not wait while a backfill is checked, and a stop does not either', async () => {
  await appliance.restart({ WIREWATCH_INGEST_BAD_ROWS: 'skip' });
  // The first row is skipped; the rest takes long to read, but contains no rows.
  const nothing = Buffer.alloc(300_000_000, '\n');
  const bad = Buffer.from('no row\n');
  const name = 'newswire.backfill-long.ndjson.gz';
  appliance.put(name, gzipSync(Buffer.concat([bad, nothing]), { level: 1 }));
  await until('it is being checked', () => {
    const { reading } = JSON.parse(appliance.cli(['ingest', 'status', '--json']).stdout);
    return reading?.file === `${name} (checking)`;
  });
  for (let count = 0; count < 3; count += 1) {
    const line = await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));
    assert.deepEqual([line.msg, line.created], ['file applied', 1]);
  }
  assert.ok(existsSync(join(appliance.drop, name)), 'the check must still be running');
  assert.equal(await appliance.serving().stop(), 0);
  assert.ok(existsSync(join(appliance.drop, name)), 'the stop must not wait for it');
  rmSync(join(appliance.drop, name));
  await appliance.restart();
  assert.deepEqual(readdirSync(join(appliance.drop, '.taken')), []);
});
