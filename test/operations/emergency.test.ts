/**
 * What must succeed on a full disk, every time: revoking a key and suspending an account; also after a restart there. On a
 * disk that became read-only it holds as long as the process lives, and everything says so.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { assertFailed, runBeside, succeedBeside } from '../support/command.ts';
import { inFolder, serve } from '../support/program.ts';
import { fillDisk, isWritable } from '../support/test-folder.ts';

const KEYS = 12;
const DISK_MIB = 24;

test('on a full disk every revocation succeeds at once, running, stopped and after a kill', async (context) => {
  if (process.getuid?.() !== 0) return context.skip('only root can mount a small disk');
  await inFolder(async (folder) => {
    const disk = join(folder, 'disk');
    mkdirSync(disk);
    const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MIB}m,mode=700`, 'tmpfs', disk]);
    if (mounted.status !== 0) return context.skip('a small disk cannot be mounted here');
    using held = new DisposableStack();
    held.defer(() => spawnSync('umount', ['--lazy', disk]));
    await onFullDisk(join(disk, 'data'), join(folder, 'drop'), join(disk, 'ballast'));
  });
});

/** @returns runs a command on a data folder, which must succeed, and returns what it prints */
const commandsOn =
  (data: string) =>
  async (...args: string[]) =>
    (await succeedBeside([...args, '--data', data])).stdout;

const statusOf = async (url: string, key = ''): Promise<number> =>
  (await fetch(`${url}/v1/me`, { headers: { authorization: `Bearer ${key}` } })).status;

/** Keys of an account of a new installation. */
async function makeKeys(count: number, data: string): Promise<{ id: string; key: string }[]> {
  const cli = async (line: string) => JSON.parse(await commandsOn(data)(...line.split(' '), '--json'));
  await cli('account add acme --name Acme');
  await cli('subscription add 7001 --account acme');
  const terms = '--account acme --scopes detections:read --subscriptions 7001';
  const keys = [];
  for (let at = 0; at < count; at += 1) keys.push(await cli(`key create --name ${at} ${terms}`));
  return keys;
}

async function onFullDisk(data: string, drop: string, ballast: string): Promise<void> {
  const cli = commandsOn(data);
  const keys = await makeKeys(KEYS, data);
  const start = () => serve(data, ['--drop', drop]);
  const revoke = (at: number) => cli('key', 'revoke', keys[at]?.id ?? '', '--yes');

  const first = await start();
  fillDisk(ballast);
  for (let at = 0; at < 4; at += 1) {
    assert.equal(await statusOf(first.url, keys[at]?.key), 200);
    await revoke(at);
    assert.equal(await statusOf(first.url, keys[at]?.key), 401, `key ${at}, at once`);
    fillDisk(ballast);
  }
  await first.kill();

  fillDisk(ballast);
  const second = await start();
  for (const { id, key } of keys.slice(0, 4)) assert.equal(await statusOf(second.url, key), 401, id);
  for (let at = 4; at < 8; at += 1) {
    fillDisk(ballast);
    await revoke(at);
    assert.equal(await statusOf(second.url, keys[at]?.key), 401, `key ${at}, at once`);
  }
  await second.stop();

  fillDisk(ballast);
  for (let at = 8; at < 10; at += 1) await revoke(at);
  const third = await start();
  for (let at = 0; at < 10; at += 1) assert.equal(await statusOf(third.url, keys[at]?.key), 401, `key ${at}`);
  assert.equal(await statusOf(third.url, keys[10]?.key), 200);
  fillDisk(ballast);
  await cli('account', 'suspend', 'acme');
  assert.equal(await statusOf(third.url, keys[10]?.key), 403);

  // With room, all of it is in access.db and in the audit trail.
  rmSync(ballast);
  await cli('account', 'set', 'acme', '--name', 'Acme two');
  await third.stop();
  const listed: { id: string; status: string }[] = JSON.parse(await cli('key', 'list', '--json'));
  const revoked = listed.filter(({ status }) => status === 'revoked').map(({ id }) => id);
  const expected = keys.slice(0, 10).map(({ id }) => id);
  assert.deepEqual(revoked.sort(), expected.sort());
  assert.equal(JSON.parse(await cli('account', 'show', 'acme', '--json')).status, 'suspended');
  const trail = await cli('audit');
  for (const id of expected) assert.match(trail, new RegExp(`key ${id} changed: revoked_at none`), id);
}

test('on a disk that became read-only, a key is refused at once, in memory alone, and the alert says why', async (context) => {
  if (process.getuid?.() !== 0) return context.skip('only root can mount a disk');
  await inFolder(async (folder) => {
    const [image, disk] = [join(folder, 'image'), join(folder, 'disk')];
    mkdirSync(disk);
    writeFileSync(image, '');
    truncateSync(image, 2 * DISK_MIB * 1024 * 1024);
    const made = spawnSync('mkfs.ext4', ['-q', image]);
    const mounted =
      made.status === 0 && spawnSync('mount', ['-o', 'loop,errors=remount-ro', image, disk]).status === 0;
    if (!mounted) return context.skip('a disk with ext4 cannot be mounted here');
    using held = new DisposableStack();
    held.defer(() => spawnSync('umount', ['--lazy', disk]));
    const source = String(spawnSync('findmnt', ['-no', 'SOURCE', disk]).stdout ?? '').trim();
    const trigger = `/sys/fs/ext4/${basename(source)}/trigger_fs_error`;
    if (!isWritable(trigger)) return context.skip('a disk cannot be made to fail here');
    await onReadOnlyDisk(join(disk, 'data'), join(folder, 'drop'), trigger);
  });
});

async function onReadOnlyDisk(data: string, drop: string, trigger: string): Promise<void> {
  const cli = (...args: string[]) => runBeside([...args, '--data', data]);
  const [{ id, key } = { id: '', key: '' }] = await makeKeys(1, data);
  const serving = await serve(data, ['--drop', drop]);
  const { url } = serving;
  assert.equal(await statusOf(url, key), 200);

  // As the file system itself does after an error; a plain remount is refused while files are open for writing.
  writeFileSync(trigger, '1');
  const onlyHere =
    /is revoked only in the memory of the running Wirewatch.*After a restart it would work again/;
  assertFailed(await cli('key', 'revoke', id, '--yes'), 1, onlyHere);
  assert.equal(await statusOf(url, key), 401);
  await serving.logged('the alert', ({ alert }) => alert === 'data folder not writable');
  for (const words of [['alert', 'list'], ['status']])
    assert.match((await cli(...words)).stdout, /data folder not writable.*read-only/s);
  const health: { status: string } = JSON.parse(await (await fetch(`${url}/v1/health`)).text());
  assert.equal(health.status, 'degraded');
  assert.equal(await serving.stop(), 0);
  assert.equal(serving.log().at(-1)?.msg, 'stopped');
}
