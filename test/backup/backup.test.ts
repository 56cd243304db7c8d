/** `wirewatch backup`: a folder is updated. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { closeRemovals, removeSubscription } from '../../src/auth/removal.ts';
import { readState } from '../../src/backup/backup-state.ts';
import { writeBackup } from '../../src/backup/write-backup.ts';
import { entriesAfter } from '../../src/log/log-reader.ts';
import { openDatabase } from '../../src/store/database.ts';
import { takeLock } from '../../src/store/locks.ts';
import { openAccess } from '../support/access.ts';
import { startAppliance } from '../support/appliance.ts';
import {
  appliance,
  assertGood,
  backUp,
  drop,
  filesIn,
  type Printed,
  refusal,
  target,
  verified,
} from '../support/backup.ts';
import { runToEnd } from '../support/command.ts';
import { fileName, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { until } from '../support/until.ts';

describe('a folder', () => {
  test('gets the logs and the secret, accessible to the owner only; then only new parts', async () => {
    const folder = target('folder');
    const first = backUp(folder);
    assert.equal(first.path, folder);
    const [log = ''] = readdirSync(join(appliance.data, 'log'));
    const files = filesIn(first.path);
    assert.deepEqual([...files.keys()], ['access.db', 'backup.json', 'lock', `log/${log}`, 'secret'].sort());
    for (const { mode } of files.values()) assert.equal(mode, 0o600);
    assert.equal(statSync(folder).mode & 0o777, 0o700);
    assertGood(folder);

    const nothingNew = backUp(folder);
    assert.ok(nothingNew.written < 600, `${nothingNew.written}`);

    const before = filesIn(first.path).get(`log/${log}`)?.bytes ?? 0;
    await drop();
    const more = backUp(folder);
    const grown = (filesIn(first.path).get(`log/${log}`)?.bytes ?? 0) - before;
    assert.ok(grown > 0 && more.written < grown + 600, `${more.written} for ${grown}`);
    assert.ok(more.entries > first.entries);
    assertGood(folder);
  });

  test('of another installation, of a later state of this one, or with its data is refused and left alone', async () => {
    const folder = target('refused');
    backUp(folder);
    const before = target('refused-before');
    await appliance.serving().stop();
    cpSync(appliance.data, before, { recursive: true, preserveTimestamps: true });
    await appliance.restart();
    await drop();
    backUp(folder);
    const own = filesIn(folder);
    const later = runToEnd(['backup', folder, '--data', before]);
    assert.equal(later.status, 1);
    assert.match(later.stderr, /refused is left as it is: .* later state of this .* Name another folder/);
    const other = await startAppliance();
    try {
      await other.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));
      const { status, stderr } = other.cli(['backup', folder], { anyStatus: true });
      assert.equal(status, 1);
      assert.match(stderr, /is left as it is: it is a backup of another installation/);
      assert.match(refusal(['backup', before]), /is left as it is: it is a data folder/);
    } finally {
      await other.stop();
    }
    assert.deepEqual(filesIn(folder), own);
    assertGood(folder);
    backUp(folder);
  });

  test('of a state that was discarded by a restore is refused, also after the log is rewritten', async () => {
    const own = await startAppliance();
    const [folder, early] = [target('discarded'), target('discarded-early')];
    const write = () => own.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow(), newRow()]));
    const refused = (reason: RegExp) => {
      const { status, stderr } = own.cli(['backup', folder], { anyStatus: true });
      assert.equal(status, 1, stderr);
      assert.match(stderr, reason);
      assertGood(folder);
    };
    try {
      await write();
      own.cli(['backup', early]);
      await write();
      own.cli(['backup', folder]);
      await own.serving().stop();
      own.cli(['restore', early, '--replace']);
      refused(/discarded by a restore/);
      own.cli(['backup', early]);
      await own.restart();
      for (let count = 0; count < 3; count += 1) await write();
      own.cli(['compact']);
      refused(/the log was rewritten since/);
      own.cli(['backup', early]);
      assertGood(early);
    } finally {
      await own.stop();
    }
  });

  test('has a subscription whose removal is completed during the copy', async () => {
    const own = await startAppliance();
    try {
      await own.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));
      let isRemoved = false;
      const onProgress = () => {
        if (isRemoved) return;
        isRemoved = true;
        // As if the rows could not be deleted from the log.
        using access = openAccess(own.data);
        closeRemovals(access, removeSubscription(access, 7001).subscriptions);
      };
      const path = target('removal-meanwhile');
      writeBackup({
        data: own.data,
        target: path,
        drop: own.drop,
        now: Date.now,
        onProgress,
      });
      assert.ok(isRemoved);
      using copied = openDatabase(join(path, 'access.db'), 'inspect');
      const rows = (table: string) => copied.prepare(`SELECT count(*) FROM ${table}`).pluck().get();
      assert.deepEqual([rows('subscription'), rows('removal')], [2, 0], 'as before the removal');
    } finally {
      await own.stop();
    }
  });

  test('has no removed rows after the next backup, and an older one brings none back', async () => {
    const folder = target('removal');
    const own = await startAppliance();
    const backUpOwn = (): Printed => JSON.parse(own.cli(['backup', folder, '--json']).stdout);
    try {
      for (const subscription of ['9001', '9002'])
        own.cli(['subscription', 'add', subscription, '--account', 'agency']);
      const rows = [9001, 7001, 9002].map((id) => newRow({ subscription_id: id }));
      await own.dropped(fileName('newswire', nextWindowMs()), ndjson(rows));
      own.cli(['subscription', 'remove', '9002', '--yes']);
      await own.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));
      const { path } = backUpOwn();
      const linesOf = (log: string) =>
        [...entriesAfter(log, null)]
          .flatMap(({ part }) => part.lines)
          .filter((line) => line.includes('"t.9001.'));
      assert.equal(linesOf(join(path, 'log')).length, 1);
      const before = target('before-removal');
      cpSync(path, before, { recursive: true, preserveTimestamps: true });
      own.cli(['subscription', 'remove', '9001', '--yes']);
      backUpOwn();
      assert.deepEqual(linesOf(join(path, 'log')), []);
      assert.deepEqual(readdirSync(join(path, 'log')), readdirSync(join(own.data, 'log')));
      assertGood(folder);
      await own.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));
      backUpOwn();
      assertGood(folder);
      const elsewhere = runToEnd(['restore', folder, '--data', target('removed')]);
      assert.equal(elsewhere.status, 0, elsewhere.stderr);

      // access.db is the later one, which knows that the subscription was removed.
      await own.serving().stop();
      own.cli(['restore', before, '--replace']);
      const log = join(own.data, 'log');
      assert.ok(linesOf(log).length > 0);
      await own.restart();
      await until('the rows to be removed again', async () => linesOf(log).length === 0);
      assert.equal(own.cli(['verify']).status, 0);
    } finally {
      await own.stop();
    }
  });

  test('is not written by two at once', () => {
    const folder = target('two');
    backUp(folder);
    const release = takeLock(join(folder, 'lock'));
    try {
      assert.match(refusal(['backup', folder]), /another backup into .*two is running/);
    } finally {
      release?.();
    }
    backUp(folder);
  });

  test('is not created in the data folder or drop folder itself, or without its parent', () => {
    for (const place of [appliance.data, join(appliance.data, 'log'), join(appliance.data, 'log', 'x')])
      assert.match(refusal(['backup', place]), /is part of the data folder/);
    assert.match(refusal(['backup', join(appliance.drop, 'x')]), /is part of the drop folder/);
    const nowhere = refusal(['backup', target('nowhere/one')]);
    assert.match(nowhere, /cannot write .*one: there is no folder .*nowhere\. Create it/);
    assert.doesNotMatch(nowhere, /earlier backup/);
    assert.ok(!existsSync(target('nowhere')));
    writeFileSync(target('a-file'), '');
    for (const name of ['a-file', 'monday.tar'])
      assert.match(refusal(['backup', target(name)]), /a backup is a folder\..* pack the folder with tar/);
    assert.ok(!existsSync(target('monday.tar')));
    backUp(join(appliance.data, 'backups'));
  });
});

test('reports what it wrote and how to continue', () => {
  const { stdout } = appliance.cli(['backup', target('said')]);
  assert.match(stdout, /now contains the state of .* bytes written/);
  assert.match(stdout, /wirewatch verify .*said$/m);
  const [, restore = ''] = /Restore it on this machine: +wirewatch (.*)/.exec(stdout) ?? [];
  assert.match(restore, /^restore \S*said --replace --data \S+$/);
  assert.match(stdout, /contains the secret/);
});

test('a folder without an installation is refused with exit code 78', () => {
  const run = (...args: string[]) => {
    const main = join(import.meta.dirname, '..', '..', 'dist', 'main.cjs');
    return spawnSync(process.execPath, [main, ...args], { encoding: 'utf8' });
  };
  const empty = run('backup', target('none'), '--data', target('no-data'));
  assert.equal(empty.status, 78);
  assert.match(empty.stderr, /there is no installation in .*no-data/);
  run('account', 'add', 'a', '--name', 'A', '--data', target('fresh'));
  const fresh = run('backup', target('none'), '--data', target('fresh'));
  assert.equal(fresh.status, 78);
  assert.match(fresh.stderr, /nothing to back up .*Wirewatch has never been started/);
});

test('works without a running appliance', async () => {
  await appliance.serving().stop();
  backUp(target('stopped'));
  assertGood(target('stopped'));
  await appliance.restart();
});

test('a state of a newer version is refused', () => {
  const folder = target('newer');
  const { path } = backUp(folder);
  const state = readState(path);
  writeFileSync(join(path, 'backup.json'), JSON.stringify({ ...state, version: 9, program: '9.9' }));
  assert.match(verified(folder).findings.join(), /version 9.*9\.9/);
});
