/** The data folder that cannot be used, and the one that is only a link. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { inFolder, runProgram } from './support/program.ts';

test('a link to a folder is a data folder: systemd makes one for a dynamic user', async () => {
  await inFolder(async (folder) => {
    mkdirSync(join(folder, 'private'), { mode: 0o700 });
    symlinkSync('private', join(folder, 'data'));
    const run = runProgram(['serve', '--data', join(folder, 'data'), '--port', '0']);
    assert.equal((await fetch(`${await run.url()}/v1/health`)).headers.get('cache-control'), 'no-store');
    run.kill('SIGTERM');
    assert.equal(await run.ended, 0);
  });
});

test('what is no folder is refused with exit code 78', async () => {
  await inFolder(async (folder) => {
    writeFileSync(join(folder, 'data'), '');
    const run = runProgram(['serve', '--data', join(folder, 'data'), '--port', '0']);
    assert.equal(await run.ended, 78);
    assert.match(run.told(), /cannot use the data folder .*data/);
  });
});

for (const args of [
  ['serve', '--port', '0'],
  ['account', 'add', 'a', '--name', 'A'],
]) {
  test(`one that may not be written to is refused with what to do: ${args[0]}`, async (context) => {
    await inFolder(async (folder) => {
      const data = join(folder, 'data');
      mkdirSync(data);
      const isRoot = process.getuid?.() === 0;
      // Modes do not bind root; a disk that is mounted read-only does.
      const mount = ['-t', 'tmpfs', '-o', 'ro,size=64k', 'tmpfs', data];
      if (isRoot && spawnSync('mount', mount).status !== 0)
        return context.skip('no file system can be mounted here');
      if (!isRoot) chmodSync(data, 0o500);
      try {
        const run = runProgram([...args, '--data', data]);
        assert.equal(await run.ended, 78, run.told());
        assert.match(run.told(), /cannot use the data folder .*Run this as the user whom it belongs to/);
      } finally {
        if (isRoot) spawnSync('umount', [data]);
        else chmodSync(data, 0o700);
      }
    });
  });
}
