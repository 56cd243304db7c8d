/** The archive: no file is overwritten, none that a backup needs is deleted, and unreadable files do not stop ingest. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, test } from 'node:test';
import { formatMs, HOUR_MS, utcDay, WINDOW_MS } from '../../src/time.ts';
import { sharedAppliance } from '../support/appliance.ts';
import { NO_PRELOAD } from '../support/command.ts';
import { changeDetections } from '../support/database-content.ts';
import { fileName, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { untilIdle } from '../support/installation-state.ts';
import { failingCall, PATH_OF, preloadedFs, shiftedClock } from '../support/preload.ts';
import { filesBelow } from '../support/test-folder.ts';
import { until } from '../support/until.ts';

const IN_ARCHIVE = /\/archive\//;

// The comparison with the log would find the changes that are made here.
const appliance = await sharedAppliance({
  WIREWATCH_INGEST_QUIET_MS: '0',
  WIREWATCH_VERIFY_EVERY_HOURS: '0',
});

const archived = () => filesBelow(join(appliance.drop, 'archive'));
const apply = async (name = fileName('newswire', nextWindowMs())) => {
  const line = await appliance.dropped(name, ndjson([newRow()]));
  assert.equal(line.msg, 'file applied');
  return { path: join(appliance.drop, String(line.destination)), number: Number(line.number) };
};

test('files that cannot be moved there yet are all kept, even with the same name', async () => {
  const day = join(appliance.drop, 'archive', utcDay(Date.now()));
  writeFileSync(day, 'in the way');
  const name = fileName('newswire', nextWindowMs());
  const contents = [ndjson([newRow()]), ndjson([newRow()])];
  for (const content of contents) {
    appliance.put(name, content);
    await until('it is taken', () => !existsSync(join(appliance.drop, name)));
  }
  assert.equal(archived().length, 1);
  rmSync(day);
  await untilIdle(appliance);
  const found = archived().map((path) => readFileSync(path, 'utf8'));
  assert.deepEqual(found.sort(), contents.toSorted());
});

test('a replay names unreadable files, and continues', async () => {
  const broken = await apply();
  rmSync(broken.path);
  mkdirSync(broken.path);
  await apply();
  const replay = ['ingest', 'replay', '--from', formatMs(Date.now() - HOUR_MS), '--json'];
  const { status, stdout } = appliance.cli(replay, { anyStatus: true });
  assert.equal(status, 1);
  const { files, unreadable } = JSON.parse(stdout);
  assert.deepEqual([files, unreadable.length], [archived().length, 1]);
  assert.match(unreadable[0].reason, /is not a file$/);
  rmSync(broken.path, { recursive: true });
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

test('orphaned files that cannot be moved out of the archive stop nothing, and are retried', {
  skip: NO_PRELOAD,
}, async () => {
  const orphan = await apply();
  await appliance.serving().stop();
  changeDetections(
    appliance.data,
    `DELETE FROM ingest_file;
      INSERT INTO version_epoch (number, at, reason, position, orphans) VALUES (1, 1, 'test', 1, 'to read')`,
  );
  const busy = failingCall('rename', 'EBUSY', IN_ARCHIVE, join(appliance.data, 'busy'));
  busy.begin();
  await appliance.restart(busy.settings);
  await appliance.logged(/^a file cannot be read or moved/);
  await apply();
  assert.ok(existsSync(orphan.path));
  busy.end();
  await appliance.logged(/^reading archived files without a record/);
});

test('orphaned files are read by the names they were dropped under, also where the disk is mounted late', async () => {
  const ownNames = { WIREWATCH_EXPORTS_NEWSWIRE_FILE_NAME: 'treffer.{YYYYMMDD}.{HHmm}.ndjson' };
  await appliance.restart(ownNames);
  const orphans: { name: string; number: number }[] = [];
  for (const added of ['2', '2.1']) {
    const name = fileName('newswire', nextWindowMs()).replace(/^newswire\.(\d+)T(\d+)Z/, 'treffer.$1.$2');
    const { path, number } = await apply(name);
    await until('it is in the archive', () => existsSync(path));
    renameSync(path, path.replace(/ndjson$/, `${added}.ndjson`));
    orphans.push({ name, number });
  }
  await appliance.serving().stop();
  changeDetections(
    appliance.data,
    `DELETE FROM ingest_file WHERE number IN (${orphans.map(({ number }) => number)});
      UPDATE version_epoch SET orphans = 'read';
      INSERT INTO version_epoch (number, at, reason, position, orphans)
      SELECT coalesce(max(number), 0) + 1, 1, 'test', 2, 'to read' FROM version_epoch`,
  );
  const away = `${appliance.drop}-away`;
  renameSync(appliance.drop, away);
  await appliance.restart(ownNames);
  await appliance.logged(/^checked for missing windows$/);
  renameSync(appliance.drop, `${away}-made`);
  renameSync(away, appliance.drop);
  const read = await appliance.logged(/^reading archived files without a record/);
  assert.equal(read.files, 2);
  for (const { name } of orphans) await appliance.logged(/^file applied$/, { file: name });
});

describe('[ingest] archive_days', { skip: NO_PRELOAD }, () => {
  const DELETED = /^deleted old files from the archive$/;
  const assertLeft = (paths: readonly string[], left: readonly boolean[]) =>
    assert.deepEqual(paths.map(existsSync), left);
  // An hour of the program is a second.
  const hasty = { WIREWATCH_HASTE: '3600' };

  /** Makes files look as if applied this many hours ago, and stops. */
  async function past(hours: readonly number[]): Promise<string[]> {
    const files: { path: string; number: number }[] = [];
    for (const _ of hours) files.push(await apply());
    await appliance.serving().stop();
    changeDetections(appliance.data, (db) => {
      const age = db.prepare('UPDATE ingest_file SET finished_at = finished_at - ? WHERE number = ?');
      for (const [index, ago] of hours.entries()) age.run(ago * HOUR_MS, files[index]?.number);
    });
    return files.map(({ path }) => path);
  }

  test('deletes older files, once the disk has room; one that cannot be deleted delays neither others nor ingest', async () => {
    const files = await past([96, 72, 48, 36, 12]);
    const [folder = '', noted = ''] = files;
    rmSync(folder);
    mkdirSync(folder);
    // A file stays until its notes can be deleted, so that its record stays true.
    mkdirSync(`${noted}.reason.json`);
    // Without bad rows, what has such a name is another file.
    const other = `${files[2]}.skipped.ndjson`;
    writeFileSync(other, '');
    const full = failingCall('unlink', 'ENOSPC', IN_ARCHIVE, join(appliance.data, 'full'));
    full.begin();
    await appliance.restart({ WIREWATCH_INGEST_ARCHIVE_DAYS: '1', ...hasty, ...full.settings });
    await appliance.logged(/^alert opened$/, { alert: 'disk full' });
    full.end();
    await appliance.logged(DELETED, { files: 2 });
    for (const path of [folder, noted]) {
      const file = relative(appliance.drop, path);
      await appliance.logged(/^cannot delete an old/, { level: 'warn', file });
    }
    assertLeft(files, [true, true, false, false, true]);
    assert.ok(existsSync(other));
    await apply();
    for (const path of [folder, `${noted}.reason.json`]) rmSync(path, { recursive: true });
  });

  test('keeps a file that was read while the clock was far behind', async () => {
    const files = await past([40 * 24, 0]);
    await appliance.restart(shiftedClock(Date.parse('2000-01-01T00:00:00Z') - Date.now()));
    const newest = fileName('newswire', nextWindowMs() - WINDOW_MS);
    for (const name of [newest, 'newswire.backfill-behind.ndjson']) files.push((await apply(name)).path);
    await appliance.restart({ WIREWATCH_INGEST_ARCHIVE_DAYS: '30', ...hasty });
    assert.equal((await appliance.logged(DELETED)).files, 1);
    assertLeft(files, [false, true, true, true]);
  });

  test('deletes nothing, and forgets nothing, while the disk of the drop folder is not mounted', async () => {
    const [old = ''] = await past([72]);
    const away = `${appliance.drop}-unmounted`;
    renameSync(appliance.drop, away);
    // Notes each look at the archive.
    const looks = join(dirname(appliance.data), 'looks');
    writeFileSync(looks, '');
    const noting = preloadedFs(`
      const { readdirSync, appendFileSync } = fs;
      fs.readdirSync = (path, ...rest) => {
        if (/\\/archive$/.test(${PATH_OF}(path))) appendFileSync(${JSON.stringify(looks)}, '.');
        return readdirSync(path, ...rest);
      };
    `);
    await appliance.restart({ WIREWATCH_INGEST_ARCHIVE_DAYS: '1', ...hasty, ...noting });
    await until('two looks at the empty archive', () => readFileSync(looks).length >= 2);
    const early = appliance.serving().log.filter(({ msg }) => DELETED.test(msg));
    renameSync(appliance.drop, `${appliance.drop}-mount-point`);
    renameSync(away, appliance.drop);
    assert.deepEqual(early, []);
    await appliance.logged(DELETED);
    assert.equal(existsSync(old), false);
  });

  // Last: windows before that one are taken for missing.
  test('keeps new files after a clock that was far ahead', async () => {
    const files = await past([40 * 24, 0]);
    const aheadMs = 400 * 24 * HOUR_MS;
    await appliance.restart(shiftedClock(aheadMs));
    const windowMs = Math.floor((Date.now() + aheadMs) / WINDOW_MS - 1) * WINDOW_MS;
    files.push((await apply(fileName('newswire', windowMs))).path);
    await appliance.restart({ WIREWATCH_INGEST_ARCHIVE_DAYS: '30', ...hasty });
    assert.equal((await appliance.logged(DELETED)).files, 1);
    assertLeft(files, [false, true, true]);
  });
});
