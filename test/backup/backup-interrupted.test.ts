/** A backup folder is restorable at any moment: beside ingest, after a crash, on a full disk, with damage. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { startAppliance } from '../support/appliance.ts';
import { appliance, assertGood, backUp, drop, refusal, target, verified } from '../support/backup.ts';
import { fileName, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { runProgram } from '../support/program.ts';

describe('a folder can be restored at any moment', () => {
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
      assert.ok(code === 0 || /another backup/.test(backup.stderr()), backup.stderr());
    }
    assertGood(folder);
    backUp(folder);
    assertGood(folder);
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

  test('after a crash that left half an entry, or garbage, after the last good one', async () => {
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

  test('on a full disk', async (context) => {
    const disk = target('tiny');
    mkdirSync(disk);
    const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', disk]);
    if (mounted.status !== 0) return context.skip('no file system can be mounted here');
    try {
      const own = await startAppliance();
      try {
        await own.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));
        const folder = join(disk, 'backup');
        own.cli(['backup', folder]);
        const rows = Array.from({ length: 16_000 }, () =>
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
