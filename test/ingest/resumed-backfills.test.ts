/** A backfill that was interrupted: it is resumed, and loses no row silently, whatever has become of its file and settings. */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { sharedAppliance } from '../support/appliance.ts';
import { NO_PRELOAD as skip } from '../support/command.ts';
import { changeDetections } from '../support/database-content.ts';
import { fileName, idOf, ndjson, newRow, newRows, nextWindowMs, type Row } from '../support/export-files.ts';
import { exportTrials } from '../support/export-trials.ts';
import { openAlertsOf } from '../support/installation-state.ts';
import { preloadedFs } from '../support/preload.ts';
import { until } from '../support/until.ts';

/** Backfills are checked and taken, but cannot be read again to be applied. */
const INTERRUPTED = preloadedFs(`
  const { open } = fs.promises;
  fs.promises.open = async (path, ...rest) => {
    if (/\\.taken\\/\\d+\\.newswire\\.backfill-/.test(String(path)))
      throw Object.assign(new Error('EIO: made to fail, open'), { code: 'EIO', syscall: 'open' });
    return open(path, ...rest);
  };
`);

const STUCK = /^a file cannot be read or moved/;

const appliance = await sharedAppliance();

/** Drops backfills and ends the program after their check, before any row was applied. */
async function interrupted(
  files: Readonly<Record<string, readonly Row[]>>,
  settings: Readonly<Record<string, string>> = {},
): Promise<void> {
  await appliance.restart({ ...settings, ...INTERRUPTED });
  for (const [name, rows] of Object.entries(files)) {
    appliance.put(name, ndjson(rows));
    await appliance.logged(STUCK, { file: name });
  }
  await appliance.serving().stop();
}

const takenPath = (name: string) => {
  const taken = readdirSync(join(appliance.drop, '.taken')).find((one) => one.endsWith(name)) ?? '';
  return join(appliance.drop, '.taken', taken);
};
const numberOf = (path: string) => Number.parseInt(basename(path), 10);

const report = (number: number, msg: string) => appliance.logged(new RegExp(`^${msg}$`), { number });

/** Whether a backfill is being applied, and whether there is an alert that it cannot be. */
async function state(): Promise<[isApplying: boolean, isStuck: boolean]> {
  const { applying } = JSON.parse(appliance.cli(['ingest', 'status', '--json']).stdout);
  return [applying.length > 0, (await openAlertsOf(appliance)).includes('file stuck')];
}

const untilState = (expected: [boolean, boolean]) =>
  until(`${expected}`, async () => `${await state()}` === `${expected}`);

const { ingestAnother: ingestsOthers, reasonBeside } = exportTrials(() => appliance);

test('rows are judged as in the check; those that are invalid all the same are counted, or fail the file', {
  skip,
}, async () => {
  const early = newRow({ first_detected_at: '2001-02-03T04:05:06Z' });
  const old = { first_detected_at: '2002-01-01T00:00:00Z' };
  const checked = {
    'newswire.backfill-checked-some.ndjson': [...newRows(19), early],
    'newswire.backfill-checked-all.ndjson': newRows(150, old),
  };
  const [few, most] = ['newswire.backfill-other-few.ndjson', 'newswire.backfill-other-most.ndjson'];
  const others = { [few]: [newRow(), newRow(old)], [most]: newRows(101, old) };
  await interrupted({ ...checked, ...others }, { WIREWATCH_INGEST_EARLIEST_TIME: '2000-01-01T00:00:00Z' });
  changeDetections(
    appliance.data,
    `UPDATE ingest_file SET report = json_set(report, '$.bounds.earliest', '2010-01-01T00:00:00Z')
      WHERE name LIKE '%backfill-other%'`,
  );
  await appliance.restart({ WIREWATCH_INGEST_EARLIEST_TIME: '2010-01-01T00:00:00Z' });
  for (const [name, rows] of Object.entries(checked)) {
    const line = await appliance.processed(name);
    assert.deepEqual([line.msg, line.created, line.bad_rows], ['file applied', rows.length, 0]);
    assert.ok(!('bounds' in line), 'kept for a replay alone');
  }
  assert.ok(await appliance.detection(idOf(early)));
  const counted = await appliance.processed(few);
  assert.deepEqual([counted.msg, counted.created, counted.bad_rows], ['file applied', 1, 1]);
  const failed = await appliance.processed(most);
  assert.equal(failed.msg, 'file failed');
  assert.match(String(failed.reason), /^the file no longer matches the export format; 0 of 101 rows were/);
  assert.equal(reasonBeside(failed.destination).errors[1].column, 'first_detected_at');
  await ingestsOthers();
});

test('it waits while its export is switched off; rows whose stream is gone are counted; a changed file fails alone', {
  skip,
}, async () => {
  const [streams, changed] = ['newswire.backfill-streams.ndjson', 'newswire.backfill-changed.ndjson'];
  appliance.cli(['subscription', 'add', '7400', '--account', 'agency']);
  const rows = [7001, 7400, 7500, 7600].map((subscription_id) => newRow({ subscription_id }));
  await interrupted({ [streams]: rows, [changed]: newRows(2) });
  appliance.cli(['subscription', 'set', '7400', '--content-types', 'image']);
  appliance.cli(['subscription', 'add', '7500', '--account', 'agency']);
  writeFileSync(takenPath(changed), ndjson(newRows(2)));
  await appliance.restart({ WIREWATCH_EXPORTS_NEWSWIRE_ENABLED: 'false' });
  const off = /switched off.*set \[exports\.newswire\] enabled = true/;
  await appliance.serving().logged('that it waits', ({ err }) => off.test(JSON.stringify(err)));
  await untilState([true, true]);
  // The next owner of a number does not get the rows of the one before.
  appliance.cli(['subscription', 'add', '7600', '--account', 'agency']);
  appliance.cli(['subscription', 'remove', '7600', '--yes']);
  appliance.cli(['subscription', 'add', '7600', '--account', 'agency']);
  await appliance.restart();
  const line = await appliance.processed(streams);
  assert.deepEqual([line.msg, line.created, line.unknown_rows], ['file applied', 2, { '7400:text': 1 }]);
  await until('the alert', async () => (await openAlertsOf(appliance)).includes('rows skipped'));
  const failed = await appliance.processed(changed);
  assert.equal(failed.msg, 'file failed');
  const why = /^the file was changed while it was being applied; 2 of 2 rows were applied/;
  assert.match(String(failed.reason), why);
  await untilState([false, false]);
  await ingestsOthers();
});

test('a window does not wait for the rows that were applied before', { skip }, async () => {
  const [name, window] = ['newswire.backfill-long.ndjson', fileName('newswire', nextWindowMs())];
  await interrupted({ [name]: new Array(30_000).fill(newRow()) });
  changeDetections(appliance.data, `UPDATE ingest_file SET rows_applied = 30000 WHERE name = '${name}'`);
  appliance.put(window, ndjson([newRow()]));
  await appliance.restart({ WIREWATCH_INGEST_QUIET_MS: '0' });
  await appliance.processed(name);
  const applied = appliance.serving().log.flatMap(({ msg, file }) => (msg === 'file applied' ? file : []));
  assert.deepEqual(applied, [window, name]);
});

test('it waits while its file cannot be read, fails when it is gone, and is read when it is back', {
  skip,
}, async () => {
  const name = 'newswire.backfill-unreadable.ndjson';
  await interrupted({ [name]: newRows(2) });
  const here = takenPath(name);
  const away = join(appliance.drop, '.away');
  renameSync(here, away);
  mkdirSync(here);
  await appliance.restart();
  assert.equal((await appliance.logged(STUCK)).file, name);
  await ingestsOthers();
  await untilState([true, true]);
  rmdirSync(here);
  const failed = await report(numberOf(here), 'file failed');
  assert.equal(failed.reason, 'the file is gone; 0 of 2 rows were applied: drop it again');
  assert.equal(failed.destination, null);
  await untilState([false, false]);
  renameSync(away, here);
  assert.equal((await appliance.logged(/^file applied$/, { file: name })).rows, 2);
  assert.equal(appliance.serving().log.filter(({ msg }) => msg === 'file failed').length, 1);
});

test('it fails after a restore of a backup made meanwhile; its file is read again', { skip }, async () => {
  const name = 'newswire.backfill-restored.ndjson';
  await interrupted({ [name]: newRows(2) });
  const number = numberOf(takenPath(name));
  const backup = join(appliance.data, 'backup');
  appliance.cli(['backup', backup]);
  await appliance.restart();
  await report(number, 'file applied');
  await appliance.serving().stop();
  rmSync(join(appliance.data, 'log'), { recursive: true });
  appliance.cli(['restore', backup, '--replace']);
  await appliance.restart();
  assert.match(String((await report(number, 'file failed')).reason), /^the file is gone/);
  await appliance.logged(/^file applied$/, { file: name });
  await untilState([false, false]);
  assert.deepEqual(readdirSync(join(appliance.drop, '.taken')), []);
});
