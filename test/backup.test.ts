/** `wirewatch backup`: one whole file or none, beside a running appliance and without one. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { list, type ReadEntry } from 'tar';
import { writeBackup } from '../src/backup/write-backup.ts';
import { Refused } from '../src/refused.ts';
import { checkpoint } from '../src/store/checkpoint.ts';
import { copyDatabase } from '../src/store/copy.ts';
import { openReader } from '../src/store/database.ts';
import { openDetections } from '../src/store/detections.ts';
import { takeLock } from '../src/store/locks.ts';
import { type Appliance, showLogOfFailures, startAppliance } from './support/appliance.ts';
import { fileName, ndjson, newRow, nextWindowMs } from './support/export-files.ts';
import { runProgram } from './support/program.ts';

let appliance: Appliance;
let folder: string;
showLogOfFailures(() => appliance?.serving());
before(async () => {
  appliance = await startAppliance();
  folder = mkdtempSync(join(tmpdir(), 'wirewatch-backups-'));
  await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow(), newRow()]));
});
after(async () => {
  await appliance?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const target = (name: string) => join(folder, name);
const noDrafts = (where = folder) =>
  assert.deepEqual(
    readdirSync(where).filter((name) => name.startsWith('.')),
    [],
  );

function entriesOf(file: string): { path: string; type: string; mode: number }[] {
  const entries: { path: string; type: string; mode: number }[] = [];
  const onReadEntry = ({ path, type, mode = 0 }: ReadEntry) =>
    entries.push({ path, type, mode: mode & 0o777 });
  list({ file, sync: true, onReadEntry });
  return entries;
}

function refusal(args: readonly string[]): string {
  const { status, stdout, stderr } = appliance.cli(args, { anyStatus: true });
  assert.equal(status, 1, stderr);
  assert.equal(stdout, '');
  return stderr;
}

describe('beside a running appliance', () => {
  test('a backup holds manifest, databases, journal and secret, in this order, for its owner alone', () => {
    const file = target('whole.tar');
    const printed = JSON.parse(appliance.cli(['backup', file, '--json']).stdout);
    assert.equal(printed.file, file);
    assert.deepEqual([printed.detections, printed.stream_rows, printed.files, printed.keys], [2, 2, 1, 1]);
    assert.equal(printed.bytes, statSync(file).size);
    assert.equal(statSync(file).mode & 0o777, 0o600);
    assert.ok(existsSync(join(appliance.data, 'usage.db')), 'what is to be left out is there');
    const parts = ['manifest.json', 'detections.db', 'access.db', 'journal', 'secret'];
    assert.deepEqual(
      entriesOf(file),
      parts.map((path) => ({ path, type: 'File', mode: 0o600 })),
    );
    noDrafts();
    const verified = JSON.parse(appliance.cli(['verify', file, '--json']).stdout);
    assert.deepEqual([verified.ok, verified.findings], [true, []]);
  });

  test('it says what it wrote and how to go on', () => {
    const { stdout } = appliance.cli(['backup', target('said.tar')]);
    assert.match(stdout, /2 detections, 2 rows of the stream, 1 keys/);
    assert.match(stdout, /wirewatch verify .*said\.tar/);
    assert.match(stdout, /guard it/);
  });

  test('backups that are made while files are ingested are each whole, and requests and ingest go on', async () => {
    const backups: ReturnType<typeof runProgram>[] = [];
    for (let round = 0; round < 12; round += 1) {
      if (round % 4 === 0)
        backups.push(runProgram(['backup', target(`busy-${round}.tar`), '--data', appliance.data]));
      const rows = Array.from({ length: 500 }, () => newRow());
      const line = await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson(rows));
      assert.equal(line.msg, 'file applied');
      assert.equal((await appliance.get('/v1/me')).status, 200);
    }
    for (const [index, backup] of backups.entries()) {
      assert.equal(await backup.ended, 0, backup.told());
      const { ok, findings } = JSON.parse(
        appliance.cli(['verify', target(`busy-${index * 4}.tar`), '--json']).stdout,
      );
      assert.deepEqual([ok, findings], [true, []]);
    }
    noDrafts();
  });
});

describe('the file', () => {
  test('that is there already is replaced with --force only', () => {
    const file = target('there.tar');
    writeFileSync(file, 'something else');
    assert.match(refusal(['backup', file]), /there\.tar is there already.*--force/);
    assert.equal(readFileSync(file, 'utf8'), 'something else');
    appliance.cli(['backup', file, '--force']);
    assert.equal(entriesOf(file).length, 5);
  });

  test('is not written through a link, nor in place of a folder', () => {
    symlinkSync(target('elsewhere.tar'), target('link.tar'));
    assert.match(refusal(['backup', target('link.tar'), '--force']), /is not a file/);
    mkdirSync(target('a-folder'));
    assert.match(refusal(['backup', target('a-folder')]), /is not a file.*wirewatch\.tar/s);
    assert.ok(!existsSync(target('elsewhere.tar')));
  });

  test('is not put over the installation, nor where ingest takes it away', () => {
    const database = readFileSync(join(appliance.data, 'secret'));
    for (const name of ['detections.db', 'journal', 'secret', 'new.tar'])
      assert.match(refusal(['backup', join(appliance.data, name), '--force']), /lies in the data folder/);
    assert.match(refusal(['backup', join(appliance.drop, 'x.tar')]), /lies in the drop folder, where ingest/);
    symlinkSync(appliance.data, target('link-to-data'));
    assert.match(refusal(['backup', target('link-to-data/journal'), '--force']), /lies in the data folder/);
    assert.deepEqual(readFileSync(join(appliance.data, 'secret')), database);
    mkdirSync(join(appliance.data, 'backups'));
    appliance.cli(['backup', join(appliance.data, 'backups', 'by-hand.tar')]);
  });

  test('in a folder that is not there is refused, and says so', () => {
    assert.match(
      refusal(['backup', target('nowhere/one.tar')]),
      /nowhere.*Name a file in a folder that is there/s,
    );
  });
});

describe('what is no installation', () => {
  test('is refused with exit code 78', () => {
    const args = ['backup', target('none.tar')];
    const empty = spawnProgram([...args, '--data', target('no-data')]);
    assert.equal(empty.status, 78);
    assert.match(empty.stderr, /there is no installation in .*no-data/);
    spawnProgram(['account', 'add', 'a', '--name', 'A', '--data', target('fresh')]);
    const fresh = spawnProgram([...args, '--data', target('fresh')]);
    assert.equal(fresh.status, 78);
    assert.match(fresh.stderr, /nothing to back up .*no appliance was ever started/);
  });
});

function spawnProgram(args: readonly string[]) {
  const main = join(import.meta.dirname, '..', 'dist', 'main.cjs');
  return spawnSync(process.execPath, [main, ...args], { encoding: 'utf8' });
}

describe('a backup that does not come to its end', () => {
  test('leaves nothing under its name when it is killed, and the next one cleans up after it', async () => {
    const where = target('killed');
    mkdirSync(where);
    for (let round = 0; round < 3; round += 1) {
      const backup = runProgram(['backup', join(where, 'one.tar'), '--data', appliance.data]);
      await backup.until('it has begun', () => readdirSync(where).find((name) => name.startsWith('.')));
      backup.kill('SIGKILL');
      assert.equal(await backup.ended, null);
      assert.ok(!existsSync(join(where, 'one.tar')));
    }
    appliance.cli(['backup', join(where, 'one.tar')]);
    assert.deepEqual(readdirSync(where), ['one.tar']);
  });

  test('is not cleaned up by another one while it is at work, nor is what is not ours', () => {
    const where = target('shared');
    const working = join(where, '.wirewatch-backup-0123456789abcdef');
    const foreign = join(where, '.wirewatch-backup-mine');
    for (const path of [working, foreign]) mkdirSync(path, { recursive: true });
    const release = takeLock(join(working, 'lock'));
    assert.ok(release);
    appliance.cli(['backup', join(where, 'one.tar')]);
    assert.ok(existsSync(working) && existsSync(foreign));
    release();
    appliance.cli(['backup', join(where, 'two.tar')]);
    assert.ok(!existsSync(working) && existsSync(foreign));
  });

  test('for want of room says how much is needed, before anything is written', async () => {
    const freeBytes = () => 1000;
    const options = {
      data: appliance.data,
      drop: appliance.drop,
      replace: false,
      now: Date.now,
      onProgress: () => {},
    };
    await assert.rejects(
      writeBackup({ ...options, target: target('no-room.tar'), freeBytes }),
      (error) => error instanceof Refused && /no room .* MiB are needed .*another disk/.test(error.message),
    );
    assert.ok(!existsSync(target('no-room.tar')));
    noDrafts();
  });

  test('since the disk is full half-way leaves nothing, and says so', async (context) => {
    const where = target('tiny');
    mkdirSync(where);
    const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=512k', 'tmpfs', where]);
    if (mounted.status !== 0) return context.skip('no file system can be mounted here');
    try {
      const options = {
        data: appliance.data,
        drop: appliance.drop,
        replace: false,
        now: Date.now,
        onProgress: () => {},
      };
      await assert.rejects(
        writeBackup({
          ...options,
          target: join(where, 'full.tar'),
          freeBytes: () => Number.MAX_SAFE_INTEGER,
        }),
        (error) =>
          error instanceof Refused && /the disk of .*tiny is full; nothing was left/.test(error.message),
      );
      assert.deepEqual(readdirSync(where), []);
    } finally {
      spawnSync('umount', [where]);
    }
  });
});

test('nothing that was deleted is in a copy, and it needs no log beside it', () => {
  const [from, to] = [target('from.db'), target('to.db')];
  const db = openDetections(from);
  const add = db.prepare('INSERT INTO version_raise VALUES (1, 0, ?)');
  const secret = 'what an account had';
  add.run(secret.repeat(3000));
  db.exec('DELETE FROM version_raise');
  checkpoint(db, 'TRUNCATE');
  assert.ok(readFileSync(from).includes(secret));
  copyDatabase(from, to);
  db.close();
  assert.ok(!readFileSync(to).includes(secret));
  assert.equal(statSync(to).mode & 0o777, 0o600);
  const copy = openReader(to);
  assert.equal(copy.pragma('journal_mode', { simple: true }), 'delete');
  copy.close();
});

test('without a running appliance it works as well', async () => {
  await appliance.serving().stop();
  appliance.cli(['backup', target('stopped.tar')]);
  const { ok } = JSON.parse(appliance.cli(['verify', target('stopped.tar'), '--json']).stdout);
  assert.equal(ok, true);
  await appliance.restart();
});

test('while a backup reads, a checkpoint waits for it only briefly, and other writes as long as before', async () => {
  await appliance.serving().stop();
  const path = join(appliance.data, 'detections.db');
  const writer = openDetections(path);
  const reader = openReader(path);
  reader.exec('BEGIN');
  reader.prepare('SELECT count(*) FROM stream_row').get();
  writer.exec('UPDATE window_look SET looked_at = looked_at');
  checkpoint(writer, 'TRUNCATE');
  assert.deepEqual(writer.prepare('PRAGMA busy_timeout').get(), { timeout: 5000 });
  reader.close();
  writer.close();
  await appliance.restart();
});

test('a damaged database is not backed up', async () => {
  await appliance.serving().stop();
  const path = join(appliance.data, 'detections.db');
  const good = readFileSync(path);
  const bad = Buffer.from(good);
  bad.fill(0x5a, Math.floor(bad.length / 2), Math.floor(bad.length / 2) + 4000);
  writeFileSync(path, bad);
  assert.match(refusal(['backup', target('damaged.tar')]), /damaged, so no backup was written/);
  assert.ok(!existsSync(target('damaged.tar')));
  noDrafts();
  writeFileSync(path, good);
  await appliance.restart();
});
