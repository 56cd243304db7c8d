/** Data folders that cannot be used, and those that are a link. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { NO_PRELOAD } from '../support/command.ts';
import { programCalls, syncedAfter } from '../support/disk-calls.ts';
import { inFolder, type RunningProgram, runProgram } from '../support/program.ts';
import { until } from '../support/until.ts';

const NOBODY = 65_534;

const serveOn = (data: string, ...more: string[]) =>
  runProgram(['serve', '--data', data, '--port', '0', ...more]);

async function startedAndStopped(run: RunningProgram): Promise<void> {
  await run.url();
  run.kill('SIGTERM');
  assert.equal(await run.ended, 0);
}

test('a link to a folder is accepted as data folder: systemd creates one for a dynamic user', async () => {
  await inFolder(async (folder) => {
    mkdirSync(join(folder, 'private'), { mode: 0o700 });
    symlinkSync('private', join(folder, 'data'));
    const run = runProgram(['serve', '--data', join(folder, 'data'), '--port', '0']);
    assert.equal((await fetch(`${await run.url()}/v1/health`)).headers.get('cache-control'), 'no-store');
    const listening = run.log().find(({ msg }) => msg === 'listening');
    assert.match(String(listening?.version), /^\d+\.\d+\.\d+/);
    run.kill('SIGTERM');
    assert.equal(await run.ended, 0);
  });
});

test('a missing secret of a database in use is not replaced: every cursor would be refused', async () => {
  await inFolder(async (folder) => {
    const serve = () => serveOn(join(folder, 'data'));
    await startedAndStopped(serve());
    const secret = join(folder, 'data', 'secret');
    const content = readFileSync(secret);
    rmSync(secret);
    const second = serve();
    assert.equal(await second.ended, 78);
    assert.match(second.stderr(), /the secret .* is missing, although .* already holds data.*from a backup/);
    assert.ok(!existsSync(secret));
    writeFileSync(secret, content);
    await startedAndStopped(serve());
  });
});

test('a database damaged after its first page is rebuilt by the start', async () => {
  await inFolder(async (folder) => {
    const serve = () => serveOn(join(folder, 'data'));
    await startedAndStopped(serve());
    const database = join(folder, 'data', 'detections.db');
    const content = readFileSync(database);
    // After the first page: without that one, the file would not be a database at all.
    writeFileSync(database, content.fill(0x5a, 16_384));
    const second = serve();
    const isMade = ({ msg }: { msg: string }) => msg === 'detections.db was brought up to date from the log';
    await second.until('the new database', () => second.log().find(isMade));
    await startedAndStopped(second);
  });
});

test('in the folder of another user, root acts as that user', async (context) => {
  if (process.getuid?.() !== 0) return context.skip('only root can try it');
  await inFolder(async (folder) => {
    const data = join(folder, 'data');
    const cli = async (...args: string[]) => {
      const run = runProgram([...args, '--data', data]);
      assert.equal(await run.ended, 0, run.stderr());
    };
    const mine = join(folder, 'mine');
    await startedAndStopped(serveOn(mine));
    const backup = join(folder, 'backup');
    await runProgram(['backup', backup, '--data', mine]).ended;
    mkdirSync(data);
    try {
      chownSync(data, NOBODY, NOBODY);
    } catch {
      return context.skip('root may not give a folder away here');
    }
    // The other user must be able to enter the folder.
    chmodSync(folder, 0o755);
    await cli('account', 'add', 'a', '--name', 'A');
    const refused = runProgram(['restore', backup, '--replace', '--data', data]);
    assert.equal(await refused.ended, 1);
    assert.match(
      refused.stderr(),
      /cannot read the backup .*permission denied.*runs as the owner of the data folder/,
    );
    for (const name of ['', ...readdirSync(backup, { recursive: true, encoding: 'utf8' })])
      chmodSync(join(backup, name), 0o755);
    await cli('restore', backup, '--replace');
    const names = readdirSync(data, { recursive: true, encoding: 'utf8' });
    assert.ok(names.includes('detections.db') && names.some((name) => /replaced-.*access\.db/.test(name)));
    for (const name of names) assert.equal(lstatSync(join(data, name)).uid, NOBODY, name);
  });
});

test("root's backup of another user's folder belongs to that user, who continues it", async (context) => {
  if (process.getuid?.() !== 0) return context.skip('only root can try it');
  await inFolder(async (folder) => {
    const data = join(folder, 'data');
    await startedAndStopped(serveOn(data));
    for (const path of [data, ...readdirSync(data, { recursive: true, encoding: 'utf8' })])
      chownSync(resolve(data, path), NOBODY, NOBODY);
    const backups = join(folder, 'backups');
    const backup = () => runProgram(['backup', backups, '--data', data]);

    const unreachable = backup();
    assert.equal(await unreachable.ended, 78);
    assert.match(unreachable.stderr(), /user id 65534 owns the data folder .*, but cannot enter it/);
    chmodSync(folder, 0o755);

    const outside = backup();
    assert.equal(await outside.ended, 1);
    assert.ok(outside.stderr().includes(`install -d -m 0700 -o ${NOBODY} -g ${NOBODY} ${backups}`));
    assert.ok(!existsSync(backups));

    mkdirSync(backups, { mode: 0o700 });
    const notTheirs = backup();
    assert.equal(await notTheirs.ended, 1);
    const advice = `cannot write ${backups}: permission denied (${join(backups, 'lock')}). Give the backup folder to the user that Wirewatch runs as: chown -R ${NOBODY}:${NOBODY} ${backups}`;
    assert.ok(notTheirs.stderr().includes(advice), notTheirs.stderr());

    chownSync(backups, NOBODY, NOBODY);
    for (let run = 1; run <= 2; run += 1) {
      const done = backup();
      assert.equal(await done.ended, 0, done.stderr());
    }
    for (const name of readdirSync(backups, { recursive: true, encoding: 'utf8' }))
      assert.equal(lstatSync(join(backups, name)).uid, NOBODY, name);
  });
});

test('root acting as another user cannot switch back', (context) => {
  if (process.getuid?.() !== 0) return context.skip('only root can try it');
  return inFolder(async (folder) => {
    chownSync(folder, NOBODY, NOBODY);
    const source = (name: string) => JSON.stringify(join(import.meta.dirname, '../../src/store', name));
    const code = `
      import { readFileSync } from 'node:fs';
      import { actAsOwner } from ${source('acting-user.ts')};
      import { dataFolder } from ${source('folder.ts')};
      actAsOwner(dataFolder(${JSON.stringify(folder)}));
      try { process.seteuid(0); } catch (error) { console.log(error.code); }
      try { process.setuid(0); } catch (error) { console.log(error.code); }
      console.log(readFileSync('/proc/self/status', 'utf8').match(/^(Uid|Gid|Groups):.*$/gm).join(' '));`;
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', code], {
      encoding: 'utf8',
    });
    const four = Array(4).fill(NOBODY).join('\t');
    assert.equal(stdout.trim(), `EPERM\nEPERM\nUid:\t${four} Gid:\t${four} Groups:\t${NOBODY}`, stderr);
  });
});

test('root does not serve the folder of another user, and opens nothing in it', async (context) => {
  if (process.getuid?.() !== 0) return context.skip('only root can try it');
  await inFolder(async (folder) => {
    const data = join(folder, 'data');
    mkdirSync(data);
    chownSync(data, NOBODY, NOBODY);
    symlinkSync(join(folder, 'elsewhere'), join(data, 'wirewatch.log'));
    const run = runProgram(['serve', '--data', data, '--port', '0'], {
      WIREWATCH_LOG_FILE: join(data, 'wirewatch.log'),
    });
    assert.equal(await run.ended, 78);
    assert.match(run.stderr(), /root cannot serve .* belongs to user id 65534.*setpriv --reuid=65534/);
    assert.deepEqual(readdirSync(folder), ['data']);
    assert.deepEqual(readdirSync(data), ['wirewatch.log']);
  });
});

test('no file in the folder may be a link, for a start or a command', async () => {
  await inFolder(async (folder) => {
    const data = join(folder, 'data');
    await startedAndStopped(serveOn(data));
    const elsewhere = join(folder, 'elsewhere');
    writeFileSync(elsewhere, 'precious');
    const [segment = ''] = readdirSync(join(data, 'log'));
    for (const name of ['alerts.json', 'verified.json', 'usage.db-wal', 'lock-state', `log/${segment}`]) {
      const path = join(data, name);
      const before = existsSync(path) ? readFileSync(path) : null;
      rmSync(path, { force: true });
      symlinkSync(elsewhere, path);
      for (const args of [
        ['serve', '--port', '0'],
        ['account', 'list'],
        ['backup', join(folder, 'b')],
      ]) {
        const run = runProgram([...args, '--data', data]);
        assert.equal(await run.ended, 78, `${args} ${name}: ${run.stderr()}`);
        assert.ok(run.stderr().includes(`${path} is a link.`), run.stderr());
      }
      const checked = runProgram(['check', '--data', data]);
      assert.equal(await checked.ended, 1);
      assert.match(checked.stdout(), /data folder .*is a link/);
      rmSync(path);
      if (before !== null) writeFileSync(path, before, { mode: 0o600 });
    }
    assert.equal(readFileSync(elsewhere, 'utf8'), 'precious');
    await startedAndStopped(serveOn(data));
  });
});

test('files are accessible to their user only, even in a readable folder and without a umask', async () => {
  await inFolder(async (folder) => {
    const data = join(folder, 'data');
    mkdirSync(data, { mode: 0o755 });
    const through = (program: string, args: readonly string[]): [string, string[]] => [
      'sh',
      ['-c', 'umask 000; exec "$0" "$@"', program, ...args],
    ];
    const run = (...args: string[]) => runProgram([...args, '--data', data], {}, { through });
    const cli = async (...args: string[]) => {
      const command = run(...args);
      assert.equal(await command.ended, 0, command.stderr());
      return command.stdout();
    };
    await cli('account', 'add', 'a', '--name', 'A');
    await cli('subscription', 'add', '7001', '--account', 'a');
    const terms = ['--name', 'k', '--scopes', 'detections:read', '--subscriptions', '7001', '--json'];
    const { key } = JSON.parse(await cli('key', 'create', '--account', 'a', ...terms));
    writeFileSync(join(folder, 'key'), key);
    const serving = run('serve', '--port', '0', '--drop', join(folder, 'drop'));
    const url = await serving.url();
    await cli('generate', '--out', join(folder, 'drop'), '--rows', '5', '--subscriptions', '7001');
    await serving.until('the export', () => serving.log().find(({ msg }) => msg === 'file applied'));
    for (const into of ['copy.db', 'copy.ndjson']) {
      const pull = ['pull', '--base-url', url, '--key-file', join(folder, 'key'), '--full'];
      const command = runProgram([...pull, '--into', join(folder, into)], {}, { through });
      assert.equal(await command.ended, 0, command.stderr());
    }
    await cli('verify');
    await cli('backup', join(folder, 'backup'));
    const kept = () =>
      readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
        /^(data\/|backup|copy)/.test(name),
      );
    await until('the row counts are written', () => kept().includes('data/usage.db-wal'));
    const readable = () => kept().filter((name) => (lstatSync(join(folder, name)).mode & 0o077) !== 0);
    for (const name of ['data/detections.db', 'data/usage.db-wal', 'data/lock', 'copy.db', 'copy.ndjson'])
      assert.ok(kept().includes(name), `${name}: ${kept()}`);
    assert.deepEqual(readable(), []);
    serving.kill('SIGTERM');
    assert.equal(await serving.ended, 0);
    rmSync(join(data, 'access.db'));
    await cli('rebuild');
    await cli('account', 'list');
    assert.deepEqual(readable(), []);
  });
});

test('so it does when it rebuilds access.db only to read it', async (context) => {
  if (process.getuid?.() !== 0) return context.skip('only root can try it');
  await inFolder(async (folder) => {
    chmodSync(folder, 0o755);
    const data = join(folder, 'data');
    await startedAndStopped(serveOn(data));
    rmSync(join(data, 'access.db'));
    try {
      for (const name of ['', ...readdirSync(data, { recursive: true, encoding: 'utf8' })])
        chownSync(join(data, name), NOBODY, NOBODY);
    } catch {
      return context.skip('root may not give a folder away here');
    }
    const status = runProgram(['ingest', 'status', '--data', data]);
    assert.equal(await status.ended, 0, status.stderr());
    assert.match(status.stderr(), /access\.db was rebuilt from its log/);
    for (const name of readdirSync(data)) assert.equal(lstatSync(join(data, name)).uid, NOBODY, name);
  });
});

test('a command that ingests is refused on a drop folder other than the one in use', async () => {
  await inFolder(async (folder) => {
    const [data, drop] = [join(folder, 'data'), join(folder, 'exports')];
    await startedAndStopped(serveOn(data, '--drop', drop));
    const replay = ['ingest', 'replay', '--data', data];
    const refused = runProgram(replay);
    assert.notEqual(await refused.ended, 0);
    assert.match(refused.stderr(), /data\/drop is not the drop folder of .*--drop/);
    assert.ok(!existsSync(join(data, 'drop')));
    const named = runProgram([...replay, '--drop', drop]);
    assert.equal(await named.ended, 0, named.stderr());
  });
});

test('a new data folder survives a power cut, with its parents', {
  skip: NO_PRELOAD,
}, async () => {
  await inFolder(async (folder) => {
    const { settings, calls } = programCalls(folder);
    const data = join(folder, 'lib', 'wirewatch');
    const args = ['account', 'add', 'agency', '--name', 'Agency', '--data', data];
    assert.equal(await runProgram(args, settings).ended, 0);
    assert.deepEqual(syncedAfter(calls(), data, 2), [join(folder, 'lib'), folder]);
  });
});

test('a drop folder is created, but not its parents: a share may not be mounted', async () => {
  await inFolder(async (folder) => {
    const drop = join(folder, 'share', 'exports');
    const serve = () => runProgram(['serve', '--data', join(folder, 'data'), '--drop', drop, '--port', '0']);
    const refused = serve();
    assert.equal(await refused.ended, 78);
    assert.match(refused.stderr(), /cannot use the drop folder .*share.*its parent folder exists/);
    assert.ok(!existsSync(join(folder, 'share')));
    mkdirSync(join(folder, 'share'));
    const run = serve();
    await run.url();
    assert.ok(existsSync(join(drop, 'archive')));
    run.kill('SIGTERM');
    assert.equal(await run.ended, 0);
  });
});

test('a path that is not a folder is refused with exit code 78', async () => {
  await inFolder(async (folder) => {
    writeFileSync(join(folder, 'data'), '');
    for (const args of [
      ['serve', '--port', '0'],
      ['account', 'add', 'a', '--name', 'A'],
      ['account', 'list'],
    ]) {
      const run = runProgram([...args, '--data', join(folder, 'data')]);
      assert.equal(await run.ended, 78, args.join(' '));
      assert.match(run.stderr(), /data is a file, not a folder\. Name another folder with --data\.$/m);
    }
  });
});

for (const args of [
  ['serve', '--port', '0'],
  ['account', 'add', 'a', '--name', 'A'],
]) {
  test(`an unwritable folder is refused, with a hint: ${args[0]}`, async (context) => {
    await inFolder(async (folder) => {
      const data = join(folder, 'data');
      mkdirSync(data);
      const isRoot = process.getuid?.() === 0;
      // Modes do not restrict root, but a read-only mount does.
      const mount = ['-t', 'tmpfs', '-o', 'ro,size=64k', 'tmpfs', data];
      if (isRoot && spawnSync('mount', mount).status !== 0)
        return context.skip('no file system can be mounted here');
      if (!isRoot) chmodSync(data, 0o500);
      try {
        const run = runProgram([...args, '--data', data]);
        assert.equal(await run.ended, 78, run.stderr());
        assert.match(run.stderr(), /cannot use the data folder .*Run as the owner of the folder/);
      } finally {
        if (isRoot) spawnSync('umount', [data]);
        else chmodSync(data, 0o700);
      }
    });
  });
}
