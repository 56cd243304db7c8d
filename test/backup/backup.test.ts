/** `wirewatch backup`: a folder brought up to date, or one file; always restorable to its last good moment. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { list, type ReadEntry } from 'tar';
import { deleteOld, newestBranch, readState } from '../../src/backup/branch.ts';
import { copyLog } from '../../src/backup/log-copy.ts';
import { LogDamage } from '../../src/history/log-error.ts';
import { entriesAfter, findTail } from '../../src/history/log-reader.ts';
import { LogWriter } from '../../src/history/log-writer.ts';
import { takeLock } from '../../src/store/locks.ts';
import { DAY_MS } from '../../src/time.ts';
import { type Appliance, showLogOfFailures, startAppliance } from '../support/appliance.ts';
import { fileName, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { runProgram } from '../support/program.ts';
import { addEntries, makeLog, rewrite } from '../support/small-log.ts';
import { until } from '../support/until.ts';

let appliance: Appliance;
let work: string;
showLogOfFailures(() => appliance?.serving());
before(async () => {
  appliance = await startAppliance();
  work = mkdtempSync(join(tmpdir(), 'wirewatch-backups-'));
  await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow(), newRow()]));
});
after(async () => {
  await appliance?.stop();
  rmSync(work, { recursive: true, force: true });
});

const target = (name: string) => join(work, name);
const drop = () => appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));

interface Printed {
  readonly path: string;
  readonly written: number;
  readonly entries: number;
  readonly new_branch: boolean;
  readonly deleted: readonly string[];
}

function backUp(to: string, ...more: string[]): Printed {
  return JSON.parse(appliance.cli(['backup', to, '--json', ...more]).stdout);
}

function verified(source: string): { ok: boolean; findings: string[]; entries: number } {
  return JSON.parse(appliance.cli(['verify', source, '--json'], { anyStatus: true }).stdout);
}

function assertGood(source: string): void {
  const { ok, findings } = verified(source);
  assert.deepEqual([ok, findings], [true, []]);
}

function refusal(args: readonly string[], code = 1): string {
  const { status, stdout, stderr } = appliance.cli(args, { anyStatus: true });
  assert.equal(status, code, stderr);
  assert.equal(stdout, '');
  return stderr;
}

function filesIn(folder: string): Map<string, { bytes: number; mode: number }> {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort();
  return new Map(
    names
      .map((name) => [name, statSync(join(folder, name))] as const)
      .filter(([, stats]) => stats.isFile())
      .map(([name, stats]) => [name, { bytes: stats.size, mode: stats.mode & 0o777 }]),
  );
}

describe('a folder', () => {
  test('gets the logs and the secret, for its owner alone; then only what is new', async () => {
    const folder = target('folder');
    const first = backUp(folder);
    assert.equal(first.path, newestBranch(folder));
    assert.equal(first.new_branch, false, 'there is no other');
    const [log = ''] = readdirSync(join(appliance.data, 'log'));
    const files = filesIn(first.path);
    assert.deepEqual(
      [...files.keys()],
      ['access-log/000000000001.zst', 'backup.json', `log/${log}`, 'secret'].sort(),
    );
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

  test('of another history is not changed: a new branch begins beside it', async () => {
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
    // Each goes on with its own.
    const again = backUp(folder);
    assert.deepEqual([again.path, again.new_branch], [first, false]);
    assert.equal(newestBranch(folder), first);
    assert.equal(readdirSync(folder).filter((name) => name.startsWith('wirewatch-')).length, 2);
  });

  test('is gone on with after a removal: what that rewrote is replaced, and kept for keep_days', async () => {
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
        [...entriesAfter(log, 'detections', null)]
          .flatMap(({ part }) => part.lines)
          .filter((line) => line.includes('"t.9001.'));
      assert.equal(linesOf(join(path, 'log')).length, 1);
      const before = target('before-removal');
      cpSync(path, before, { recursive: true, preserveTimestamps: true });
      const old = filesIn(join(path, 'log'));
      own.cli(['subscription', 'remove', '9001', '--yes']);
      const next = backUpOwn();
      assert.deepEqual([next.path, next.new_branch], [path, false]);
      assert.deepEqual(linesOf(join(path, 'log')), []);
      assertGood(folder);
      const [aside = ''] = readdirSync(path).filter((name) => name.startsWith('replaced-'));
      assert.equal(linesOf(join(path, aside, 'log')).length, 1);
      for (const [name, { bytes }] of filesIn(join(path, aside, 'log')))
        assert.equal(bytes, old.get(name)?.bytes, 'as it was');
      assert.equal(backUpOwn().deleted.length, 0);
      const name = path.slice(folder.length + 1);
      assert.deepEqual(deleteOld(folder, name, 30, Date.now() + 31 * DAY_MS), [join(path, aside)]);
      assertGood(folder);
      own.cli(['restore', folder, '--rehearse']);

      // What is restored goes on to the removal, which holds: the rows are taken out again.
      await own.serving().stop();
      own.cli(['restore', before, '--replace']);
      const log = join(own.data, 'log');
      assert.equal(linesOf(log).length, 1);
      await own.restart();
      await until('that they are gone again', async () => linesOf(log).length === 0);
      assert.equal(own.cli(['verify']).status, 0);
    } finally {
      await own.stop();
    }
  });

  test('keeps other branches and replaced segments for keep_days, and no longer', () => {
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
    assert.deepEqual(deleteOld(folder, name, 10, now), [
      join(folder, 'wirewatch-20200102T000000Z'),
      join(path, `replaced-${replaced}`),
    ]);
    assert.deepEqual(
      readdirSync(folder).sort(),
      ['lock', 'mine', 'newest', 'wirewatch-20200101T000000Z', name].sort(),
    );
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

  test('is not made in the data folder or drop folder themselves, nor where its parent is missing', () => {
    for (const place of [
      appliance.data,
      join(appliance.data, 'log'),
      join(appliance.data, 'access-log', 'x'),
    ])
      assert.match(refusal(['backup', place]), /is part of the data folder/);
    assert.match(refusal(['backup', join(appliance.drop, 'x')]), /is part of the drop folder/);
    const nowhere = refusal(['backup', target('nowhere/one')]);
    assert.match(nowhere, /cannot write .*one: there is no folder .*nowhere\. Create it/);
    assert.doesNotMatch(nowhere, /earlier backup/);
    assert.ok(!existsSync(target('nowhere')));
    writeFileSync(target('a-file'), '');
    assert.match(refusal(['backup', target('a-file')]), /is not a folder/);
    backUp(join(appliance.data, 'backups'));
  });
});

describe('a folder is restorable at any moment', () => {
  test('while files are ingested and other backups run', async () => {
    const folder = target('busy');
    const backups: ReturnType<typeof runProgram>[] = [];
    for (let round = 0; round < 8; round += 1) {
      backups.push(runProgram(['backup', folder, '--data', appliance.data]));
      const rows = Array.from({ length: 500 }, () => newRow());
      const line = await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson(rows));
      assert.equal(line.msg, 'file applied');
    }
    for (const backup of backups) {
      const code = await backup.ended;
      assert.ok(code === 0 || /another backup/.test(backup.told()), backup.told());
    }
    assertGood(folder);
    backUp(folder);
    assertGood(folder);
    assert.equal(readdirSync(folder).filter((name) => name.startsWith('wirewatch-')).length, 1);
  });

  test('after a backup that was killed', async () => {
    const folder = target('killed');
    backUp(folder);
    for (let round = 0; round < 6; round += 1) {
      await drop();
      const backup = runProgram(['backup', folder, '--data', appliance.data]);
      await new Promise((resolve) => setTimeout(resolve, 40 * round));
      backup.kill('SIGKILL');
      await backup.ended;
      assertGood(folder);
    }
    backUp(folder);
    assertGood(folder);
  });

  test('where a crash has left half an entry, or garbage, behind the last good one', async () => {
    const folder = target('torn');
    const { path } = backUp(folder);
    await drop();
    const [name = ''] = readdirSync(join(path, 'log'));
    const copy = join(path, 'log', name);
    const whole = readFileSync(join(appliance.data, 'log', name));
    appendFileSync(copy, whole.subarray(statSync(copy).size, statSync(copy).size + 40));
    assertGood(folder);
    backUp(folder);
    assertGood(folder);
    await drop();
    appendFileSync(copy, 'what no log has');
    assertGood(folder);
    backUp(folder);
    assertGood(folder);
  });

  test('where the disk is full', async (context) => {
    const disk = target('tiny');
    mkdirSync(disk);
    const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', disk]);
    if (mounted.status !== 0) return context.skip('no file system can be mounted here');
    try {
      const own = await startAppliance();
      try {
        await own.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));
        const folder = join(disk, 'backup');
        own.cli(['backup', folder]);
        const rows = Array.from({ length: 4000 }, () =>
          newRow({ article_headline: randomBytes(60).toString('base64') }),
        );
        await own.dropped(fileName('newswire', nextWindowMs()), ndjson(rows));
        const { status, stderr } = own.cli(['backup', folder], { anyStatus: true });
        assert.equal(status, 1);
        assert.match(stderr, /the disk of .* is full.*earlier backup is still valid/);
        assertGood(folder);
      } finally {
        await own.stop();
      }
    } finally {
      spawnSync('umount', [disk]);
    }
  });

  test('damage in the log is not copied, and damage in the copy is repaired', async () => {
    const folder = target('damage');
    const { path } = backUp(folder);
    const [name = ''] = readdirSync(join(path, 'log'));
    const copy = join(path, 'log', name);
    const good = readFileSync(copy);
    const bad = Buffer.from(good);
    bad.fill(0x5a, Math.floor(bad.length / 2), Math.floor(bad.length / 2) + 20);
    writeFileSync(copy, bad);
    const { ok, findings } = verified(folder);
    assert.equal(ok, false);
    assert.match(findings.join(), /log/);
    backUp(folder);
    assertGood(folder);
    const aside = readdirSync(path).filter((one) => one.startsWith('replaced-'));
    assert.equal(aside.length, 1, 'what was there is kept for a while');

    await appliance.serving().stop();
    const original = join(appliance.data, 'log', name);
    const whole = readFileSync(original);
    const damaged = Buffer.from(whole);
    damaged.fill(0x5a, Math.floor(good.length / 2), Math.floor(good.length / 2) + 20);
    const times = statSync(original);
    writeFileSync(original, damaged);
    assert.match(refusal(['backup', folder]), /the log is damaged.*earlier backup is still valid/s);
    assertGood(folder);
    writeFileSync(original, whole);
    utimesSync(original, times.atime, times.mtime);
    await appliance.restart();
  });
});

describe('a file', () => {
  function entriesOf(file: string): { path: string; type: string }[] {
    const entries: { path: string; type: string }[] = [];
    list({ file, sync: true, onReadEntry: ({ path, type }: ReadEntry) => entries.push({ path, type }) });
    return entries;
  }

  test('holds the same', () => {
    const file = target('whole.tar');
    const printed = backUp(file);
    assert.equal(printed.path, file);
    assert.equal(printed.written, statSync(file).size);
    assert.equal(statSync(file).mode & 0o777, 0o600);
    const segments = (log: string) => readdirSync(join(appliance.data, log)).map((name) => `${log}/${name}`);
    assert.deepEqual(
      entriesOf(file),
      [...segments('access-log'), 'backup.json', ...segments('log'), 'secret'].map((path) => ({
        path,
        type: 'File',
      })),
    );
    assertGood(file);
    assert.deepEqual(
      readdirSync(work).filter((name) => name.startsWith('.')),
      [],
    );
  });

  test('that exists is replaced with --force only', () => {
    const file = target('there.tar');
    writeFileSync(file, 'something else');
    assert.match(refusal(['backup', file]), /there\.tar already exists.*--force/);
    assert.equal(readFileSync(file, 'utf8'), 'something else');
    backUp(file, '--force');
    assertGood(file);
  });

  test('that was changed or cut off is found damaged', () => {
    const file = target('changed.tar');
    backUp(file);
    const bytes = readFileSync(file);
    const at = bytes.indexOf('secret\0') + 512;
    const changed = Buffer.from(bytes);
    changed[at] = (changed[at] ?? 0) ^ 1;
    writeFileSync(file, changed);
    assert.match(verified(file).findings.join(), /secret is missing or damaged/);
    writeFileSync(file, bytes);
    truncateSync(file, bytes.length - 4096);
    assert.equal(verified(file).ok, false);
  });
});

test('it says what it wrote and how to go on', () => {
  const { stdout } = appliance.cli(['backup', target('said')]);
  assert.match(stdout, /now contains the state of .* bytes written/);
  assert.match(stdout, /wirewatch verify .*said$/m);
  const [, restore = ''] = /Restore it on this machine: +wirewatch (.*)/.exec(stdout) ?? [];
  assert.match(restore, /^restore \S*said --replace --data \S+$/);
  assert.match(stdout, /contains the secret/);
});

test('what is no installation is refused with exit code 78', () => {
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

test('without a running appliance it works as well', async () => {
  await appliance.serving().stop();
  backUp(target('stopped'));
  assertGood(target('stopped'));
  await appliance.restart();
});

describe('segments', () => {
  const copy = (from: string, to: string) => {
    let written = 0;
    const end = findTail(from, 'detections').last;
    const onBytes = (bytes: number) => {
      written += bytes;
    };
    copyLog({ from, to, kind: 'detections', end, aside: `${to}-aside`, onBytes });
    return written;
  };
  const contents = (folder: string) =>
    readdirSync(folder).map((name) => [name, readFileSync(join(folder, name)).toString('latin1')]);

  test('that close between two backups are completed, and new ones are added', () => {
    const [from, to] = [target('log-1'), target('copy-1')];
    const writer = makeLog(from, 1);
    for (let round = 0; round < 20; round += 1) {
      copy(from, to);
      assert.deepEqual(contents(to), contents(from));
      assert.equal(copy(from, to), 0);
      addEntries(writer, 1);
    }
    assert.ok(readdirSync(to).length > 5);
    writer.close();
  });

  test('that were rewritten are copied again, and the replaced ones are kept', () => {
    const [from, to] = [target('log-2'), target('copy-2')];
    makeLog(from, 20).close();
    copy(from, to);
    const [first = ''] = readdirSync(from);
    const old = rewrite(join(from, first));
    copy(from, to);
    assert.deepEqual(contents(to), contents(from));
    assert.deepEqual(contents(`${to}-aside`), [[first, old.toString('latin1')]]);
    assert.equal(copy(from, to), 0);
  });

  test('of a log without its beginning are not copied', () => {
    const [from, to] = [target('log-6'), target('copy-6')];
    makeLog(from, 20).close();
    const [first = ''] = readdirSync(from);
    rmSync(join(from, first));
    assert.throws(() => copy(from, to), LogDamage);
    assert.deepEqual(readdirSync(to), []);
  });

  test('that are of another log are not copied', () => {
    const [from, to] = [target('log-3'), target('copy-3')];
    makeLog(from, 20).close();
    copy(from, to);
    const before = contents(to);
    makeLog(target('log-other'), 20).close();
    const [first = ''] = readdirSync(from);
    cpSync(join(target('log-other'), first), join(from, first));
    assert.throws(() => copy(from, to), LogDamage);
    assert.deepEqual(contents(to), before);
  });

  test('that are damaged behind the end of the copy leave the copy as it was', () => {
    const [from, to] = [target('log-5'), target('copy-5')];
    const options = { folder: from, kind: 'detections', program: '1' } as const;
    const writer = new LogWriter(options, { last: null, segment: null });
    const add = () => {
      writer.append(`{"row":"${Math.random()}"}\n`);
      writer.commit('', { kind: 'test' }, Date.now());
    };
    add();
    copy(from, to);
    const before = contents(to);
    const [name = ''] = readdirSync(from);
    const bytes = readFileSync(join(from, name)).length;
    for (let count = 0; count < 3; count += 1) add();
    writer.closeSegment();
    add();
    const end = findTail(from, 'detections').last;
    writer.close();
    const damaged = readFileSync(join(from, name));
    damaged[bytes + 30] = (damaged[bytes + 30] ?? 0) ^ 1;
    writeFileSync(join(from, name), damaged);
    const onBytes = () => {};
    assert.throws(
      () => copyLog({ from, to, kind: 'detections', end, aside: `${to}-aside`, onBytes }),
      LogDamage,
    );
    assert.deepEqual(contents(to), before);
  });

  test('of a folder that goes away are an error, and what is there stays', () => {
    const [from, to] = [target('log-4'), target('copy-4')];
    makeLog(from, 5).close();
    copy(from, to);
    renameSync(to, `${to}-gone`);
    writeFileSync(to, '');
    assert.throws(() => copy(from, to));
    rmSync(to);
    renameSync(`${to}-gone`, to);
    assert.deepEqual(contents(to), contents(from));
  });
});

test('the state of a newer program is refused', () => {
  const folder = target('newer');
  const { path } = backUp(folder);
  const state = readState(path);
  writeFileSync(join(path, 'backup.json'), JSON.stringify({ ...state, version: 9, program: '9.9' }));
  assert.match(verified(folder).findings.join(), /version 9.*9\.9/);
});
