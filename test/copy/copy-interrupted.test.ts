/** A copy can be restored at any moment: beside ingest and other backups, after a kill, on a full disk. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { startAppliance } from '../support/appliance.ts';
import { appliance, assertGood, backUp, drop, target } from '../support/copies.ts';
import { fileName, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { runProgram } from '../support/program.ts';

test('while files are ingested and other backups run', async () => {
  const folder = target('busy');
  const backups: ReturnType<typeof runProgram>[] = [];
  for (let round = 0; round < 8; round += 1) {
    backups.push(runProgram(['backup', folder, '--data', appliance.data]));
    const rows = Array.from({ length: 500 }, () => newRow());
    const line = await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson(rows));
    assert.equal(line.msg, 'file applied');
  }
  for (const backup of backups) assert.equal(await backup.ended, 0, backup.stderr());
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
    await new Promise((resolve) => setTimeout(resolve, 60 * round));
    backup.kill('SIGKILL');
    await backup.ended;
    assertGood(folder);
  }
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
      const folder = join(disk, 'copy');
      own.cli(['backup', folder]);
      const rows = Array.from({ length: 16_000 }, () =>
        newRow({ article_headline: randomBytes(60).toString('base64') }),
      );
      await own.dropped(fileName('newswire', nextWindowMs()), ndjson(rows));
      const { status, stderr } = own.cli(['backup', folder], { anyStatus: true });
      assert.equal(status, 1);
      assert.match(stderr, /cannot write the copy .*: the disk is full\. Free space there/);
      assertGood(folder);
    } finally {
      await own.stop();
    }
  } finally {
    spawnSync('umount', [disk]);
  }
});
