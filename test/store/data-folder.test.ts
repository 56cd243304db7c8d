/** Data folders that cannot be used, and those that are a link. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { asOther, OTHER_ID as NOBODY, withoutAnotherUser } from '../support/another-user.ts';
import { assertFailed, NO_PRELOAD, runBeside, succeedBeside } from '../support/command.ts';
import { programCalls } from '../support/disk-calls.ts';
import { inFolder, runProgram } from '../support/program.ts';
import { until } from '../support/until.ts';
import { words } from '../support/words.ts';

const serveOn = (data: string, ...more: string[]) =>
  runProgram(['serve', '--data', data, '--port', '0', ...more]);
/** Commands that write, and one that does not. */
const START = ['serve', '--port', '0'];
const ADD = ['account', 'add', 'a', '--name', 'A'];
const LIST = ['account', 'list'];

/** Each of these commands must be refused, with exit code 78 and a message with this text. */
async function assertRefused(commands: readonly string[][], data: string, text: string, env = {}) {
  for (const args of commands) {
    const { status, stderr } = await runBeside([...args, '--data', data], env);
    assert.equal(status, 78, `${args}: ${stderr}`);
    assert.ok(stderr.includes(text), `${args}: ${stderr}`);
  }
}

/** @param use gets the path of a data folder that is not there yet, and the folder around it */
const inData = (use: (data: string, folder: string) => Promise<unknown>) =>
  inFolder(async (folder) => void (await use(join(folder, 'data'), folder)));

async function startedAndStopped(data: string, ...more: string[]): Promise<void> {
  await using run = serveOn(data, ...more);
  await run.url();
}

test('a link to a folder is accepted as data folder: systemd creates one for a dynamic user', () =>
  inFolder(async (folder) => {
    fs.mkdirSync(join(folder, 'private'), { mode: 0o700 });
    fs.symlinkSync('private', join(folder, 'data'));
    await using run = serveOn(join(folder, 'data'));
    assert.equal((await fetch(`${await run.url()}/v1/health`)).headers.get('cache-control'), 'no-store');
    const listening = run.log().find(({ msg }) => msg === 'listening');
    assert.match(String(listening?.version), /^\d+\.\d+\.\d+/);
  }));

test('a missing secret of a database in use is not replaced: every cursor would be refused', () =>
  inData(async (data) => {
    await startedAndStopped(data);
    const secret = join(data, 'secret');
    const content = fs.readFileSync(secret);
    fs.rmSync(secret);
    const lost = /the secret .* is missing, although .* already holds data.*from a backup/;
    assertFailed(await runBeside([...START, '--data', data]), 78, lost);
    assert.ok(!fs.existsSync(secret));
    fs.writeFileSync(secret, content);
    await startedAndStopped(data);
  }));

const skip = process.getuid?.() !== 0 && 'only root can try it';

test('root opens nothing in the folder of another user, and says how to run as that one', { skip }, () =>
  inData(async (data, folder) => {
    fs.mkdirSync(data);
    fs.chownSync(data, NOBODY, NOBODY);
    const log = join(data, 'wirewatch.log');
    fs.symlinkSync(join(folder, 'elsewhere'), log);
    const reset = ['window', 'reset', 'newswire', '--all'];
    const copying = [`backup ${join(folder, 'backup')}`, `restore ${folder}`];
    const others = ['key list', 'compact', 'verify', ...copying].map((command) => command.split(' '));
    const advice = `the data folder ${data} belongs to nobody: run this as that user, for example: runuser -u nobody -- wirewatch ...`;
    await assertRefused([START, ADD, reset, ...others], data, advice, { WIREWATCH_LOG_FILE: log });
    assert.deepEqual(fs.readdirSync(folder), ['data']);
    assert.deepEqual(fs.readdirSync(data), ['wirewatch.log']);
  }),
);

const skipOther = withoutAnotherUser();

test('another user is told whose folder it is, not that there is no installation', { skip: skipOther }, () =>
  inData(async (data, folder) => {
    await startedAndStopped(data);
    const refusal = async (...args: string[]) => {
      const run = runProgram([...args, '--data', data], {}, { through: asOther });
      assert.equal(await run.ended, 78, `${args}: ${run.stderr()}`);
      return run.stderr();
    };
    const hidden = /no permission to see .*: run it as the user that owns the data folder/;
    assert.match(await refusal(...LIST), hidden);
    fs.chmodSync(folder, 0o755);
    const advice = `the data folder ${data} belongs to root: run this as that user, for example: sudo -u root wirewatch ...`;
    for (const args of [LIST, ['status'], ['key', 'revoke', 'abcdefghij23', '--yes']])
      assert.ok((await refusal(...args)).includes(advice), `${args}`);
  }),
);

test('root operates the Wirewatch that another user runs', { skip: skipOther }, () =>
  inData(async (data, folder) => {
    fs.mkdirSync(data, { mode: 0o700 });
    fs.chownSync(data, NOBODY, NOBODY);
    fs.chmodSync(folder, 0o755);
    await using serving = runProgram([...START, '--data', data], {}, { through: asOther });
    await serving.url();
    await succeedBeside([...ADD, '--data', data]);
    const names = fs.readdirSync(data, { recursive: true, encoding: 'utf8' });
    assert.ok(names.includes('access.db'));
    for (const name of names) assert.equal(fs.lstatSync(join(data, name)).uid, NOBODY, name);
  }),
);

test('no file in the folder may be a link, for a start or a command', () =>
  inData(async (data, folder) => {
    await startedAndStopped(data);
    const elsewhere = join(folder, 'elsewhere');
    fs.writeFileSync(elsewhere, 'precious');
    const [segment = ''] = fs.readdirSync(join(data, 'log'));
    for (const name of ['verified.json', 'usage', 'detections.db-wal', 'lock-state', `log/${segment}`]) {
      const path = join(data, name);
      const before = fs.existsSync(path) ? fs.readFileSync(path) : null;
      fs.rmSync(path, { force: true });
      fs.symlinkSync(elsewhere, path);
      await assertRefused([START, LIST, ['backup', join(folder, 'b')]], data, `${path} is a link.`);
      const checked = await runBeside(['check', '--data', data]);
      assert.equal(checked.status, 1);
      assert.match(checked.stdout, /data folder .*is a link/);
      fs.rmSync(path);
      if (before !== null) fs.writeFileSync(path, before, { mode: 0o600 });
    }
    assert.equal(fs.readFileSync(elsewhere, 'utf8'), 'precious');
    await startedAndStopped(data);
  }));

test('files are accessible to their user only, even in a readable folder and without a umask', () =>
  inData(async (data, folder) => {
    fs.mkdirSync(data, { mode: 0o755 });
    const through = (program: string, args: readonly string[]): [string, string[]] => {
      return ['sh', ['-c', 'umask 000; exec "$0" "$@"', program, ...args]];
    };
    const run = (...args: string[]) => runProgram(args, {}, { through });
    const done = async (...args: string[]) => {
      const command = run(...args);
      assert.equal(await command.ended, 0, command.stderr());
      return command.stdout();
    };
    const cli = (...args: string[]) => done(...args, '--data', data);
    await cli(...ADD);
    await cli('subscription', 'add', '7001', '--account', 'a');
    const terms = ['--name', 'k', '--scopes', 'detections:read', '--subscriptions', '7001', '--json'];
    const { key } = JSON.parse(await cli('key', 'create', '--account', 'a', ...terms));
    fs.writeFileSync(join(folder, 'key'), key);
    const serving = run(...START, '--data', data, '--drop', join(folder, 'drop'));
    const url = await serving.url();
    await cli('generate', '--out', join(folder, 'drop'), '--rows', '5', '--subscriptions', '7001');
    await serving.logged('the export', ({ msg }) => msg === 'file applied');
    const pull = ['pull', '--base-url', url, '--key-file', join(folder, 'key'), '--full'];
    for (const into of ['copy.db', 'copy.ndjson']) await done(...pull, '--into', join(folder, into));
    await cli('verify');
    await cli('backup', join(folder, 'backup'));
    const isKept = (name: string) => /^(data\/|backup|copy)/.test(name);
    const kept = () => fs.readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(isKept);
    await until('the row counts are written', () => kept().includes('data/usage'));
    const readable = () => kept().filter((name) => (fs.lstatSync(join(folder, name)).mode & 0o077) !== 0);
    const written = 'data/detections.db data/usage data/detections.db-wal data/lock copy.db copy.ndjson';
    for (const name of words(written)) assert.ok(kept().includes(name), `${name}: ${kept()}`);
    assert.deepEqual(readable(), []);
    assert.equal(await serving.stop(), 0);
    fs.rmSync(join(data, 'access.db'));
    await cli('compact');
    await cli('account', 'set', 'a', '--name', 'B');
    assert.deepEqual(readable(), []);
  }));

test('a command that ingests is refused on a drop folder other than the one in use', () =>
  inData(async (data, folder) => {
    const drop = join(folder, 'exports');
    await startedAndStopped(data, '--drop', drop);
    await succeedBeside(['account', 'add', 'a', '--name', 'A', '--data', data]);
    const replay = ['ingest', 'replay', '--data', data];
    for (const args of [replay, ['account', 'remove', 'a', '--yes', '--data', data]])
      assertFailed(await runBeside(args), 78, /data\/drop is not the drop folder of .*--drop/);
    // Nothing was changed.
    assert.match((await succeedBeside([...LIST, '--data', data])).stdout, /^a /m);
    assert.ok(!fs.existsSync(join(data, 'drop')));
    await succeedBeside([...replay, '--drop', drop]);
  }));

test('a new data folder survives a power cut, with its parents', { skip: NO_PRELOAD }, () =>
  inFolder(async (folder) => {
    const { settings, calls } = programCalls(folder);
    const data = join(folder, 'lib', 'wirewatch');
    assert.equal(await runProgram([...ADD, '--data', data], settings).ended, 0);
    const since = calls().slice(calls().findIndex(({ call, path }) => call === 'create' && path === data));
    const synced = since.flatMap(({ call, path }) => (call === 'sync' ? [path] : []));
    assert.deepEqual(synced.slice(0, 2), [join(folder, 'lib'), folder]);
    assert.equal(fs.lstatSync(data).mode & 0o777, 0o700);
  }),
);

test('a drop folder is created, but not its parents: a share may not be mounted', () =>
  inFolder(async (folder) => {
    const [share, drop] = [join(folder, 'share'), join(folder, 'share', 'exports')];
    await startedAndStopped(join(folder, 'data'), '--drop', drop);
    assert.ok(!fs.existsSync(share));
    fs.mkdirSync(share);
    await startedAndStopped(join(folder, 'data'), '--drop', drop);
    assert.ok(fs.existsSync(join(drop, 'archive')));
  }));

test('a path that is not a folder is refused with exit code 78', () =>
  inData(async (data) => {
    fs.writeFileSync(data, '');
    const reason = 'data is a file, not a folder. Name another folder with --data.\n';
    await assertRefused([START, ADD, LIST], data, reason);
  }));

test('an unwritable folder is refused, with a hint', (context) =>
  inData(async (data) => {
    fs.mkdirSync(data);
    const isRoot = process.getuid?.() === 0;
    // Modes do not restrict root, but a read-only mount does.
    const mount = ['-t', 'tmpfs', '-o', 'ro,size=64k', 'tmpfs', data];
    if (isRoot && spawnSync('mount', mount).status !== 0)
      return context.skip('no file system can be mounted here');
    if (!isRoot) fs.chmodSync(data, 0o500);
    try {
      await assertRefused([START, ADD], data, 'cannot use the data folder ');
      await assertRefused([START, ADD], data, 'Run as the owner of the folder');
    } finally {
      if (isRoot) spawnSync('umount', [data]);
      else fs.chmodSync(data, 0o700);
    }
  }));
