/**
 * The archive: no file is overwritten, none that a backup needs is deleted, and unreadable files do not stop ingest.
 */

import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join, relative } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openDatabase } from '../../src/store/database.ts';
import { DETECTIONS_SCHEMA } from '../../src/store/detections-schema.ts';
import { formatMs, HOUR_MS, utcDay, WINDOW_MS } from '../../src/time.ts';
import { type Appliance, showLogOfFailures, startAppliance } from '../support/appliance.ts';
import { NO_PRELOAD } from '../support/command.ts';
import { fileName, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { untilIdle } from '../support/installation-state.ts';
import { failingCall } from '../support/preload.ts';
import { until } from '../support/until.ts';

const SHIFTED_CLOCK = join(import.meta.dirname, '..', 'support', 'shifted-clock.cjs');
const IN_ARCHIVE = /\/archive\//;

let appliance: Appliance;
showLogOfFailures(() => appliance?.serving());
beforeEach(async () => {
  appliance = await startAppliance({ WIREWATCH_INGEST_QUIET_MS: '0' });
});
afterEach(() => appliance?.stop());

const archived = () =>
  readdirSync(join(appliance.drop, 'archive'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
const apply = async (name = fileName('newswire', nextWindowMs())) => {
  const line = await appliance.dropped(name, ndjson([newRow()]));
  assert.equal(line.msg, 'file applied');
  return join(appliance.drop, String(line.destination));
};
const database = () => join(appliance.data, 'detections.db');

test('files that cannot be moved there yet are all kept, even with the same name', async () => {
  const day = join(appliance.drop, 'archive', utcDay(Date.now()));
  writeFileSync(day, 'in the way');
  const name = fileName('newswire', nextWindowMs());
  const contents = [ndjson([newRow()]), ndjson([newRow()])];
  for (const [index, content] of contents.entries()) {
    appliance.put(name, content);
    await until('it is applied', () => {
      const db = openDatabase(database(), 'read');
      const { count } =
        db.prepare<[], { count: number }>('SELECT count(*) AS count FROM ingest_file').get() ?? {};
      db.close();
      return count === index + 1;
    });
  }
  assert.equal(archived().length, 1);
  rmSync(day);
  await untilIdle(appliance, appliance.serving());
  assert.deepEqual(
    archived()
      .map((path) => readFileSync(path, 'utf8'))
      .sort(),
    contents.toSorted(),
  );
});

test('a replay names unreadable files, and continues', async () => {
  const [broken] = [await apply(), await apply()];
  rmSync(broken);
  mkdirSync(broken);
  const from = formatMs(Date.now() - HOUR_MS);
  const { status, stdout } = appliance.cli(['ingest', 'replay', '--from', from, '--json'], {
    anyStatus: true,
  });
  assert.equal(status, 1);
  const { files, unreadable } = JSON.parse(stdout);
  assert.deepEqual([files, unreadable.length], [1, 1]);
  assert.match(unreadable[0].reason, /is not a file$/);
  await apply();
});

test('an inaccessible file is not taken for missing: reset reports it, and finds it later', async () => {
  const window = nextWindowMs();
  const line = await appliance.dropped(fileName('newswire', window), 'broken\n');
  assert.equal(line.msg, 'file failed');
  const failed = join(appliance.drop, 'failed');
  const away = join(appliance.drop, '.failed-away');
  // Nobody can follow a link to itself, not even root.
  renameSync(failed, away);
  symlinkSync(failed, failed);
  const reset = () => appliance.cli(['window', 'reset', 'newswire', formatMs(window)], { anyStatus: true });
  assert.equal(reset().status, 1);
  rmSync(failed);
  renameSync(away, failed);
  const { stdout, stderr } = reset();
  assert.match(`${stdout}${stderr}`, /failed again/);
  await apply();
});

describe('a backfill that was interrupted', () => {
  const name = 'newswire.backfill-history.ndjson';
  const report = (number: number, msg: string) =>
    appliance
      .serving()
      .logged(`${msg}, number ${number}`, (line) => line.msg === msg && line.number === number);
  const isAlertOpen = (alert: string) => {
    const open: { name: string }[] = JSON.parse(appliance.cli(['alert', 'list', '--json']).stdout);
    return open.some((one) => one.name === alert);
  };
  const isApplying = () =>
    JSON.parse(appliance.cli(['ingest', 'status', '--json']).stdout).applying.length > 0;

  /** @returns where its file is */
  async function interrupted(): Promise<string> {
    const rows = Array.from({ length: 41_000 }, () => newRow({ exported_at: '2026-11-01T00:00:00Z' }));
    appliance.put(name, ndjson(rows));
    await until('its first part is in', () => {
      const db = openDatabase(database(), 'read');
      const found = db.prepare('SELECT 1 FROM ingest_file WHERE rows_applied > 0').get();
      db.close();
      return found !== undefined;
    });
    await appliance.serving().kill();
    const [taken = ''] = readdirSync(join(appliance.drop, '.taken')).filter((one) => one.endsWith(name));
    return join(appliance.drop, '.taken', taken);
  }

  test('waits while its file cannot be read, fails when it is gone, and is read when it is back', async () => {
    const here = await interrupted();
    const away = join(appliance.drop, '.away');
    renameSync(here, away);
    mkdirSync(here);
    await appliance.restart();
    const stuck = await appliance
      .serving()
      .logged('the report that it is stuck', ({ msg }) => msg.startsWith('cannot resume a backfill'));
    assert.equal(stuck.file, name);
    await apply();
    await until('the alert opens', () => isAlertOpen('file stuck'));
    assert.ok(isApplying());
    rmdirSync(here);
    const { reason, destination } = await report(1, 'file failed');
    assert.match(String(reason), /^the file is gone; 2\d,\d{3} of 41,000 rows were applied: drop it again$/);
    assert.equal(destination, null);
    await until('the alert closes', () => !isAlertOpen('file stuck') && !isApplying());
    renameSync(away, here);
    assert.equal((await report(3, 'file applied')).rows, 41_000);
    const failures = appliance.serving().log.filter(({ msg }) => msg === 'file failed');
    assert.equal(failures.length, 1);
  });

  test('ends when its file was dropped again', async () => {
    renameSync(await interrupted(), join(appliance.drop, name));
    await appliance.restart();
    await report(2, 'file applied');
    assert.match(String((await report(1, 'file repeated')).reason), /^same content as file 2/);
    assert.ok(!isApplying());
  });

  test('ends after a restore of a backup that was made meanwhile', async () => {
    await interrupted();
    const backup = join(appliance.data, 'backup');
    assert.equal(appliance.cli(['backup', backup]).status, 0);
    await appliance.restart();
    await report(1, 'file applied');
    await appliance.serving().stop();
    rmSync(join(appliance.data, 'log'), { recursive: true });
    assert.equal(appliance.cli(['restore', backup, '--replace']).status, 0);
    await appliance.restart();
    await report(3, 'file applied');
    assert.match(String((await report(1, 'file repeated')).reason), /^same content as file 3/);
    assert.ok(!isApplying() && !isAlertOpen('file stuck'));
    assert.deepEqual(readdirSync(join(appliance.drop, '.taken')), []);
  });
});

describe('[ingest] archive_days', () => {
  const DELETED = 'deleted old files from the archive';
  // An hour of the program is a second. The comparison with the log would find the times that are moved here.
  const hasty = { WIREWATCH_HASTE: '3600', WIREWATCH_VERIFY_EVERY_HOURS: '0' };
  const settings = { WIREWATCH_INGEST_ARCHIVE_DAYS: '1', ...hasty };
  let files: string[];

  /** Makes three files look as if applied this many hours ago. */
  async function past(hours: readonly number[]): Promise<void> {
    files = [];
    for (const _ of hours) files.push(await apply());
    await appliance.serving().stop();
    const db = openDatabase(database(), 'write', DETECTIONS_SCHEMA);
    const age = db.prepare('UPDATE ingest_file SET finished_at = finished_at - ? WHERE number = ?');
    for (const [index, ago] of hours.entries()) age.run(ago * HOUR_MS, index + 1);
    db.close();
  }
  const left = () => files.map((file) => existsSync(file));

  test('deletes older files, but none in the first hour after a start, when the clock may be wrong', async () => {
    await past([96, 36, 12]);
    await appliance.restart({ WIREWATCH_INGEST_ARCHIVE_DAYS: '1' });
    await apply();
    await appliance
      .serving()
      .logged('work for which no file waits', ({ msg }) => msg === 'checked for missing windows');
    await sleep(500);
    assert.deepEqual(left(), [true, true, true]);
    await appliance.restart(settings);
    await appliance.serving().logged('the deletion of some files', ({ msg }) => msg === DELETED);
    assert.deepEqual(left(), [false, false, true]);
  });

  test('keeps a file that was read while the clock was far behind', { skip: NO_PRELOAD }, async () => {
    await past([40 * 24, 0]);
    await appliance.restart({
      NODE_OPTIONS: `--require=${SHIFTED_CLOCK}`,
      TEST_CLOCK_SHIFT_MS: String(Date.parse('2000-01-01T00:00:00Z') - Date.now()),
    });
    const window = fileName('newswire', nextWindowMs() - WINDOW_MS);
    const backfill = 'newswire.backfill-behind.ndjson';
    files.push(await apply(window), await apply(backfill));
    await appliance.restart({ WIREWATCH_INGEST_ARCHIVE_DAYS: '30', ...hasty });
    const line = await appliance.serving().logged('a deletion', ({ msg }) => msg === DELETED);
    assert.equal(line.files, 1);
    assert.deepEqual(left(), [false, true, true, true]);
  });

  test('a file that cannot be deleted delays neither others nor ingest', async () => {
    await past([96, 72, 48]);
    const [first = ''] = files;
    rmSync(first);
    mkdirSync(first);
    await appliance.restart(settings);
    const line = await appliance
      .serving()
      .logged('the failed deletion', ({ msg }) => msg.startsWith('cannot delete an old'));
    assert.deepEqual([line.level, line.file], ['warn', relative(appliance.drop, first)]);
    await appliance
      .serving()
      .logged('the deletion of the others', ({ msg, files: count }) => msg === DELETED && count === 2);
    assert.deepEqual(left(), [true, false, false]);
    await apply();
    rmdirSync(first);
  });

  test('a file stays until its notes can be deleted, so that its record stays true', async () => {
    await past([48, 36]);
    const [first = ''] = files;
    mkdirSync(`${first}.reason.json`);
    await appliance.restart(settings);
    const serving = appliance.serving();
    await serving.logged('the failed deletion', ({ msg }) => msg.startsWith('cannot delete an old'));
    await serving.logged('the deletion of the other', ({ msg }) => msg === DELETED);
    assert.deepEqual(left(), [true, false]);
  });

  test('if a full disk stops it, it goes on as soon as there is room', { skip: NO_PRELOAD }, async () => {
    await past([48, 36]);
    const full = failingCall('unlink', 'ENOSPC', IN_ARCHIVE, join(appliance.data, 'full'));
    full.begin();
    await appliance.restart({ ...settings, ...full.settings });
    const serving = appliance.serving();
    await serving.logged('the full disk', ({ alert }) => alert === 'disk full');
    full.end();
    await serving.logged('the deletion of both', ({ msg, files: count }) => msg === DELETED && count === 2);
    assert.deepEqual(left(), [false, false]);
  });
});

test('orphaned files that cannot be moved out of the archive stop nothing, and are retried', {
  skip: NO_PRELOAD,
}, async () => {
  const orphan = await apply();
  await appliance.serving().stop();
  const db = openDatabase(database(), 'write', DETECTIONS_SCHEMA);
  db.exec(`DELETE FROM ingest_file;
    INSERT INTO version_epoch (number, at, reason, position, orphans) VALUES (1, 1, 'test', 1, 'to read')`);
  db.close();
  const busy = failingCall('rename', 'EBUSY', IN_ARCHIVE, join(appliance.data, 'busy'));
  busy.begin();
  const serving = await appliance.serve(busy.settings);
  await serving.logged('the report that it is stuck', ({ msg }) =>
    /^cannot move files without a record/.test(msg),
  );
  const name = fileName('newswire', nextWindowMs());
  appliance.put(name, ndjson([newRow()]));
  await serving.logged('another file', ({ msg, file }) => msg === 'file applied' && file === name);
  assert.ok(existsSync(orphan));
  busy.end();
  await serving.logged('the files to be read', ({ msg }) =>
    /^reading archived files without a record/.test(msg),
  );
  await serving.stop();
});
