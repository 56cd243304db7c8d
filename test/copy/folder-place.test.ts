/** A folder as the place of a copy: its own cases, besides those of all places. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { link } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { openFolderPlace } from '../../src/copy/folder-place.ts';
import { tryPlace } from '../../src/copy/open-place.ts';
import { type Place, Unreachable } from '../../src/copy/place.ts';
import { Refused } from '../../src/refused.ts';
import { OTHER_ID } from '../support/another-user.ts';
import { testPlaces } from '../support/place-cases.ts';
import { testFolder } from '../support/test-folder.ts';
import { eventually } from '../support/until.ts';

const SOURCE = join(import.meta.dirname, '..', '..', 'src', 'copy', 'folder-place.ts');
const ONE = Buffer.from('one');
const modeOf = (path: string) => (fs.statSync(path).mode & 0o777).toString(8);
const temporaries = (folder: string) =>
  fs.readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.includes('.tmp'));
const unreachable = (pattern: RegExp) => (error: unknown) => {
  assert.ok(error instanceof Unreachable && error.cause !== undefined, String(error));
  assert.match(error.message, pattern);
  return true;
};
const failure = (code: string) => Object.assign(new Error(code), { code, syscall: 'link' });

function newPlace() {
  const folder = testFolder();
  const root = join(folder, 'copy');
  return { folder, root, place: openFolderPlace(root) };
}

testPlaces('folder', async () => {
  const { root, place } = newPlace();
  return { place, again: async () => openFolderPlace(root) };
});

const share = process.env.WIREWATCH_TEST_SHARE;
testPlaces(
  'NFS',
  async () => {
    const root = fs.mkdtempSync(join(share ?? '', 'wirewatch-'));
    return { place: openFolderPlace(root), again: async () => openFolderPlace(root) };
  },
  share === undefined && 'no share: name a folder on a mounted one in WIREWATCH_TEST_SHARE',
);

test('folders and files are for their owner alone, and no temporary file stays', async () => {
  const { root, place } = newPlace();
  await place.create('log/0001/1.zst', ONE);
  await place.create('log/0001/1.zst', ONE);
  const modes = ['', 'log', 'log/0001', 'log/0001/1.zst'].map((name) => modeOf(join(root, name)));
  assert.deepEqual(modes, ['700', '700', '700', '600']);
  assert.deepEqual(temporaries(root), []);
});

test('without hard links, a folder is refused', async () => {
  for (const code of ['EPERM', 'ENOTSUP', 'ENOSYS']) {
    const root = join(testFolder(), 'copy');
    const place = openFolderPlace(root, () => Promise.reject(failure(code)));
    await assert.rejects(tryPlace(place), (error) => {
      assert.ok(error instanceof Refused && error.code === 'failed');
      assert.match(error.message, /has no hard links \(E\w+\).*Use a folder on ext4/);
      return true;
    });
    assert.deepEqual(fs.readdirSync(join(root, 'try')), []);
  }
});

test('a share that repeats a link whose answer was lost: the link is its own', async () => {
  const root = join(testFolder(), 'copy');
  const place = openFolderPlace(root, async (from, to) => {
    // An object gets its name once it is whole, so that a kill leaves no part of one.
    assert.deepEqual([fs.readFileSync(from), fs.existsSync(to)], [ONE, false]);
    await link(from, to);
    throw failure('EEXIST');
  });
  assert.equal(await place.create('log/1.zst', ONE), true);
  assert.equal(await place.create('log/2.zst', ONE), true);
});

test('a share that hangs: the operation ends after its time, and no other begins until it answers', async () => {
  const root = join(testFolder(), 'copy');
  const hang = Promise.withResolvers<void>();
  let calls = 0;
  const hanging = async (from: string | Buffer | URL, to: string | Buffer | URL) => {
    calls++;
    await hang.promise;
    await link(from, to);
  };
  const place = openFolderPlace(root, hanging as typeof link, 500);
  await assert.rejects(place.create('a', ONE), /does not answer/);
  await assert.rejects(place.create('b', ONE), /does not answer/);
  // Whoever tries again opens it anew.
  for (const opened of [place, openFolderPlace(root)])
    await assert.rejects(opened.list('', ''), /does not answer/);
  assert.equal(calls, 1);
  hang.resolve();
  await eventually(async () => void (await place.list('', '')));
  assert.deepEqual(await place.read('a'), ONE);
});

test('a share that is mounted anew while a call hangs for ever is used again; one that still hangs takes two threads', async () => {
  let root = join(testFolder(), 'copy');
  let calls = 0;
  const hanging = () => {
    calls++;
    return new Promise<void>(() => {});
  };
  const open = (call: typeof link) => openFolderPlace(root, call, 100, 500);
  await assert.rejects(open(hanging).create('a', ONE), /does not answer/);
  // One that ended late may have created it.
  await eventually(async () => void (await open(link).create('b', ONE)));
  assert.deepEqual(await open(link).read('b'), ONE);
  [root, calls] = [join(testFolder(), 'copy'), 0];
  for (let attempt = 0; attempt < 40; attempt += 1) {
    await assert.rejects(open(hanging).create('a', ONE), /does not answer/);
    await wait(50);
  }
  assert.equal(calls, 2);
});

test('left temporary files are deleted after a day, and never listed', async () => {
  const { root, place } = newPlace();
  await place.create('log/1.zst', ONE);
  const draft = (digit: string) => join(root, 'log', `.tmp-${digit.repeat(16)}`);
  const [old, young] = [draft('0'), draft('1')];
  for (const path of [old, young]) fs.writeFileSync(path, '');
  const before = Date.now() / 1000 - 25 * 3600;
  fs.utimesSync(old, before, before);
  assert.deepEqual(await place.list('', ''), ['log/1.zst']);
  assert.deepEqual([fs.existsSync(old), fs.existsSync(young)], [false, true]);
});

test('links are not followed out of the place', async () => {
  const { folder, root, place } = newPlace();
  await place.create('log/1.zst', ONE);
  fs.writeFileSync(join(folder, 'secret'), 'secret');
  fs.symlinkSync(join(folder, 'secret'), join(root, 'log', '2.zst'));
  fs.symlinkSync(folder, join(root, 'more'));
  assert.deepEqual(await place.list('', ''), ['log/1.zst']);
  await assert.rejects(place.read('log/2.zst'), Unreachable);
  assert.equal(await place.create('log/2.zst', ONE), false);
  assert.equal(fs.readFileSync(join(folder, 'secret'), 'utf8'), 'secret');
});

test('a folder whose parent is not there is not made; nothing is known of it', async () => {
  const root = join(testFolder(), 'mnt', 'copy');
  const place = openFolderPlace(root);
  const lost = unreachable(/no such file or folder.*Check that the disk or share is mounted/);
  for (const prefix of ['', 'log/']) await assert.rejects(place.list(prefix, ''), lost);
  await assert.rejects(place.create('a', ONE), lost);
  await assert.rejects(place.read('a'), lost);
  await assert.rejects(place.delete('a'), lost);
  assert.equal(fs.existsSync(join(root, '..')), false);
});

test('a folder that went is not made again; one within it is', async () => {
  const { root, place } = newPlace();
  await place.create('log/1', ONE);
  fs.rmSync(join(root, 'log'), { recursive: true });
  assert.equal(await place.create('log/1', ONE), true);
  fs.rmSync(root, { recursive: true });
  const away = unreachable(/mounted/);
  for (let round = 0; round < 3; round++) {
    for (const name of ['log/2', 'new/2']) await assert.rejects(place.create(name, ONE), away);
    await assert.rejects(place.read('log/1'), away);
    await assert.rejects(place.list('log/', ''), away);
  }
  assert.equal(fs.existsSync(root), false);
  fs.mkdirSync(root);
  assert.equal(await place.create('log/2', ONE), true);
  // Nor one that was only looked at.
  for (const look of [(at: Place) => at.list('', ''), (at: Place) => at.read('log/1')]) {
    const looking = openFolderPlace(`${root}/`);
    await look(looking);
    fs.rmSync(root, { recursive: true });
    await assert.rejects(looking.create('log/1', ONE), away);
    fs.mkdirSync(root);
  }
});

test('without the right to write, or to read', async () => {
  const { folder, root, place } = newPlace();
  await place.create('log/1', ONE);
  for (const path of [folder, root, join(root, 'log')]) fs.chmodSync(path, 0o555);
  // Permissions do not restrict root.
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) process.seteuid?.(OTHER_ID);
  try {
    const advice = 'Give the user that Wirewatch runs as the right to read and write';
    const denied = unreachable(new RegExp(`permission denied.*${advice}`));
    await assert.rejects(place.create('log/2', ONE), denied);
    await assert.rejects(place.delete('log/1'), denied);
    await assert.rejects(openFolderPlace(join(folder, 'new')).create('a', ONE), denied);
    if (isRoot) await assert.rejects(place.read('log/1'), denied);
    assert.deepEqual(await place.list('', ''), ['log/1']);
  } finally {
    if (isRoot) process.seteuid?.(0);
    for (const path of [folder, root, join(root, 'log')]) fs.chmodSync(path, 0o700);
  }
});

/** In a mount namespace of its own: a small disk, which the script fills or makes read-only. */
function onDisk(script: string) {
  const disk = testFolder();
  const program = `
    import assert from 'node:assert/strict';
    import { execFileSync } from 'node:child_process';
    import { openFolderPlace } from ${JSON.stringify(SOURCE)};
    const disk = ${JSON.stringify(disk)};
    const mount = (...args) => execFileSync('mount', [...args, disk]);
    mount('-t', 'tmpfs', '-o', 'size=1m', 'tmpfs');
    const place = openFolderPlace(disk);
    const ended = (call) => call.then(() => 'done', ({ name, message }) => name + ': ' + message);
    ${script}
  `;
  return inNamespace(process.execPath, '--input-type=module', '-e', program);
}

const inNamespace = (...command: string[]) =>
  spawnSync('unshare', ['--user', '--map-root-user', '--mount', ...command], { encoding: 'utf8' });
const canMount = inNamespace('mount', '-t', 'tmpfs', 'tmpfs', tmpdir()).status === 0;
const skip = !canMount && 'no disk can be mounted here';

test('a full disk, where nothing of the object stays; a read-only one, where reads go on', { skip }, () => {
  const { stderr, status } = onDisk(`
    await place.create('log/1', Buffer.alloc(600_000));
    assert.match(await ended(place.create('log/2', Buffer.alloc(600_000))), /^Unreachable: .*the disk is full.*Free space there/);
    assert.deepEqual(await place.list('', ''), ['log/1']);
    await place.delete('log/1');
    assert.equal(await place.create('log/2', Buffer.from('two')), true);
    mount('-o', 'remount,ro');
    const other = openFolderPlace(disk);
    const writes = [() => place.create('log/3', new Uint8Array()), () => other.create('new/2', new Uint8Array()), () => place.delete('log/2')];
    for (const write of writes)
      assert.match(await ended(write()), /^Unreachable: .*the file system is read-only.*Mount it so/);
    assert.deepEqual(await place.read('log/2'), Buffer.from('two'));
    assert.deepEqual(await place.list('', ''), ['log/2']);
  `);
  assert.deepEqual([status, stderr], [0, '']);
});
