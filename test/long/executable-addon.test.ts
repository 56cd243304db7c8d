/** How the executable loads SQLite's addon: only from a folder and a file that no other user can write. */
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { addonFolders, loadAddon, nativeBinding } from '../../src/store/addon.ts';
import { environment, executable, home, PROJECT, temporary } from '../support/executable.ts';
import { flipBit } from '../support/flip-bit.ts';
import { without } from '../support/installed.ts';
import { refusal } from '../support/refusal.ts';
import { words } from '../support/words.ts';

const cache = () => join(home, '.cache', 'wirewatch');

/** A command that creates a database. */
const addAccount = () =>
  words(`account add agency --name Agency --data ${mkdtempSync(join(dirname(home), 'data-'))}`);

function openDatabase(more: Record<string, string> = {}, cwd = home): void {
  execFileSync(executable, addAccount(), { cwd, env: environment(more), stdio: 'pipe' });
}

/** The only addon in a folder; its content must match its name. */
function addonIn(folder: string): string {
  const [name = '', ...others] = readdirSync(folder);
  assert.deepEqual(others, []);
  const file = join(folder, name);
  assert.ok(lstatSync(file).isFile());
  assert.equal(name, `better_sqlite3-${createHash('sha256').update(readFileSync(file)).digest('hex')}.node`);
  return file;
}

test('a database opens with a private copy of the addon', () => {
  openDatabase();
  const file = addonIn(cache());
  assert.equal(statSync(cache()).mode & 0o777, 0o700);
  assert.equal(statSync(file).mode & 0o777, 0o600);

  const before = statSync(file).mtimeMs;
  openDatabase();
  assert.equal(statSync(file).mtimeMs, before, 'a good copy must be reused');
});

test('NODE_OPTIONS loads no code', () => {
  openDatabase({ NODE_OPTIONS: `--require ${join(home, 'absent.js')}` });
});

test('OPENSSL_CONF loads no library', { skip: without('cc') }, () => {
  const [library, settings, loaded] = ['so', 'cnf', 'loaded'].map((name) => join(home, `provider.${name}`));
  const code = `#include <stdio.h>\n__attribute__((constructor)) static void load(void) { fopen("${loaded}", "w"); }`;
  const args = ['-shared', '-fPIC', '-x', 'c', '-o', `${library}`, '-'];
  execFileSync('cc', args, { input: code });
  const section = ['nodejs_conf', 'openssl_conf'].map((name) => `${name} = one`).join('\n');
  const parts = ['[one]', 'providers = two', '[two]', 'three = three', '[three]', `module = ${library}`];
  writeFileSync(`${settings}`, [section, ...parts, 'activate = 1', ''].join('\n'));
  const named = { OPENSSL_CONF: `${settings}` };
  spawnSync(process.execPath, ['-e', ''], { env: named });
  assert.ok(existsSync(`${loaded}`), 'a plain Node loads it');
  rmSync(`${loaded}`);
  openDatabase(named);
  assert.equal(existsSync(`${loaded}`), false);
});

test('WIREWATCH_ADDON_DIR comes first, and is created if missing', () => {
  const folder = join(home, 'srv', 'addon');
  openDatabase({ WIREWATCH_ADDON_DIR: folder });
  addonIn(folder);
  assert.equal(existsSync(cache()), false);
});

/** As root in its own namespace, after a shell command with mounts has changed the home. */
function openDatabaseAfter(change: string): void {
  const command = ['sh', '-c', `${change} && exec "$0" "$@"`, executable, ...addAccount()];
  const env = environment({ PATH: '/usr/bin:/bin:/usr/sbin:/sbin' });
  execFileSync('unshare', [UNSHARE, ...command], { cwd: temporary, env, stdio: 'pipe' });
}

const UNSHARE = process.getuid?.() === 0 ? '-m' : '-rm';
const mounts = `mount -t tmpfs none "${tmpdir()}"`;
const needsMounts = {
  skip: spawnSync('unshare', [UNSHARE, 'sh', '-c', mounts]).status !== 0 && 'no mounts can be made here',
};

for (const option of ['noexec', 'ro'])
  test(`a home mounted ${option} is skipped`, needsMounts, () => {
    openDatabaseAfter(`mount -t tmpfs -o ${option} none "$HOME"`);
    addonIn(join(temporary, 'wirewatch-0'));
  });

test('a read-only home with a good copy is used', needsMounts, () => {
  openDatabase();
  const { mtimeMs } = statSync(addonIn(cache()));
  openDatabaseAfter('mount --bind "$HOME" "$HOME" && mount -o remount,ro,bind "$HOME"');
  assert.equal(statSync(addonIn(cache())).mtimeMs, mtimeMs);
  assert.deepEqual(readdirSync(temporary), []);
});

const elsewhere = () => join(home, 'elsewhere');

/** What may be in the place of the file. */
const REPLACED: Readonly<Record<string, (file: string) => void>> = {
  'a modified file': (file) => flipBit(file),
  'a short file': (file) => writeFileSync(file, 'short'),
  'a file that anyone could write': (file) => chmodSync(file, 0o666),
  'a link, but not its target,': (file) => {
    renameSync(file, elsewhere());
    symlinkSync(elsewhere(), file);
  },
  'a pipe, which would block the start': (file) => {
    rmSync(file);
    execFileSync('mkfifo', [file]);
  },
};
for (const [name, put] of Object.entries(REPLACED))
  test(`in place of the file, ${name} is replaced`, () => {
    openDatabase();
    put(addonIn(cache()));
    const hasTarget = existsSync(elsewhere());
    openDatabase();
    assert.equal(statSync(addonIn(cache())).mode & 0o777, 0o600);
    assert.equal(existsSync(elsewhere()), hasTarget);
  });

/** What is skipped, and left as it is. @returns the folder in which nothing may be created */
const SKIPPED: Readonly<Record<string, () => string>> = {
  'a link in place of the folder': () => {
    mkdirSync(elsewhere(), { mode: 0o700 });
    mkdirSync(dirname(cache()));
    symlinkSync(elsewhere(), cache());
    return elsewhere();
  },
  'a folder that others can access': () => {
    mkdirSync(cache(), { recursive: true });
    chmodSync(cache(), 0o755);
    return cache();
  },
  ...Object.fromEntries(
    [0o777, 0o770, 0o2775].map((mode) => [
      `a folder inside one that others can write to, ${mode.toString(8)}`,
      () => {
        chmodSync(home, mode);
        return home;
      },
    ]),
  ),
  ...(process.getuid?.() === 0 && {
    "another user's folder": () => {
      mkdirSync(cache(), { recursive: true, mode: 0o700 });
      chownSync(cache(), 12345, 12345);
      return cache();
    },
    "a folder inside another user's": () => {
      chownSync(home, 12345, 12345);
      return home;
    },
  }),
};
for (const [name, make] of Object.entries(SKIPPED))
  test(`${name} is skipped, unchanged`, () => {
    const folder = make();
    const { mode } = statSync(folder);
    openDatabase();
    assert.deepEqual([readdirSync(folder), statSync(folder).mode], [[], mode]);
    addonIn(join(temporary, `wirewatch-${process.getuid?.()}`));
  });

test('a home that is not a folder is skipped, a sticky one that others can write to is used', () => {
  chmodSync(home, 0o1777);
  openDatabase();
  addonIn(cache());
  rmSync(home, { recursive: true });
  writeFileSync(home, '');
  openDatabase({}, temporary);
  addonIn(join(temporary, `wirewatch-${process.getuid?.()}`));
});

test('concurrent first starts do not disturb each other', async () => {
  const starts = Array.from({ length: 8 }, async () => {
    const child = spawn(executable, addAccount(), { cwd: home, env: environment(), stdio: 'pipe' });
    const [stderr, [status]] = await Promise.all([text(child.stderr), once(child, 'close')]);
    assert.equal(status, 0, stderr);
  });
  await Promise.all(starts);
  addonIn(cache());
});

function addonBytes(): Uint8Array {
  const require = createRequire(import.meta.url);
  const { getPrebuildPath } = require(join(PROJECT, 'node_modules/better-sqlite3/lib/binding.js'));
  return readFileSync(getPrebuildPath());
}

/** The addon can be loaded from none of the folders. @returns the message, which has the reason for each */
function reasons(bytes: Uint8Array, folders: readonly string[]): string {
  const why = refusal('configuration', () => loadAddon(bytes, folders));
  for (const folder of folders) assert.ok(why.includes(`  ${folder}: `), why);
  return why;
}

test('if no folder works, the error has the reason for each, and a hint', () => {
  writeFileSync(join(home, 'file'), '');
  mkdirSync(join(home, 'open'));
  chmodSync(join(home, 'open'), 0o777);
  const why = reasons(addonBytes(), [join(home, 'file', 'wirewatch'), join(home, 'open')]);
  assert.match(why, /has mode 0777, not 0700/);
  assert.match(why, /Set WIREWATCH_ADDON_DIR to a folder/);
});

test('if the system cannot load a copy, the next folder is tried', () => {
  reasons(Buffer.from('not an addon'), [join(home, 'a'), join(home, 'b')]);
  const { addon, file } = loadAddon(addonBytes(), [join(home, 'c')]);
  assert.ok('Database' in addon);
  assert.equal(dirname(file), join(home, 'c'));
});

test('the folders are tried in a fixed order; unset, empty and relative ones are skipped', () => {
  const uid = process.getuid?.();
  const all = {
    WIREWATCH_ADDON_DIR: 'here',
    XDG_CACHE_HOME: '/x/cache',
    XDG_RUNTIME_DIR: '/run/user/1',
    TMPDIR: '/t',
  };
  const folders = addonFolders(all);
  const withoutHome = folders.filter((folder) => !folder.endsWith('/.cache/wirewatch'));
  assert.equal(folders.indexOf('/x/cache/wirewatch'), 1);
  assert.deepEqual(withoutHome, [
    join(process.cwd(), 'here'),
    '/x/cache/wirewatch',
    '/run/user/1/wirewatch',
    `/t/wirewatch-${uid}`,
    ...(process.platform === 'linux' ? [`/dev/shm/wirewatch-${uid}`] : []),
  ]);
  const few = addonFolders({ WIREWATCH_ADDON_DIR: '', XDG_CACHE_HOME: 'cache', XDG_RUNTIME_DIR: '' });
  assert.ok(few.includes(`/tmp/wirewatch-${uid}`));
  assert.ok(!few.some((folder) => folder.startsWith(join(process.cwd(), 'cache'))));
});

test('with node_modules, better-sqlite3 finds its own addon', () => {
  assert.equal(nativeBinding(), undefined);
});
