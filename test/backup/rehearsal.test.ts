/** `wirewatch restore --rehearse`: restores into a temporary folder, and compares it with the installation. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { backupTimes } from '../../src/backup/branch.ts';
import { rehearse } from '../../src/backup/rehearse.ts';
import { openDatabase } from '../../src/store/database.ts';
import {
  appliance,
  assertSame,
  backup,
  contentOf,
  copyOf,
  file,
  restored,
  run,
  stopped,
  work,
} from '../support/restore.ts';

describe('a rehearsal', () => {
  const rehearsed = (...args: string[]) => {
    const { status, stdout, stderr } = run('restore', '--rehearse', ...args, '--json');
    assert.ok(status === 0 || status === 1, stderr);
    return { status, ...JSON.parse(stdout) };
  };

  test("reports the backup's time and its own duration, and compares the backup with the data folder", () => {
    const data = copyOf(stopped, 'rehearsed');
    const before = contentOf(data);
    const result = rehearsed(file, '--data', data);
    assert.deepEqual(
      [result.status, result.detections, result.compared, result.differences],
      [0, 50, 50, []],
    );
    assert.ok(result.seconds > 0 && result.state_of && result.backed_up_at);
    assert.equal(result.newer, 1, 'newer detections of the installation');
    assert.match(result.not_noted, /a \.tar file cannot record it/);
    assertSame(contentOf(data), before);
    assert.match(
      run('restore', '--rehearse', backup, '--data', data).stdout,
      /can be restored.*\(50 rows\).*has 1 newer row\..*time of this rehearsal is recorded in the backup/s,
    );
  });

  test('of a backup that grows meanwhile covers its earlier state, and is noted in it', async () => {
    const data = copyOf(stopped, 'rehearsed-meanwhile');
    const folder = copyOf(backup, 'backup-meanwhile');
    let isDone = false;
    const options = { source: folder, data, drop: join(data, 'drop'), now: Date.now };
    const result = await rehearse({
      ...options,
      onProgress(what) {
        if (isDone || what !== 'copying the log') return;
        isDone = true;
        assert.equal(run('backup', folder, '--data', data).status, 0);
      },
    });
    assert.ok(isDone);
    assert.deepEqual([result.differences, result.not_noted], [[], null]);
    assert.ok(backupTimes(folder).rehearsedMs);
    assert.equal(run('verify', folder).status, 0);
  });

  test('without a data folder creates none', () => {
    const data = join(work, 'rehearsed-nowhere');
    assert.equal(rehearsed(backup, '--data', data).compared, null);
    assert.ok(!existsSync(data));
  });

  test('compares the rows themselves', () => {
    const data = copyOf(stopped, 'rehearsed-row');
    const db = openDatabase(join(data, 'detections.db'), 'plain');
    db.exec(
      'UPDATE stream_row SET body = replace(body, \'"version":1\', \'"version":7\') WHERE place % 10 = 4',
    );
    db.close();
    const result = rehearsed(backup, '--data', data);
    assert.equal(result.status, 1);
    assert.match(
      result.differences.join(),
      /50 rows in the backup, 51 in the installation; they differ between rows 1 and 50/,
    );
    assert.match(result.not_noted, /the backup differs from the installation/);
  });

  test('runs beside an appliance', () => {
    const { stdout } = appliance.cli(['restore', '--rehearse', backup, '--json']);
    assert.equal(JSON.parse(stdout).compared, 50);
  });

  test('finds a difference, and a backup that cannot be restored', () => {
    const other = join(work, 'rehearsed-other');
    restored(backup, '--data', other);
    const data = copyOf(stopped, 'rehearsed-differs');
    const db = openDatabase(join(data, 'detections.db'), 'read');
    db.close();
    run('subscription', 'remove', '7001', '--yes', '--data', data);
    const result = rehearsed(backup, '--data', data);
    assert.equal(result.status, 1);
    assert.match(result.differences.join(), /50 rows in the backup, 0 in the installation/);
    assert.equal(run('restore', '--rehearse', join(work, 'text.tar'), '--data', data).status, 1);
    assert.equal(run('restore', '--rehearse', '--replace', backup, '--data', data).status, 2);
  });
});
