/** `wirewatch restore`: a backup in place, whole or not at all; what the data folder's own log has is never lost. */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { readConsoleEpoch } from '../../src/auth/console-sessions.ts';
import { backupTimes } from '../../src/backup/branch.ts';
import { rehearse } from '../../src/backup/rehearse.ts';
import { completeRestore, placingSteps } from '../../src/store/complete-restore.ts';
import { openDatabase } from '../../src/store/database.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { isLocked } from '../../src/store/locks.ts';
import { formatMs } from '../../src/time.ts';
import { type Appliance, createKey, showLogOfFailures, startAppliance } from '../support/appliance.ts';
import { assertSameContent, contentOfDetections, withoutOpenDelivery } from '../support/database-content.ts';
import { fileName, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { runProgram } from '../support/program.ts';

const MAIN = join(import.meta.dirname, '..', '..', 'dist', 'main.cjs');

let appliance: Appliance;
let work: string;
/** A folder and a file, as of one moment; 50 detections. */
let backup: string;
let file: string;
/** The data folder after another detection: 51. */
let stopped: string;
/** When that one was not there yet. */
let backedUpAtMs: number;
showLogOfFailures(() => appliance?.serving());
before(async () => {
  work = mkdtempSync(join(tmpdir(), 'wirewatch-restore-'));
  backup = join(work, 'backup');
  file = join(work, 'backup.tar');
  appliance = await startAppliance();
  const rows = Array.from({ length: 50 }, () => newRow());
  await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson(rows));
  appliance.cli(['backup', backup]);
  appliance.cli(['backup', file]);
  backedUpAtMs = Math.floor(Date.now() / 1000) * 1000;
  // Entries are dated by the second.
  await sleep(1100 - (Date.now() % 1000));
  await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));
  stopped = await stoppedCopy('stopped');
});
after(async () => {
  await appliance?.stop();
  rmSync(work, { recursive: true, force: true });
});

function run(...args: string[]) {
  return spawnSync(process.execPath, [MAIN, ...args], { encoding: 'utf8' });
}

function restored(...args: string[]) {
  const { status, stdout, stderr } = run('restore', ...args, '--json');
  assert.equal(status, 0, stderr);
  return JSON.parse(stdout);
}

/** A copy of the appliance's folder as it is while nobody writes: what a stop leaves. */
async function stoppedCopy(name: string): Promise<string> {
  const copy = join(work, name);
  await appliance.serving().stop();
  cpSync(appliance.data, copy, { recursive: true, preserveTimestamps: true });
  await appliance.restart();
  return copy;
}

function copyOf(folder: string, name: string): string {
  const copy = join(work, name);
  cpSync(folder, copy, { recursive: true, preserveTimestamps: true });
  return copy;
}

/** Names and contents of all files, but of the lock and of the memory that readers share, which say nothing. */
function contentOf(folder: string): Map<string, string> {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !/^(lock.*|.*-shm|.*-lock)$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
  return new Map(names.map((name) => [name.slice(folder.length), readFileSync(name).toString('latin1')]));
}

function assertSame(found: Map<string, string>, expected: Map<string, string>, when?: string): void {
  assert.deepEqual([...found.keys()], [...expected.keys()], when);
  for (const [name, content] of expected) assert.ok(found.get(name) === content, `${name} ${when ?? ''}`);
}

function inDetections<Row>(folder: string, sql: string): Row[] {
  const db = openDatabase(join(folder, 'detections.db'), 'read');
  try {
    return db.prepare<[], Row>(sql).all();
  } finally {
    db.close();
  }
}

const detectionsIn = (folder: string) =>
  inDetections<{ count: number }>(folder, 'SELECT count(*) AS count FROM detection')[0]?.count;
const epochsIn = (folder: string) =>
  inDetections<{ number: number; position: number; orphans: string; reason: string }>(
    folder,
    'SELECT number, position, orphans, reason FROM version_epoch ORDER BY number',
  );

/** Starts and stops an appliance on a folder. @returns what it logged */
async function served(data: string): Promise<readonly Record<string, unknown>[]> {
  const isThere = existsSync(join(data, 'detections.db'));
  const serving = runProgram(['serve', '--data', data, '--port', '0']);
  await serving.url();
  if (!isThere)
    await serving.until('that it was made', () =>
      serving.log().find(({ msg }) => msg === 'detections.db was brought up to date from the log'),
    );
  serving.kill('SIGTERM');
  assert.equal(await serving.ended, 0);
  return serving.log();
}

describe('where the data folder has a log that continues the backup', () => {
  test('nothing is lost, and every column is as it was', async () => {
    const expected = contentOfDetections(stopped);
    for (const [name, source] of [
      ['kept-folder', backup],
      ['kept-file', file],
    ] as const) {
      const data = copyOf(stopped, name);
      for (const database of ['detections.db', 'access.db']) writeFileSync(join(data, database), 'damaged');
      const said = restored(source, '--replace', '--data', data);
      assert.deepEqual(
        [said.detections, said.log, said.access_log, said.raised],
        [51, 'continued', 'continued', false],
      );
      assertSameContent(contentOfDetections(data), expected);
      const log = await served(data);
      assert.ok(
        !log.some(({ msg }) => /made anew|brought up to date/.test(String(msg))),
        'it is as a stop leaves it',
      );
      // Whose search for missing windows is an entry of its own.
      const [found, before] = [contentOfDetections(data), expected].map(withoutOpenDelivery);
      assertSameContent(found ?? {}, before ?? {});
    }
  });

  test('damage in it, before the end of the backup, is filled from that', () => {
    const data = copyOf(stopped, 'filled');
    const [name = ''] = readdirSync(join(data, 'log'));
    const path = join(data, 'log', name);
    const bytes = readFileSync(path);
    bytes.fill(0x5a, 300, 340);
    writeFileSync(path, bytes);
    const said = restored(backup, '--replace', '--data', data);
    assert.deepEqual([said.detections, said.log, said.raised], [51, 'continued', false]);
    assertSameContent(contentOfDetections(data), contentOfDetections(stopped));
  });

  test('damage behind the end of the backup is a lost end', () => {
    const data = copyOf(stopped, 'not-filled');
    const [name = ''] = readdirSync(join(data, 'log'));
    const path = join(data, 'log', name);
    const bytes = readFileSync(path);
    const [copy = ''] = readdirSync(backup).filter((one) => one.startsWith('wirewatch-'));
    const end = readFileSync(join(backup, copy, 'log', name)).length;
    bytes.fill(0x5a, end + 30, end + 60);
    writeFileSync(path, bytes);
    const said = restored(backup, '--replace', '--data', data);
    assert.deepEqual([said.detections, said.log, said.raised], [50, 'from the backup', true]);
  });

  test('a key that was revoked since stays revoked; one that was made since works', () => {
    const data = copyOf(stopped, 'keys');
    const before: { id: string }[] = JSON.parse(run('key', 'list', '--data', data, '--json').stdout);
    run('key', 'revoke', before[0]?.id ?? '', '--yes', '--data', data);
    const cli = (args: readonly string[]) => run(...args, '--data', data);
    createKey(cli, 'agency', '7001');
    const expected = run('key', 'list', '--data', data, '--json').stdout;
    restored(backup, '--replace', '--data', data);
    assert.equal(run('key', 'list', '--data', data, '--json').stdout, expected);
    assert.match(expected, /"revoked_at": "/);
  });
});

describe('where the end of the log is, or may be, lost', () => {
  test('on another machine versions are raised and positions go on a year ahead, once, and it says so', async () => {
    const data = join(work, 'other', 'machine');
    const said = restored(backup, '--data', data);
    assert.deepEqual(
      [said.detections, said.log, said.raised, said.replaced, said.orphans],
      [50, 'from the backup', true, null, []],
    );
    const [epoch, ...more] = epochsIn(data);
    assert.deepEqual(more, []);
    assert.ok((epoch?.position ?? 0) >= Date.now() * 1000 + 3.1e13);
    const content = contentOfDetections(data);
    await served(data);
    // Made from the log, it comes to the same.
    rmSync(join(data, 'detections.db'));
    await served(data);
    const again = contentOfDetections(data);
    for (const table of ['detection', 'stream_row', 'stream', 'ingest_file'])
      assert.deepEqual(again[table], content[table], table);
    assert.equal(epochsIn(data).length, 1);
    assert.deepEqual(
      readdirSync(data).filter((name) => /^(\.|incoming|replaced)/.test(name)),
      [],
    );
    const { stdout } = run('restore', file, '--data', join(work, 'told'));
    assert.match(stdout, /raised by 1,000, once, and positions continue a year ahead/);
    assert.ok(stdout.trimEnd().endsWith(`wirewatch serve --data ${join(work, 'told')}`), stdout);
  });

  test('sessions of the console that were ended in it stay so, whichever they are', () => {
    const data = copyOf(stopped, 'sessions');
    const epoch = () => {
      const db = openDatabase(join(data, 'access.db'), 'read');
      try {
        return readConsoleEpoch(db);
      } finally {
        db.close();
      }
    };
    const endAll = () => assert.equal(run('console', '--end-all', '--data', data).status, 0);
    const known = [epoch()];
    for (let times = 0; times < 2; times += 1) {
      endAll();
      known.push(epoch());
    }
    rmSync(join(data, 'access-log'), { recursive: true });
    restored(backup, '--replace', '--data', data);
    known.push(epoch());
    endAll();
    known.push(epoch());
    assert.deepEqual([...new Set(known)], known, 'no epoch comes twice');
    restored(backup, '--replace', '--data', data);
    assert.equal(epoch(), known.at(-1), 'where nothing was lost, nobody is put out');
  });

  test('files in the archive that came since are read at the next start', async () => {
    const data = copyOf(stopped, 'orphans');
    rmSync(join(data, 'log'), { recursive: true });
    const said = restored(backup, '--replace', '--data', data);
    assert.deepEqual([said.detections, said.raised, said.orphans.length], [50, true, 1]);
    const serving = runProgram(['serve', '--data', data, '--port', '0'], { WIREWATCH_INGEST_QUIET_MS: '0' });
    await serving.url();
    await serving.until('the file is read', () => serving.log().find(({ msg }) => msg === 'file applied'));
    serving.kill('SIGTERM');
    await serving.ended;
    assert.equal(detectionsIn(data), 51);
    const [created] = inDetections<{ version: number }>(
      data,
      'SELECT max(version) AS version FROM stream_row',
    );
    assert.equal(created?.version, 1001, 'it may have been known');
    assert.equal(epochsIn(data)[0]?.orphans, 'read');
  });

  test('--until restores an earlier state, and leaves later files and revoked keys as they are', async () => {
    const data = copyOf(stopped, 'until');
    const [{ id = '' } = {}]: { id?: string }[] = JSON.parse(
      run('key', 'list', '--data', data, '--json').stdout,
    );
    run('key', 'revoke', id, '--yes', '--data', data);
    const refused = run('restore', file, '--replace', '--until', '2020-01-01T00:00:00Z', '--data', data);
    assert.equal(refused.status, 1);
    assert.match(refused.stderr, /contains nothing from before 2020-01-01T00:00:00Z\. Nothing was changed/);
    const said = restored(backup, '--replace', '--until', formatMs(backedUpAtMs), '--data', data);
    assert.deepEqual(
      [said.detections, said.log, said.raised, said.orphans.length],
      [50, 'continued', true, 1],
    );
    assert.ok(said.entries_cut > 0);
    assert.equal(epochsIn(data)[0]?.orphans, 'left');
    await served(data);
    assert.equal(detectionsIn(data), 50, 'what is in the archive is left there');
    assert.match(run('key', 'list', '--data', data, '--json').stdout, /"revoked_at": "/);
    const after = restored(
      backup,
      '--replace',
      '--until',
      formatMs(Date.now()),
      '--data',
      copyOf(stopped, 'all'),
    );
    assert.deepEqual([after.detections, after.entries_cut, after.raised], [51, 0, true]);
  });

  test('what an --until cuts off is known: it goes on beyond its epochs and positions', () => {
    const data = join(work, 'twice');
    const untilEpoch = formatMs(backedUpAtMs);
    restored(file, '--data', data);
    const [first] = epochsIn(data);
    const again = join(work, 'twice-backup');
    run('backup', again, '--data', data);
    restored(again, '--replace', '--until', untilEpoch, '--data', data);
    const [second, third] = epochsIn(data);
    assert.ok(first && second && third, 'one for each that is lost, and one for this');
    assert.ok(second.position >= first.position + 3.1e13);
  });
});

describe('into a folder', () => {
  test('that holds an installation it works with --replace only, and moves it aside', () => {
    const data = copyOf(stopped, 'replaced');
    const { status, stderr } = run('restore', backup, '--data', data);
    assert.equal(status, 1);
    assert.match(stderr, /already contains an installation .*add --replace/);
    assertSame(contentOf(data), contentOf(stopped));
    const before = contentOf(data);
    const said = restored(backup, '--replace', '--data', data);
    const [afterwards, aside] = [contentOf(data), contentOf(said.replaced)];
    for (const [name, content] of before) {
      const stays = name.startsWith('/drop/') || ['/usage.db', '/reserve'].includes(name);
      assert.ok((stays ? afterwards : aside).get(name) === content, name);
    }
  });

  test('while an appliance runs on it, it is refused, and that appliance goes on', async () => {
    const { status, stderr } = appliance.cli(['restore', backup, '--replace'], { anyStatus: true });
    assert.equal(status, 1);
    assert.match(stderr, /Wirewatch is using .*Stop it first. Nothing was changed/);
    assert.equal((await appliance.get('/v1/me')).status, 200);
    assert.ok(isLocked(join(appliance.data, 'lock')));
  });

  test('from a branch that is named, or from another data folder', () => {
    const [branch = ''] = readdirSync(backup).filter((name) => name.startsWith('wirewatch-'));
    assert.equal(restored(join(backup, branch), '--data', join(work, 'of-branch')).detections, 50);
    assert.equal(restored(stopped, '--data', join(work, 'of-data')).detections, 51);
  });
});

describe('a backup that is not good changes nothing', () => {
  /** The good file with the header of an entry rewritten, its checksum set right. */
  function forged(name: string, entry: string, change: (header: Buffer) => void): string {
    const bytes = readFileSync(file);
    const at = headerOf(bytes, entry);
    const header = bytes.subarray(at, at + 512);
    change(header);
    header.fill(0x20, 148, 156);
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
    const path = join(work, name);
    writeFileSync(path, bytes);
    return path;
  }

  function headerOf(bytes: Buffer, entry: string): number {
    for (let at = 0; at < bytes.length; at += 512)
      if (bytes.toString('latin1', at, at + entry.length + 1) === `${entry}\0`) return at;
    return assert.fail(`${entry} is not in the backup`);
  }

  const rename = (to: string) => (header: Buffer) => {
    header.fill(0, 0, 100);
    header.write(to, 0);
  };
  const linkTo = (type: string, to: string) => (header: Buffer) => {
    header.write(type, 156);
    header.fill(0, 157, 257);
    header.write(to, 157);
    header.write('00000000000\0', 124);
  };

  function assertRefused(source: string, reason: RegExp): void {
    const data = join(work, 'untouched');
    const around = readdirSync(work);
    const { status, stdout, stderr } = run('restore', source, '--data', data);
    assert.deepEqual([status, stdout], [1, '']);
    assert.match(stderr, reason);
    assert.match(stderr, /Nothing was changed/);
    assert.deepEqual(readdirSync(work), around, 'no folder was made');
    assert.equal(run('verify', source).status, 1);
  }

  test('one with a changed byte, in the secret or in a log', () => {
    for (const [entry, reason] of [
      ['secret', /its secret is damaged/],
      ['access-log/000000000001.zst', /damaged|reach/],
      ['log/000000000001.zst', /damaged|reach/],
    ] as const) {
      const bytes = readFileSync(file);
      const at = headerOf(bytes, entry) + 512 + (entry === 'secret' ? 0 : 300);
      bytes[at] = (bytes[at] ?? 0) ^ 1;
      writeFileSync(join(work, 'changed.tar'), bytes);
      assertRefused(join(work, 'changed.tar'), reason);
    }
  });

  test('a folder with a changed byte, or without a segment', () => {
    const data = copyOf(backup, 'changed-folder');
    const [branch = ''] = readdirSync(data).filter((name) => name.startsWith('wirewatch-'));
    const path = join(data, branch, 'log', '000000000001.zst');
    const bytes = readFileSync(path);
    bytes[400] = (bytes[400] ?? 0) ^ 1;
    writeFileSync(path, bytes);
    assertRefused(data, /damaged|reach/);
    rmSync(path);
    assertRefused(data, /does not reach entry/);
  });

  test('one with an entry that leads out of the folder', () => {
    for (const path of ['../escaped', '/tmp/escaped', 'log/../../escaped', './secret', 'SECRET', 'log/x.zst'])
      assertRefused(forged('path.tar', 'secret', rename(path)), /it is not a backup: it contains /);
    assert.ok(!existsSync(join(work, 'escaped')));
  });

  test('one with a link in the place of a file', () => {
    for (const type of ['1', '2', '6'])
      assertRefused(
        forged('link.tar', 'secret', linkTo(type, '/etc/passwd')),
        /it is not a backup: it contains "secret" \(\w+\)|linkpath forbidden/,
      );
  });

  test('no backup at all', () => {
    writeFileSync(join(work, 'text.tar'), 'text');
    assertRefused(join(work, 'text.tar'), /cannot be restored/);
    for (const source of ['gone.tar', 'nothing']) {
      mkdirSync(join(work, 'nothing'), { recursive: true });
      const { status, stderr } = run('restore', join(work, source), '--data', join(work, 'untouched'));
      assert.equal(status, 1);
      assert.match(stderr, /cannot read the backup/);
    }
    assert.ok(!existsSync(join(work, 'untouched')));
  });
});

describe('a crash', () => {
  test('between any two steps of putting the new state in place is made up for by the next', () => {
    const data = copyOf(stopped, 'steps');
    // A database with a log of its own, as a crash of the appliance leaves it.
    writeFileSync(join(data, 'detections.db-wal'), 'log');
    writeFileSync(join(data, 'detections.db-damage'), 'noted');
    const incoming = join(data, 'incoming-20261121T101000Z');
    for (const log of ['log', 'access-log']) mkdirSync(join(incoming, log), { recursive: true });
    for (const name of [
      'detections.db',
      'detections.db-identity',
      'access.db',
      'secret',
      'log/1',
      'access-log/1',
    ])
      writeFileSync(join(incoming, name), `new ${name}`);
    const stepsOf = (folder: string) =>
      placingSteps(dataFolder(folder), 'incoming-20261121T101000Z', 'replaced-20261121T101000Z');
    const whole = copyOf(data, 'steps-whole');
    const steps = stepsOf(whole).length;
    assert.ok(steps > 8);
    assert.equal(completeRestore(dataFolder(whole)), 'replaced-20261121T101000Z');
    const expected = contentOf(whole);
    assert.ok(expected.has('/replaced-20261121T101000Z/detections.db-wal'));
    assert.equal(expected.get('/log/1'), 'new log/1');
    for (let done = 0; done <= steps; done += 1) {
      const copy = copyOf(data, `steps-${done}`);
      for (const step of stepsOf(copy).slice(0, done)) step();
      completeRestore(dataFolder(copy));
      assertSame(contentOf(copy), expected, `after ${done} steps`);
      assert.equal(completeRestore(dataFolder(copy)), undefined, 'nothing is left to do');
      rmSync(copy, { recursive: true });
    }
  });

  test('at any moment of the command leaves the old state or the new one, and the command completes it', async () => {
    const outcomes = new Set<string>();
    const data = join(work, 'killed');
    // Later and later, until it comes to its end: how long that takes is the machine's affair.
    for (let delayMs = 0; !outcomes.has('done'); delayMs += Math.max(100, delayMs / 4)) {
      rmSync(data, { recursive: true, force: true });
      copyOf(stopped, 'killed');
      const restoring = runProgram(['restore', backup, '--replace', '--data', data]);
      await sleep(delayMs);
      restoring.kill('SIGKILL');
      const code = await restoring.ended;
      const isPending = readdirSync(data).some((name) => name.startsWith('incoming-'));
      outcomes.add(code === 0 ? 'done' : isPending ? 'pending' : 'old or new');
      if (!isPending) assert.equal(detectionsIn(data), 51);
      const again = run('restore', backup, '--replace', '--data', data, '--json');
      assert.equal(again.status, 0, again.stderr);
      assert.equal(detectionsIn(data), 51);
      assert.deepEqual(
        readdirSync(data).filter((name) => /^(\.incoming|incoming-)/.test(name)),
        [],
      );
    }
    assert.ok(outcomes.has('old or new'));
  });

  test('that left a restore half placed is made up for by a start; commands wait for that', async () => {
    const data = copyOf(stopped, 'half');
    const incoming = join(data, 'incoming-20261121T101000Z');
    const made = join(work, 'made');
    restored(backup, '--data', made);
    mkdirSync(incoming);
    for (const name of ['detections.db', 'access.db', 'secret', 'log', 'access-log'])
      cpSync(join(made, name), join(incoming, name), { recursive: true });
    for (const args of [
      ['key', 'list'],
      ['ingest', 'status'],
      ['backup', join(work, 'half.tar')],
    ]) {
      const { status, stderr } = run(...args, '--data', data);
      assert.equal(status, 78, stderr);
      assert.match(stderr, /a restore into .* was interrupted.*wirewatch serve/s);
    }
    const log = await served(data);
    assert.ok(log.some(({ msg }) => msg === 'completed an interrupted restore'));
    assert.equal(detectionsIn(join(data, 'replaced-20261121T101000Z')), 51);
  });
});

describe('a rehearsal', () => {
  const rehearsed = (...args: string[]) => {
    const { status, stdout, stderr } = run('restore', '--rehearse', ...args, '--json');
    assert.ok(status === 0 || status === 1, stderr);
    return { status, ...JSON.parse(stdout) };
  };

  test('says from when the backup is and how long it took, and compares it with what is there', () => {
    const data = copyOf(stopped, 'rehearsed');
    const before = contentOf(data);
    const said = rehearsed(file, '--data', data);
    assert.deepEqual([said.status, said.detections, said.compared, said.differences], [0, 50, 50, []]);
    assert.ok(said.seconds > 0 && said.state_of && said.backed_up_at);
    assert.equal(said.newer, 1, 'what the installation has since');
    assert.match(said.not_noted, /a \.tar file cannot record it/);
    assertSame(contentOf(data), before);
    assert.match(
      run('restore', '--rehearse', backup, '--data', data).stdout,
      /can be restored.*\(50 rows\).*has 1 newer row\..*time of this rehearsal is recorded in the backup/s,
    );
  });

  test('of a backup that goes on meanwhile is of what it held, and is noted in it', async () => {
    const data = copyOf(stopped, 'rehearsed-meanwhile');
    const folder = copyOf(backup, 'backup-meanwhile');
    let isDone = false;
    const options = { source: folder, data, drop: join(data, 'drop'), now: Date.now };
    const said = await rehearse({
      ...options,
      onProgress(what) {
        if (isDone || what !== 'copying the log') return;
        isDone = true;
        assert.equal(run('backup', folder, '--data', data).status, 0);
      },
    });
    assert.ok(isDone);
    assert.deepEqual([said.differences, said.not_noted], [[], null]);
    assert.ok(backupTimes(folder).rehearsedMs);
    assert.equal(run('verify', folder).status, 0);
  });

  test('where there is no data folder leaves none behind', () => {
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
    const said = rehearsed(backup, '--data', data);
    assert.equal(said.status, 1);
    assert.match(
      said.differences.join(),
      /50 rows in the backup, 51 in the installation; they differ between rows 1 and 50/,
    );
    assert.match(said.not_noted, /the backup differs from the installation/);
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
    const said = rehearsed(backup, '--data', data);
    assert.equal(said.status, 1);
    assert.match(said.differences.join(), /50 rows in the backup, 0 in the installation/);
    assert.equal(run('restore', '--rehearse', join(work, 'text.tar'), '--data', data).status, 1);
    assert.equal(run('restore', '--rehearse', '--replace', backup, '--data', data).status, 2);
  });
});

test('what was given out before goes on working after: keys, tokens, cursors', async () => {
  const key = createKey(appliance.cli, 'agency', '7001');
  const [, id = '', secret = ''] = /_live_([a-z2-7]{12})_(.*)$/.exec(key) ?? [];
  const body = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: id,
    client_secret: secret,
  });
  const answer = await fetch(`${appliance.serving().url}/oauth/token`, { method: 'POST', body });
  const { access_token } = JSON.parse(await answer.text());
  const since = new Date(Date.now() - 60_000).toISOString();
  const page = JSON.parse(await (await appliance.get(`/v1/detections/changes?since=${since}`, key)).text());
  await appliance.serving().stop();
  appliance.cli(['restore', backup, '--replace']);
  await appliance.restart();
  for (const credential of [key, access_token]) {
    const read = await appliance.get(`/v1/detections/changes?cursor=${page.next_cursor}`, credential);
    assert.equal(read.status, 200);
    assert.deepEqual(JSON.parse(await read.text()).data, []);
  }
});
