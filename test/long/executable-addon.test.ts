/**
 * How the executable loads SQLite's addon: only from a folder and a file that no other user can write.
 *
 * The program is test/executable/main.ts, packed by the same build: it opens databases and prints the results.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { beforeEach, test } from 'node:test';
import { NODE_FLAGS } from '../../src/packed.ts';
import { Refused } from '../../src/refused.ts';
import { addonFolders, loadAddon, nativeBinding } from '../../src/store/addon.ts';
import { buildExecutable, PROJECT, sqliteVersion } from '../support/executable.ts';

const executable = buildExecutable('probe', {
  main: 'test/executable/main.ts',
  worker: 'test/executable/worker.ts',
});
let home = '';
let temporary = '';

beforeEach(() => {
  ({ home, temporary } = executable.place());
});

const environment = (more: Record<string, string> = {}) => ({ HOME: home, TMPDIR: temporary, ...more });
const cache = () => join(home, '.cache', 'wirewatch');

interface Seen {
  mainSqlite: string;
  worker: { sqlite: string; stack: string };
  execArgv: string[];
  sep: string;
}

/** Runs the probe and returns its results; SQLite must have worked on both threads. */
function runProbe(more: Record<string, string> = {}, cwd = home): Seen {
  const result = spawnSync(executable.path, [], { cwd, env: environment(more), encoding: 'utf8' });
  return checked(result.status, result.stdout, result.stderr);
}

function checked(status: number | null, stdout: string, stderr: string): Seen {
  assert.equal(status, 0, stderr);
  const seen: Seen = JSON.parse(stdout);
  assert.match(seen.mainSqlite, /^3\.\d+\.\d+$/);
  assert.equal(seen.worker.sqlite, seen.mainSqlite);
  return seen;
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

test('databases open on the main thread and in a worker, from a private copy of the addon', () => {
  const { mainSqlite, worker } = runProbe();
  assert.equal(mainSqlite, sqliteVersion());
  const file = addonIn(cache());
  assert.equal(statSync(cache()).mode & 0o777, 0o700);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.match(worker.stack, /at worker\.cjs:\d+/, 'a stack must name the script');

  const before = statSync(file).mtimeMs;
  runProbe();
  assert.equal(statSync(file).mtimeMs, before, 'a good copy must be reused');
});

test('the environment cannot load code, and a signal opens no debugger', () => {
  const [library, settings, loaded] = ['so', 'cnf', 'loaded'].map((name) => join(home, `provider.${name}`));
  const code = `#include <stdio.h>\n__attribute__((constructor)) static void load(void) { fopen("${loaded}", "w"); }`;
  const args = ['-shared', '-fPIC', '-x', 'c', '-o', `${library}`, '-'];
  const isBuilt = spawnSync('cc', args, { input: code }).status === 0;
  const section = ['nodejs_conf', 'openssl_conf'].map((name) => `${name} = one`).join('\n');
  const parts = ['[one]', 'providers = two', '[two]', 'three = three', '[three]', `module = ${library}`];
  writeFileSync(`${settings}`, [section, ...parts, 'activate = 1', ''].join('\n'));
  const named = { OPENSSL_CONF: `${settings}` };
  if (isBuilt) {
    spawnSync(process.execPath, ['-e', ''], { env: named });
    assert.ok(existsSync(`${loaded}`), 'a plain Node loads it');
    rmSync(`${loaded}`);
  }
  const { execArgv } = runProbe({ NODE_OPTIONS: `--require ${join(home, 'absent.js')}`, ...named });
  assert.deepEqual(execArgv, [...NODE_FLAGS]);
  assert.equal(existsSync(`${loaded}`), false);
});

test('WIREWATCH_ADDON_DIR comes first, and is created if missing', () => {
  const folder = join(home, 'srv', 'addon');
  runProbe({ WIREWATCH_ADDON_DIR: folder });
  addonIn(folder);
  assert.equal(existsSync(cache()), false);
});

/** Runs the probe as root in its own namespace, after a shell command with mounts has changed the home. */
function runProbeAfter(change: string): Seen {
  const command = `${change} && exec "$PROBE"`;
  const options = {
    cwd: temporary,
    env: environment({ PROBE: executable.path, PATH: '/usr/bin:/bin:/usr/sbin:/sbin' }),
  };
  const result = spawnSync('unshare', [UNSHARE, 'sh', '-c', command], { ...options, encoding: 'utf8' });
  return checked(result.status, result.stdout, result.stderr);
}

const UNSHARE = process.getuid?.() === 0 ? '-m' : '-rm';
const mounts = `mount -t tmpfs none "${tmpdir()}"`;
const needsMounts = {
  skip: spawnSync('unshare', [UNSHARE, 'sh', '-c', mounts]).status !== 0 && 'no mounts can be made here',
};

for (const option of ['noexec', 'ro'])
  test(`a home mounted ${option} is skipped`, needsMounts, () => {
    runProbeAfter(`mount -t tmpfs -o ${option} none "$HOME"`);
    addonIn(join(temporary, 'wirewatch-0'));
  });

test('a read-only home with a good copy is used', needsMounts, () => {
  runProbe();
  const { mtimeMs } = statSync(addonIn(cache()));
  runProbeAfter('mount --bind "$HOME" "$HOME" && mount -o remount,ro,bind "$HOME"');
  assert.equal(statSync(addonIn(cache())).mtimeMs, mtimeMs);
  assert.deepEqual(readdirSync(temporary), []);
});

/** What may be in the place of the file, and what must still be there afterwards. */
const REPLACED: Readonly<Record<string, (file: string) => () => void>> = {
  'a modified file': (file) => {
    const bytes = readFileSync(file);
    bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
    writeFileSync(file, bytes);
    return () => {};
  },
  'a short file': (file) => {
    writeFileSync(file, 'short');
    return () => {};
  },
  'a file that anyone could write': (file) => {
    chmodSync(file, 0o666);
    return () => assert.equal(statSync(file).mode & 0o777, 0o600);
  },
  'a link': (file) => {
    const elsewhere = join(home, 'elsewhere');
    writeFileSync(elsewhere, readFileSync(file));
    rmSync(file);
    symlinkSync(elsewhere, file);
    return () => assert.ok(existsSync(elsewhere), 'its target is left alone');
  },
  'a pipe, which would block the start': (file) => {
    rmSync(file);
    assert.equal(spawnSync('mkfifo', [file]).status, 0);
    return () => {};
  },
};
for (const [name, put] of Object.entries(REPLACED))
  test(`in place of the file, ${name} is replaced`, () => {
    runProbe();
    const check = put(addonIn(cache()));
    runProbe();
    addonIn(cache());
    check();
  });

/** What is skipped, and left as it is. @returns the folder in which nothing may be created */
const SKIPPED: Readonly<Record<string, () => string>> = {
  'a link in place of the folder': () => {
    const elsewhere = join(home, 'elsewhere');
    mkdirSync(elsewhere, { mode: 0o700 });
    mkdirSync(dirname(cache()));
    symlinkSync(elsewhere, cache());
    return elsewhere;
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
    runProbe();
    assert.deepEqual([readdirSync(folder), statSync(folder).mode], [[], mode]);
    addonIn(join(temporary, `wirewatch-${process.getuid?.()}`));
  });

test('a home that is not a folder is skipped, a sticky one that others can write to is used', () => {
  chmodSync(home, 0o1777);
  runProbe();
  addonIn(cache());
  rmSync(home, { recursive: true });
  writeFileSync(home, '');
  runProbe({}, temporary);
  addonIn(join(temporary, `wirewatch-${process.getuid?.()}`));
});

test('concurrent first starts do not disturb each other', async () => {
  const starts = Array.from({ length: 8 }, async () => {
    const child = spawn(executable.path, [], { cwd: home, env: environment() });
    const ended = once(child, 'close');
    const [stdout, stderr, [status]] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
    return checked(status, stdout, stderr);
  });
  await Promise.all(starts);
  addonIn(cache());
});

function addonBytes(): Uint8Array {
  const require = createRequire(import.meta.url);
  const { getPrebuildPath } = require(join(PROJECT, 'node_modules/better-sqlite3/lib/binding.js'));
  return readFileSync(getPrebuildPath());
}

test('if no folder works, the error has the reason for each, and a hint', () => {
  writeFileSync(join(home, 'file'), '');
  mkdirSync(join(home, 'open'));
  chmodSync(join(home, 'open'), 0o777);
  const folders = [join(home, 'file', 'wirewatch'), join(home, 'open')];
  assert.throws(
    () => loadAddon(addonBytes(), folders),
    (error) => {
      assert.ok(error instanceof Refused);
      assert.equal(error.code, 'configuration');
      for (const folder of folders) assert.ok(error.message.includes(`  ${folder}: `), error.message);
      assert.match(error.message, /has mode 0777, not 0700/);
      assert.match(error.message, /Set WIREWATCH_ADDON_DIR to a folder/);
      return true;
    },
  );
});

test('if the system cannot load a copy, the next folder is tried', () => {
  const folders = [join(home, 'a'), join(home, 'b')];
  assert.throws(
    () => loadAddon(Buffer.from('not an addon'), folders),
    (error) => error instanceof Refused && folders.every((folder) => error.message.includes(`  ${folder}: `)),
  );
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
