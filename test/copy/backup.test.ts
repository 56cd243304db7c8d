/** `wirewatch backup`: a place is brought up to date. */
import assert from 'node:assert/strict';
import { cpSync, existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { closeRemovals, removeSubscription } from '../../src/auth/removal.ts';
import { openFolderPlace } from '../../src/copy/folder-place.ts';
import { readCopiedAccess } from '../../src/copy/own-copy.ts';
import { entriesAfter } from '../../src/log/log-reader.ts';
import { openContent } from '../../src/store/database.ts';
import { openAccess } from '../support/access.ts';
import { sharedAppliance, startAppliance } from '../support/appliance.ts';
import { assertFailed, runToEnd, succeed } from '../support/command.ts';
import { copyTo, logOf } from '../support/copy-at.ts';
import { fileName, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { testFolder } from '../support/test-folder.ts';
import { until } from '../support/until.ts';

const work = testFolder();
const appliance = await sharedAppliance();
const target = (name: string) => join(work, name);
const drop = () => appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));
await drop();

const backUp = (to: string): { path: string; written: number; entries: number; access_changes: number } =>
  JSON.parse(appliance.cli(['backup', to, '--json']).stdout);

function assertGood(source: string): void {
  const { stdout } = appliance.cli(['verify', source, '--json'], { anyStatus: true });
  const { ok, findings } = JSON.parse(stdout);
  assert.deepEqual([ok, findings], [true, []]);
}

function assertRefused(args: readonly string[], why: RegExp, code = 1): void {
  const refused = appliance.cli(args, { anyStatus: true });
  assertFailed(refused, code, why);
  assert.equal(refused.stdout, '');
}

/** Names and sizes. */
function filesIn(folder: string): Map<string, number> {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort();
  const stats = names.map((name) => [name, statSync(join(folder, name))] as const);
  return new Map(stats.flatMap(([name, stat]) => (stat.isFile() ? [[name, stat.size]] : [])));
}

describe('a folder', () => {
  test('gets log, access.db and secret; then only what is new', async () => {
    const folder = target('folder');
    const first = backUp(folder);
    assert.equal(first.path, folder);
    const access = `access/${String(first.access_changes).padStart(16, '0')}.db.zst`;
    const part = 'log/0001/0000000000000001.zst';
    const files = filesIn(folder);
    assert.deepEqual([...files.keys()], [access, 'installation.json', part, 'secret']);
    assertGood(folder);
    assert.equal(backUp(folder).written, 0);
    await drop();
    const more = backUp(folder);
    assert.ok(more.entries > first.entries);
    const added = [...filesIn(folder)].filter(([name]) => !files.has(name));
    const next = `log/0001/${String(first.entries + 1).padStart(16, '0')}.zst`;
    assert.deepEqual(added, [[next, more.written]]);
    assertGood(folder);
  });

  test('of a later state, or with data, is refused and left alone', async () => {
    const folder = target('refused');
    backUp(folder);
    const before = target('refused-before');
    await appliance.serving().stop();
    cpSync(appliance.data, before, { recursive: true, preserveTimestamps: true });
    await appliance.restart();
    await drop();
    backUp(folder);
    const own = filesIn(folder);
    const later = /refused is left as it is: .* later state of this .* Name another place/;
    assertFailed(runToEnd(['backup', folder, '--data', before]), 1, later);
    const data = filesIn(before);
    assertRefused(['backup', before], /is left as it is: it is a data folder/);
    assert.deepEqual(filesIn(before), data);
    assert.deepEqual(filesIn(folder), own);
    assertGood(folder);
    backUp(folder);
  });

  test('has a subscription whose removal is completed during the copy', async () => {
    await using own = await startAppliance();
    await own.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));
    let isRemoved = false;
    const onProgress = () => {
      if (isRemoved) return;
      isRemoved = true;
      // As if the rows could not be deleted from the log.
      using access = openAccess(own.data);
      closeRemovals(access, removeSubscription(access, 7001).subscriptions);
    };
    const folder = target('removal-meanwhile');
    await copyTo(folder, own.data, onProgress);
    assert.ok(isRemoved);
    using copied = openContent((await readCopiedAccess(openFolderPlace(folder))).content);
    const rows = (table: string) => copied.prepare(`SELECT count(*) FROM ${table}`).pluck().get();
    assert.deepEqual([rows('subscription'), rows('removal')], [2, 0], 'as before the removal');
  });

  test('has no removed rows after the next backup, and an older copy brings none back', async () => {
    const folder = target('removal');
    await using own = await startAppliance();
    const isRemoved = (line: string) => line.includes('"t.9001.');
    const left = async (copy: string) => (await logOf(copy)).lines.filter(isRemoved).length;
    for (const subscription of ['9001', '9002'])
      own.cli(['subscription', 'add', subscription, '--account', 'agency']);
    const rows = [9001, 7001, 9002].map((id) => newRow({ subscription_id: id }));
    await own.dropped(fileName('newswire', nextWindowMs()), ndjson(rows));
    own.cli(['subscription', 'remove', '9002', '--yes']);
    await own.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));
    own.cli(['backup', folder]);
    assert.equal(await left(folder), 1);
    const before = target('before-removal');
    cpSync(folder, before, { recursive: true, preserveTimestamps: true });
    own.cli(['subscription', 'remove', '9001', '--yes']);
    own.cli(['backup', folder]);
    assert.equal(await left(folder), 0);
    assertGood(folder);
    succeed(['restore', folder, '--data', target('removed')]);

    // access.db is the later one, which knows that the subscription was removed.
    await own.serving().stop();
    own.cli(['restore', before, '--replace']);
    const entries = () => entriesAfter(join(own.data, 'log'), null);
    const inLog = () => entries().some(({ part }) => part.lines().some(isRemoved));
    assert.ok(inLog());
    await own.restart();
    await until('the rows to be removed again', async () => !inLog());
    assert.equal(own.cli(['verify']).status, 0);
  });

  test('is not created in the data folder or drop folder itself, or without its parent', () => {
    for (const place of [appliance.data, join(appliance.data, 'log'), join(appliance.data, 'log', 'x')])
      assertRefused(['backup', place], /is part of the data folder/);
    assertRefused(['backup', join(appliance.drop, 'x')], /is part of the drop folder/);
    const lost = /cannot write the copy .*one: .*no such file or folder\. Check that the disk/;
    assertRefused(['backup', target('nowhere/one')], lost);
    assert.ok(!existsSync(target('nowhere')));
    writeFileSync(target('a-file'), '');
    assertRefused(['backup', target('a-file')], /cannot write the copy .*a-file: .*Use another folder/);
    backUp(join(appliance.data, 'copy'));
    rmSync(join(appliance.data, 'copy'), { recursive: true });
  });
});

test('reports what it wrote and how to continue', () => {
  const { stdout } = appliance.cli(['backup', target('said')]);
  assert.match(stdout, /said is up to date\. .* bytes written/);
  assert.match(stdout, /wirewatch verify .*said$/m);
  const [, restore = ''] = /Restore it on this machine: +wirewatch (.*)/.exec(stdout) ?? [];
  assert.match(restore, /^restore \S*said --replace --data \S+$/);
  assert.match(stdout, /contains the secret/);
});

test('without a place, in the command or in the configuration, it is a mistake in the command', () => {
  assertRefused(['backup'], /no place for the copy.*\[copy\] to/, 2);
});

test('an installation that was never started is refused with exit code 78', () => {
  runToEnd(['account', 'add', 'a', '--name', 'A', '--data', target('fresh')]);
  const fresh = runToEnd(['backup', target('none'), '--data', target('fresh')]);
  assertFailed(fresh, 78, /secret is missing\. The first start makes it: wirewatch serve/);
});
