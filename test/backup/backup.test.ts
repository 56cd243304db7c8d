/** `wirewatch backup`: a folder is updated. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { closeRemovals, removeSubscription } from '../../src/auth/removal.ts';
import { deleteOld, newestBranch, readState } from '../../src/backup/branch.ts';
import { writeBackup } from '../../src/backup/write-backup.ts';
import { entriesAfter } from '../../src/history/log-reader.ts';
import { openDatabase } from '../../src/store/database.ts';
import { takeLock } from '../../src/store/locks.ts';
import { DAY_MS, MINUTE_MS } from '../../src/time.ts';
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
    assert.equal(first.path, newestBranch(folder));
    assert.equal(first.new_branch, false, 'there is no other');
    const [log = ''] = readdirSync(join(appliance.data, 'log'));
    const files = filesIn(first.path);
    assert.deepEqual([...files.keys()], ['access.db', 'backup.json', `log/${log}`, 'secret'].sort());
    for (const { mode } of files.values()) assert.equal(mode, 0o600);
    assert.equal(statSync(folder).mode & 0o777, 0o700);
    assertGood(folder);

    const nothingNew = backUp(folder);
    assert.ok(nothingNew.written < 600, `${nothingNew.written}`);
    assert.equal(nothingNew.new_branch, false);

    const before = filesIn(first.path).get(`log/${log}`)?.bytes ?? 0;
    await drop();
    const more = backUp(folder);
    const grown = (filesIn(first.path).get(`log/${log}`)?.bytes ?? 0) - before;
    assert.ok(grown > 0 && more.written < grown + 600, `${more.written} for ${grown}`);
    assert.ok(more.entries > first.entries);
    assertGood(folder);
  });

  test('of another history is not changed: a new branch starts beside it', async () => {
    const folder = target('histories');
    const { path: first } = backUp(folder);
    const own = filesIn(first);
    const other = await startAppliance();
    try {
      await other.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));
      const second: Printed = JSON.parse(other.cli(['backup', folder, '--json']).stdout);
      assert.equal(second.new_branch, true);
      assert.notEqual(second.path, first);
      assert.deepEqual(filesIn(first), own);
      assert.equal(newestBranch(folder), second.path);
    } finally {
      await other.stop();
    }
    // Each backup continues its own copy.
    const again = backUp(folder);
    assert.deepEqual([again.path, again.new_branch], [first, false]);
    assert.equal(newestBranch(folder), first);
    assert.equal(readdirSync(folder).filter((name) => name.startsWith('wirewatch-')).length, 2);
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
      const { path } = writeBackup({
        data: own.data,
        target: target('removal-meanwhile'),
        drop: own.drop,
        keepDays: 30,
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

  test('begins a new branch after a removal; the old one is kept for keep_days, and brings no rows back', async () => {
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
      const next = backUpOwn();
      assert.deepEqual([next.path === path, next.new_branch], [false, true]);
      assert.deepEqual(linesOf(join(next.path, 'log')), []);
      assertGood(folder);
      assert.deepEqual([backUpOwn().path, backUpOwn().deleted], [next.path, []]);
      const name = next.path.slice(folder.length + 1);
      assert.deepEqual(deleteOld(folder, name, 30, Date.now() + 31 * DAY_MS), []);
      assert.deepEqual(deleteOld(folder, name, 30, Date.now() + 32 * DAY_MS), [path]);
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

  test('keeps other branches and replaced segments for keep_days', () => {
    const folder = target('kept');
    const { path } = backUp(folder);
    const name = path.slice(folder.length + 1);
    const now = Date.now();
    const state = JSON.parse(readFileSync(join(path, 'backup.json'), 'utf8'));
    for (const [branch, days] of [
      ['wirewatch-20200101T000000Z', 9],
      ['wirewatch-20200102T000000Z', 11],
    ] as const) {
      mkdirSync(join(folder, branch));
      const at = new Date(now - days * DAY_MS).toISOString().replace(/\.\d+/, '');
      writeFileSync(join(folder, branch, 'backup.json'), JSON.stringify({ ...state, at }));
    }
    const replaced = new Date(now - 11 * DAY_MS).toISOString().replace(/[-:]|\.\d+/g, '');
    mkdirSync(join(path, `replaced-${replaced}`));
    mkdirSync(join(path, 'replaced-20990101T000000Z'));
    mkdirSync(join(folder, 'mine'));
    assert.deepEqual(deleteOld(folder, name, 10, now), []);
    assert.deepEqual(deleteOld(folder, name, 10, now + DAY_MS - MINUTE_MS), []);
    assert.deepEqual(deleteOld(folder, name, 10, now + DAY_MS), [
      join(folder, 'wirewatch-20200102T000000Z'),
      join(path, `replaced-${replaced}`),
    ]);
    assert.deepEqual(
      readdirSync(folder).sort(),
      ['lock', 'mine', 'newest', 'wirewatch-20200101T000000Z', name].sort(),
    );
  });

  test('keeps other branches when the clock is a month ahead for a while, again and again', () => {
    const folder = target('clock');
    const { path } = backUp(folder);
    const name = path.slice(folder.length + 1);
    const other = 'wirewatch-20200101T000000Z';
    mkdirSync(join(folder, other));
    copyFileSync(join(path, 'backup.json'), join(folder, other, 'backup.json'));
    const now = Date.now();
    const deleted = (days: number, keepDays = 30) => deleteOld(folder, name, keepDays, now + days * DAY_MS);
    for (const day of [0.1, 31, 31.9, 0.2, 32.1, 33, 0.3, 40])
      assert.deepEqual(deleted(day), [], `day ${day}`);
    assert.deepEqual(deleted(0.4), []);
    assert.ok(!existsSync(join(path, 'expired.json')), 'nothing is past keep_days');
    assert.deepEqual(deleted(0.4, 0), [join(folder, other)], 'nothing is to be kept');
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
