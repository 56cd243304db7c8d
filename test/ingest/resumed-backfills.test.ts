/** A backfill that is resumed after settings or subscriptions changed loses no row silently. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openDatabase } from '../../src/store/database.ts';
import { DETECTIONS_SCHEMA } from '../../src/store/detections-schema.ts';
import { sharedAppliance } from '../support/appliance.ts';
import { NO_PRELOAD } from '../support/command.ts';
import { fileName, idOf, ndjson, newRow, nextWindowMs, type Row } from '../support/export-files.ts';
import { openAlertsOf } from '../support/installation-state.ts';
import { preloaded } from '../support/preload.ts';
import { until } from '../support/until.ts';

/** Backfills are checked and taken, but cannot be read again to be applied. */
const INTERRUPTED = preloaded(`
  import files from 'node:fs/promises';
  import { syncBuiltinESMExports } from 'node:module';
  const { open } = files;
  files.open = async (path, ...rest) => {
    if (/\\.taken\\/\\d+\\.newswire\\.backfill-/.test(String(path)))
      throw Object.assign(new Error('EIO: made to fail, open'), { code: 'EIO', syscall: 'open' });
    return open(path, ...rest);
  };
  syncBuiltinESMExports();
`);

const appliance = await sharedAppliance();

/** Drops a backfill and ends the program after the check, before any row was applied. */
async function interrupted(
  name: string,
  rows: readonly Row[],
  settings: Readonly<Record<string, string>> = {},
): Promise<void> {
  await appliance.restart({ ...settings, ...INTERRUPTED });
  appliance.put(name, ndjson(rows));
  await appliance.serving().logged('the interruption', ({ msg, file }) => {
    return msg.startsWith('cannot process a dropped file') && file === name;
  });
  await appliance.serving().stop();
}

const takenPath = (name: string) => {
  const taken = readdirSync(join(appliance.drop, '.taken')).find((one) => one.endsWith(name)) ?? '';
  return join(appliance.drop, '.taken', taken);
};

test('the earliest time is that of the check', { skip: NO_PRELOAD }, async () => {
  const [early, late] = [newRow({ first_detected_at: '2001-02-03T04:05:06Z' }), newRow()];
  for (const [label, rows] of [
    ['some', [...Array.from({ length: 19 }, () => newRow()), early]],
    ['all', Array.from({ length: 150 }, () => newRow({ first_detected_at: '2002-01-01T00:00:00Z' }))],
  ] as const) {
    const name = `newswire.backfill-earliest-${label}.ndjson`;
    await interrupted(name, rows, { WIREWATCH_INGEST_EARLIEST_TIME: '2000-01-01T00:00:00Z' });
    await appliance.restart({ WIREWATCH_INGEST_EARLIEST_TIME: '2010-01-01T00:00:00Z' });
    const line = await appliance.processed(name);
    assert.deepEqual([line.msg, line.created, line.bad_rows], ['file applied', rows.length, 0]);
    assert.ok(!('bounds' in line), 'of no use once the file is applied');
  }
  assert.ok(await appliance.detection(idOf(early)));
  const window = await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([late]));
  assert.equal(window.msg, 'file applied');
});

test('the rest waits while the export is switched off', { skip: NO_PRELOAD }, async () => {
  const name = 'newswire.backfill-off.ndjson';
  const row = newRow();
  await interrupted(name, [row]);
  await appliance.restart({ WIREWATCH_EXPORTS_NEWSWIRE_ENABLED: 'false' });
  const line = await appliance
    .serving()
    .logged('that it waits', ({ msg }) => msg === 'cannot resume a backfill: its export is switched off');
  assert.equal(line.file, name);
  assert.match(String(line.reason), /set \[exports\.newswire\] enabled = true/);
  await until('the alert', async () => (await openAlertsOf(appliance)).includes('file stuck'));
  assert.ok(existsSync(takenPath(name)));
  await appliance.restart();
  const applied = await appliance.processed(name);
  assert.deepEqual([applied.msg, applied.created, applied.unknown_rows], ['file applied', 1, {}]);
  assert.ok(await appliance.detection(idOf(row)));
  await until('the alert is over', async () => !(await openAlertsOf(appliance)).includes('file stuck'));
});

test('rows whose stream is gone since the check are counted and reported', { skip: NO_PRELOAD }, async () => {
  const name = 'newswire.backfill-streams.ndjson';
  appliance.cli(['subscription', 'add', '7400', '--account', 'agency']);
  const rows = [newRow(), newRow({ subscription_id: 7400 }), newRow({ subscription_id: 7500 })];
  await interrupted(name, rows);
  appliance.cli(['subscription', 'set', '7400', '--content-types', 'image']);
  appliance.cli(['subscription', 'add', '7500', '--account', 'agency']);
  await appliance.restart();
  const line = await appliance.processed(name);
  assert.deepEqual([line.msg, line.created, line.unknown_rows], ['file applied', 2, { '7400:text': 1 }]);
  await until('the alert', async () => (await openAlertsOf(appliance)).includes('rows skipped'));
});

test('a record of an earlier version: rows that are invalid now are counted, or fail this file alone', {
  skip: NO_PRELOAD,
}, async () => {
  const old = { first_detected_at: '2001-01-01T00:00:00Z' };
  const cases = [
    ['few', [newRow(), newRow(old)], 'file applied'],
    ['most', Array.from({ length: 101 }, () => newRow(old)), 'file failed'],
  ] as const;
  for (const [label, rows, outcome] of cases) {
    const name = `newswire.backfill-record-${label}.ndjson`;
    await interrupted(name, rows, { WIREWATCH_INGEST_EARLIEST_TIME: '2000-01-01T00:00:00Z' });
    const database = openDatabase(join(appliance.data, 'detections.db'), 'write', DETECTIONS_SCHEMA);
    database.exec(`UPDATE ingest_file SET report = json_remove(report, '$.bounds')`);
    database.close();
    await appliance.restart({ WIREWATCH_INGEST_EARLIEST_TIME: '2010-01-01T00:00:00Z' });
    const line = await appliance.processed(name);
    assert.equal(line.msg, outcome);
    if (outcome === 'file applied') assert.deepEqual([line.created, line.bad_rows], [1, 1]);
    else {
      assert.match(String(line.reason), /^the file no longer matches the export format; 0 of 101 rows were/);
      const reason = readFileSync(join(appliance.drop, `${line.destination}.reason.json`), 'utf8');
      assert.equal(JSON.parse(reason).errors[1].column, 'first_detected_at');
    }
  }
  const next = await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));
  assert.equal(next.msg, 'file applied', 'ingest goes on');
});

test('a file that was changed since the check fails alone', { skip: NO_PRELOAD }, async () => {
  const name = 'newswire.backfill-changed.ndjson';
  await interrupted(name, [newRow(), newRow()]);
  writeFileSync(takenPath(name), ndjson([newRow(), newRow()]));
  await appliance.restart();
  const line = await appliance.processed(name);
  assert.equal(line.msg, 'file failed');
  assert.match(
    String(line.reason),
    /^the file was changed while it was being applied; 2 of 2 rows were applied/,
  );
  const next = await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));
  assert.equal(next.msg, 'file applied', 'ingest goes on');
});
