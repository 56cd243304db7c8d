/**
 * dist/wirewatch, the one executable: it runs with nothing around it, and loads SQLite's addon only from a folder
 * and a file that nobody else could have prepared.
 *
 * Two are built: the real program, and test/executable/main.ts with the same build, which opens databases and says
 * what it saw.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
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
import { after, before, beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Refused } from '../src/refused.ts';
import { addonFolders, loadAddon, nativeBinding } from '../src/store/addon.ts';
import { VERSION } from '../src/version.ts';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
mkdirSync(join(root, 'dist'), { recursive: true });
const built = mkdtempSync(join(root, 'dist', 'test-'));
const scratch = mkdtempSync(join(tmpdir(), 'wirewatch-executable-'));
const program = join(built, 'wirewatch');
const probe = join(built, 'probe');

before(() => {
  const source = join(root, 'build', 'executable.mjs');
  const entries = { main: 'test/executable/main.ts', worker: 'test/executable/worker.ts' };
  const script =
    `const { makeExecutable } = await import(${JSON.stringify(source)});\n` +
    `await makeExecutable({ output: ${JSON.stringify(program)} });\n` +
    `await makeExecutable({ output: ${JSON.stringify(probe)}, entries: ${JSON.stringify(entries)} });`;
  // No home and no search path but the system's: the build needs neither.
  const env = { PATH: '/usr/bin:/bin', HOME: join(scratch, 'absent') };
  const result = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    cwd: scratch,
    env,
    encoding: 'utf8',
  });
  assert.equal(result.status, 0, result.stderr);
  assert.deepEqual(readdirSync(scratch), [], 'the build writes nothing elsewhere');
  assert.deepEqual(readdirSync(built).sort(), ['probe', 'wirewatch']);
});

after(() => {
  rmSync(built, { recursive: true, force: true });
  rmSync(scratch, { recursive: true, force: true });
});

let home = '';
let temporary = '';
let places = 0;

beforeEach(() => {
  home = join(scratch, String(places++), 'home');
  temporary = join(dirname(home), 'tmp');
  mkdirSync(home, { recursive: true });
  mkdirSync(temporary);
});

const cache = () => join(home, '.cache', 'wirewatch');
const environment = (more: Record<string, string> = {}) => ({ HOME: home, TMPDIR: temporary, ...more });

interface Seen {
  mainSqlite: string;
  worker: { sqlite: string; stack: string };
  licensesNamed: string[];
  execArgv: string[];
  sep: string;
}

/** Runs the probe and returns what it saw; it must have seen SQLite on both threads. */
function look(more: Record<string, string> = {}): Seen {
  const result = spawnSync(probe, [], { cwd: home, env: environment(more), encoding: 'utf8' });
  return checked(result.status, result.stdout, result.stderr);
}

function checked(status: number | null, stdout: string, stderr: string): Seen {
  assert.equal(status, 0, stderr);
  const seen: Seen = JSON.parse(stdout);
  assert.match(seen.mainSqlite, /^3\.\d+\.\d+$/);
  assert.equal(seen.worker.sqlite, seen.mainSqlite);
  return seen;
}

/** The one addon in a folder, whose content must be what its name says. */
function addonIn(folder: string): string {
  const [name = '', ...others] = readdirSync(folder);
  assert.deepEqual(others, []);
  const file = join(folder, name);
  assert.ok(lstatSync(file).isFile());
  assert.equal(name, `better_sqlite3-${createHash('sha256').update(readFileSync(file)).digest('hex')}.node`);
  return file;
}

test('the program runs in an empty directory with an empty environment, and leaves it empty', () => {
  const result = spawnSync(program, ['--version'], { cwd: home, env: {}, encoding: 'utf8' });
  assert.equal(result.status, 0, result.stderr);
  assert.ok(result.stdout.includes(VERSION), result.stdout);
  assert.equal(result.stderr, '');
  assert.deepEqual(readdirSync(home), []);
});

test('databases open on the main thread and in a worker, from a private copy of the addon', () => {
  const { licensesNamed, worker } = look();
  const file = addonIn(cache());
  assert.equal(statSync(cache()).mode & 0o777, 0o700);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.match(worker.stack, /at worker\.cjs:\d+/, 'a stack names the script');
  for (const name of [`wirewatch ${VERSION}`, 'better-sqlite3 ', `Node.js ${process.versions.node}`]) {
    assert.ok(
      licensesNamed.some((line) => line.startsWith(name)),
      name,
    );
  }

  const before = statSync(file).mtimeMs;
  look();
  assert.equal(statSync(file).mtimeMs, before, 'a good copy is used again');
});

test('the environment cannot load code, nor a signal open a debugger', () => {
  const { execArgv } = look({ NODE_OPTIONS: `--require ${join(home, 'absent.js')}` });
  assert.deepEqual(execArgv, ['--disable-sigusr1']);
});

test('a home that is no folder is passed over', () => {
  rmSync(home, { recursive: true });
  writeFileSync(home, '');
  const result = spawnSync(probe, [], { cwd: temporary, env: environment(), encoding: 'utf8' });
  checked(result.status, result.stdout, result.stderr);
  addonIn(join(temporary, `wirewatch-${process.getuid?.()}`));
});

test('WIREWATCH_ADDON_DIR comes first, and is made when missing', () => {
  const folder = join(home, 'srv', 'addon');
  look({ WIREWATCH_ADDON_DIR: folder });
  addonIn(folder);
  assert.equal(existsSync(cache()), false);
});

test('a file that was tampered with is replaced', () => {
  look();
  const file = addonIn(cache());
  const bytes = readFileSync(file);
  bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
  writeFileSync(file, bytes);
  look();
  addonIn(cache());

  writeFileSync(file, 'short');
  look();
  addonIn(cache());

  chmodSync(file, 0o666);
  look();
  assert.equal(statSync(addonIn(cache())).mode & 0o777, 0o600, 'anyone could have been writing to it');
});

test('a link in the place of the file is replaced, and what it leads to is left alone', () => {
  look();
  const file = addonIn(cache());
  const elsewhere = join(home, 'elsewhere');
  writeFileSync(elsewhere, readFileSync(file));
  rmSync(file);
  symlinkSync(elsewhere, file);
  look();
  addonIn(cache());
  assert.ok(existsSync(elsewhere));
});

test('a pipe in the place of the file does not hold up the start', () => {
  look();
  const file = addonIn(cache());
  rmSync(file);
  assert.equal(spawnSync('mkfifo', [file]).status, 0);
  look();
  addonIn(cache());
});

test('a link in the place of the folder is passed over', () => {
  const elsewhere = join(home, 'elsewhere');
  mkdirSync(elsewhere, { mode: 0o700 });
  mkdirSync(dirname(cache()));
  symlinkSync(elsewhere, cache());
  look();
  assert.deepEqual(readdirSync(elsewhere), []);
  addonIn(join(temporary, `wirewatch-${process.getuid?.()}`));
});

test('a folder that others may enter is passed over, unchanged', () => {
  mkdirSync(cache(), { recursive: true });
  chmodSync(cache(), 0o755);
  look();
  assert.deepEqual(readdirSync(cache()), []);
  assert.equal(statSync(cache()).mode & 0o777, 0o755);
  addonIn(join(temporary, `wirewatch-${process.getuid?.()}`));
});

test("somebody else's folder is passed over", {
  skip: process.getuid?.() !== 0 && 'only root can give a folder away',
}, () => {
  mkdirSync(cache(), { recursive: true, mode: 0o700 });
  chownSync(cache(), 12345, 12345);
  look();
  assert.deepEqual(readdirSync(cache()), []);
  addonIn(join(temporary, `wirewatch-${process.getuid?.()}`));
});

test('several first starts at once do not disturb each other', async () => {
  const starts = Array.from({ length: 8 }, async () => {
    const child = spawn(probe, [], { cwd: home, env: environment() });
    const output = { stdout: '', stderr: '' };
    child.stdout.on('data', (data) => {
      output.stdout += String(data);
    });
    child.stderr.on('data', (data) => {
      output.stderr += String(data);
    });
    const { promise, resolve } = Promise.withResolvers<number | null>();
    child.on('close', resolve);
    return checked(await promise, output.stdout, output.stderr);
  });
  await Promise.all(starts);
  addonIn(cache());
});

function addonBytes(): Uint8Array {
  const require = createRequire(import.meta.url);
  const { getPrebuildPath } = require(join(root, 'node_modules/better-sqlite3/lib/binding.js'));
  return readFileSync(getPrebuildPath());
}

test('where no folder works, the operator learns of each one why, and what to do', () => {
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

test('a copy that the system will not load, as on a noexec mount, is followed by the next folder', () => {
  // What cannot be loaded stands for what may not be: the system's loader refuses both in the same call.
  const folders = [join(home, 'a'), join(home, 'b')];
  assert.throws(
    () => loadAddon(Buffer.from('not an addon'), folders),
    (error) => error instanceof Refused && folders.every((folder) => error.message.includes(`  ${folder}: `)),
  );
  const addon = loadAddon(addonBytes(), [join(home, 'c')]);
  assert.ok('Database' in addon);
});

test('the folders are tried in a fixed order; what is unset, empty or relative is passed over', () => {
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
