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
import { join } from 'node:path';
import { test } from 'node:test';
import { AS_OTHER, canBeRunByAnother, OTHER_ID as NOBODY } from '../support/another-user.ts';
import { NO_PRELOAD, runBeside } from '../support/command.ts';
import { programCalls, syncedAfter } from '../support/disk-calls.ts';
import { inFolder, type RunningProgram, runProgram } from '../support/program.ts';
import { until } from '../support/until.ts';

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

test('root opens nothing in the folder of another user, and says how to run as that one', async (context) => {
  if (process.getuid?.() !== 0) return context.skip('only root can try it');
  await inFolder(async (folder) => {
    const data = join(folder, 'data');
    mkdirSync(data);
    chownSync(data, NOBODY, NOBODY);
    const log = join(data, 'wirewatch.log');
    symlinkSync(join(folder, 'elsewhere'), log);
    for (const args of [
      ['serve', '--port', '0'],
      ['account', 'add', 'a', '--name', 'A'],
      ['key', 'list'],
      ['window', 'reset', 'newswire', '--all'],
      ['backup', join(folder, 'backup')],
      ['restore', folder],
      ['compact'],
      ['verify'],
    ]) {
      const run = await runBeside([...args, '--data', data], { WIREWATCH_LOG_FILE: log });
      assert.equal(run.status, 78, `${args}: ${run.stderr}`);
      const advice = `the data folder ${data} belongs to nobody: run this as that user, for example: runuser -u nobody -- wirewatch ...`;
      assert.ok(run.stderr.includes(advice), `${args}: ${run.stderr}`);
    }
    assert.deepEqual(readdirSync(folder), ['data']);
    assert.deepEqual(readdirSync(data), ['wirewatch.log']);
  });
});

test('another user is told whose folder it is, not that there is no installation', async (context) => {
  if (!canBeRunByAnother()) return context.skip('it cannot be run as another user here');
  await inFolder(async (folder) => {
    const data = join(folder, 'data');
    await startedAndStopped(serveOn(data));
    const asOther = (...args: string[]) =>
      runProgram(
        [...args, '--data', data],
        {},
        { through: (program, rest) => ['setpriv', [...AS_OTHER, program, ...rest]] },
      );
    const hidden = asOther('account', 'list');
    assert.equal(await hidden.ended, 78, hidden.stderr());
    assert.match(hidden.stderr(), /no permission to see .*: run it as the user that owns the data folder/);
    chmodSync(folder, 0o755);
    for (const args of [['account', 'list'], ['status'], ['key', 'revoke', 'abcdefghij23', '--yes']]) {
      const run = asOther(...args);
      assert.equal(await run.ended, 78, `${args}: ${run.stderr()}`);
      const advice = `no permission to read ${data} (owned by root): run it as that user, for example: sudo -u root wirewatch ...`;
      assert.ok(run.stderr().includes(advice), `${args}: ${run.stderr()}`);
    }
  });
});

test('root operates the Wirewatch that another user runs', async (context) => {
  if (!canBeRunByAnother()) return context.skip('it cannot be run as another user here');
  await inFolder(async (folder) => {
    const data = join(folder, 'data');
    mkdirSync(data, { mode: 0o700 });
    chownSync(data, NOBODY, NOBODY);
    chmodSync(folder, 0o755);
    const through = (program: string, rest: readonly string[]): [string, string[]] => [
      'setpriv',
      [...AS_OTHER, program, ...rest],
    ];
    const serving = runProgram(['serve', '--port', '0', '--data', data], {}, { through });
    await serving.url();
    const add = await runBeside(['account', 'add', 'a', '--name', 'A', '--data', data]);
    assert.equal(add.status, 0, add.stderr);
    const names = readdirSync(data, { recursive: true, encoding: 'utf8' });
    assert.ok(names.includes('access.db'));
    for (const name of names) assert.equal(lstatSync(join(data, name)).uid, NOBODY, name);
    serving.kill('SIGTERM');
    assert.equal(await serving.ended, 0, serving.stderr());
  });
});

test('no file in the folder may be a link, for a start or a command', async () => {
  await inFolder(async (folder) => {
    const data = join(folder, 'data');
    await startedAndStopped(serveOn(data));
    const elsewhere = join(folder, 'elsewhere');
    writeFileSync(elsewhere, 'precious');
    const [segment = ''] = readdirSync(join(data, 'log'));
    for (const name of ['verified.json', 'usage', 'detections.db-wal', 'lock-state', `log/${segment}`]) {
      const path = join(data, name);
      const before = existsSync(path) ? readFileSync(path) : null;
      rmSync(path, { force: true });
      symlinkSync(elsewhere, path);
      for (const args of [
        ['serve', '--port', '0'],
        ['account', 'list'],
        ['backup', join(folder, 'b')],
      ]) {
        const run = await runBeside([...args, '--data', data]);
        assert.equal(run.status, 78, `${args} ${name}: ${run.stderr}`);
        assert.ok(run.stderr.includes(`${path} is a link.`), run.stderr);
      }
      const checked = await runBeside(['check', '--data', data]);
      assert.equal(checked.status, 1);
      assert.match(checked.stdout, /data folder .*is a link/);
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
    await until('the row counts are written', () => kept().includes('data/usage'));
    const readable = () => kept().filter((name) => (lstatSync(join(folder, name)).mode & 0o077) !== 0);
    for (const name of [
      'data/detections.db',
      'data/usage',
      'data/detections.db-wal',
      'data/lock',
      'copy.db',
      'copy.ndjson',
    ])
      assert.ok(kept().includes(name), `${name}: ${kept()}`);
    assert.deepEqual(readable(), []);
    serving.kill('SIGTERM');
    assert.equal(await serving.ended, 0);
    rmSync(join(data, 'access.db'));
    await cli('compact');
    await cli('account', 'set', 'a', '--name', 'B');
    assert.deepEqual(readable(), []);
  });
});

test('a command that ingests is refused on a drop folder other than the one in use', async () => {
  await inFolder(async (folder) => {
    const [data, drop] = [join(folder, 'data'), join(folder, 'exports')];
    await startedAndStopped(serveOn(data, '--drop', drop));
    const replay = ['ingest', 'replay', '--data', data];
    const refused = await runBeside(replay);
    assert.notEqual(refused.status, 0);
    assert.match(refused.stderr, /data\/drop is not the drop folder of .*--drop/);
    assert.ok(!existsSync(join(data, 'drop')));
    const named = await runBeside([...replay, '--drop', drop]);
    assert.equal(named.status, 0, named.stderr);
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
    const run = runProgram(['serve', '--data', join(folder, 'data'), '--drop', drop, '--port', '0']);
    await run.url();
    assert.ok(!existsSync(join(folder, 'share')));
    run.kill('SIGTERM');
    assert.equal(await run.ended, 0);
    mkdirSync(join(folder, 'share'));
    const again = runProgram(['serve', '--data', join(folder, 'data'), '--drop', drop, '--port', '0']);
    await again.url();
    assert.ok(existsSync(join(drop, 'archive')));
    again.kill('SIGTERM');
    assert.equal(await again.ended, 0);
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
      const run = await runBeside([...args, '--data', join(folder, 'data')]);
      assert.equal(run.status, 78, args.join(' '));
      assert.match(run.stderr, /data is a file, not a folder\. Name another folder with --data\.$/m);
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
        const run = await runBeside([...args, '--data', data]);
        assert.equal(run.status, 78, run.stderr);
        assert.match(run.stderr, /cannot use the data folder .*Run as the owner of the folder/);
      } finally {
        if (isRoot) spawnSync('umount', [data]);
        else chmodSync(data, 0o700);
      }
    });
  });
}
