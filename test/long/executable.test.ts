/**
 * dist/wirewatch, the one executable: it runs with nothing around it, and loads SQLite's addon only from a folder
 * and a file that nobody else could have prepared.
 *
 * Two are built: the real program, and test/executable/main.ts with the same build, which opens databases and says
 * what it saw. All tests from outside run on the executable with `npm run test:executable`; here are some of them.
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
import { Refused } from '../../src/refused.ts';
import { addonFolders, loadAddon, nativeBinding } from '../../src/store/addon.ts';
import { VERSION } from '../../src/version.ts';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
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
  const made = ['probe', 'wirewatch'].flatMap((name) => [name, `${name}.cdx.json`, `${name}.sha256`]);
  assert.deepEqual(readdirSync(built).sort(), made);
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

/** What a command of the real program prints. */
function wirewatch(...args: string[]): string {
  const result = spawnSync(program, args, { cwd: home, env: {}, encoding: 'utf8', maxBuffer: 1e8 });
  assert.equal(result.status, 0, result.stderr);
  return result.stdout;
}

test('it is one file of less than 125 MB, and its checksum stands beside it as sha256sum reads it', () => {
  const bytes = readFileSync(program);
  assert.ok(bytes.length < 125_000_000, `${bytes.length} bytes`);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  assert.equal(readFileSync(`${program}.sha256`, 'utf8'), `${sha256}  wirewatch\n`);
});

test('nothing in it names the folder in which it was made', () => {
  assert.ok(!readFileSync(program).includes(built));
});

test('version says which build it is and what is in it', () => {
  const { commit, ...rest } = JSON.parse(wirewatch('version', '--json'));
  const platform = `${process.platform}-${process.arch}`;
  const { sqlite, ...others } = rest;
  assert.match(commit, /^([0-9a-f]{12}(-dirty)?|unknown)$/);
  assert.match(sqlite, /^3\.\d+\.\d+$/);
  assert.deepEqual(others, { version: VERSION, node: process.versions.node, platform });
  const text = `wirewatch ${VERSION} (commit ${commit}, Node ${process.versions.node}, SQLite ${sqlite}, ${platform})\n`;
  assert.equal(wirewatch('version'), text);
  assert.equal(wirewatch('--version'), text);
});

interface Inside {
  name: string;
  version: string;
  license: string;
  text: string;
}

test('licenses has the text of everything inside, of Node and SQLite too', () => {
  const inside: Inside[] = JSON.parse(wirewatch('licenses', '--json'));
  const named = new Map(inside.map((one) => [one.name, one]));
  for (const { name, version, license, text } of inside) {
    assert.ok(license.length > 0 && text.length > 200, name);
    assert.match(version, /^\d+\.\d+\.\d+/, name);
  }
  assert.equal(inside[0]?.name, 'wirewatch');
  assert.match(named.get('SQLite')?.text ?? '', /public domain[\s\S]*May you do good and not evil/);
  assert.match(named.get('Node.js')?.text ?? '', /OpenSSL[\s\S]*ICU/);
  assert.match(named.get('polka')?.text ?? '', /Copyright \(c\) Luke Edwards[\s\S]*WITHOUT WARRANTY/);
  const shown = wirewatch('licenses');
  for (const { name, version, text } of inside) {
    assert.ok(shown.includes(`${name} ${version}\n\n`), name);
    assert.ok(shown.includes(text.slice(-80)), name);
  }
});

interface Bom {
  bomFormat: string;
  specVersion: string;
  serialNumber: string;
  version: number;
  metadata: { timestamp?: string; component: Component };
  components: Component[];
  dependencies: { ref: string; dependsOn: string[] }[];
}

interface Component {
  type: string;
  'bom-ref': string;
  name: string;
  version: string;
  purl?: string;
  licenses?: { license?: { id: string }; expression?: string }[];
  hashes?: { alg: string; content: string }[];
  components?: Component[];
}

const readBom = (): Bom => JSON.parse(readFileSync(`${program}.cdx.json`, 'utf8'));

test('the list of what is inside has what CycloneDX 1.6 requires', () => {
  const bom = readBom();
  assert.equal(bom.bomFormat, 'CycloneDX');
  assert.equal(bom.specVersion, '1.6');
  assert.equal(bom.version, 1);
  assert.match(
    bom.serialNumber,
    /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  );
  if (bom.metadata.timestamp !== undefined)
    assert.match(bom.metadata.timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)$/);
  const all = [bom.metadata.component, ...bom.components].flatMap((one) => [one, ...(one.components ?? [])]);
  for (const { type, name, version, licenses, hashes } of all) {
    assert.match(type, /^(application|library|platform)$/, name);
    assert.ok(name.length > 0 && version.length > 0, name);
    for (const { license, expression } of licenses ?? []) assert.ok(license?.id || expression, name);
    for (const { alg, content } of hashes ?? []) {
      assert.match(content, alg === 'SHA-512' ? /^[0-9a-f]{128}$/ : /^[0-9a-f]{64}$/, name);
    }
  }
  const refs = new Set(all.map((one) => one['bom-ref']));
  assert.equal(refs.size, all.length, 'each reference is given once');
  for (const { ref, dependsOn } of bom.dependencies) {
    for (const one of [ref, ...dependsOn]) assert.ok(refs.has(one), one);
  }
});

test('the list names what licenses names: packages as the lockfile has them, SQLite, Node with its libraries', () => {
  const { metadata, components } = readBom();
  const [sha256 = ''] = readFileSync(`${program}.sha256`, 'utf8').split(' ');
  assert.deepEqual(metadata.component.hashes, [{ alg: 'SHA-256', content: sha256 }]);
  const inside: Inside[] = JSON.parse(wirewatch('licenses', '--json'));
  const renamed: Readonly<Record<string, string>> = { SQLite: 'sqlite', 'Node.js': 'node' };
  const expected = inside.slice(1).map(({ name, version }) => `${renamed[name] ?? name} ${version}`);
  assert.deepEqual(components.map(({ name, version }) => `${name} ${version}`).sort(), expected.sort());
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages;
  const sqlite3 = components.find(({ name }) => name === 'better-sqlite3');
  const { version, integrity, license } = lock['node_modules/better-sqlite3'];
  assert.equal(sqlite3?.purl, `pkg:npm/better-sqlite3@${version}`);
  assert.deepEqual(sqlite3.licenses, [{ license: { id: license } }]);
  const content = Buffer.from(integrity.slice('sha512-'.length), 'base64').toString('hex');
  assert.deepEqual(sqlite3.hashes, [{ alg: 'SHA-512', content }]);
  const libraries = components.find(({ name }) => name === 'node')?.components?.map(({ name }) => name);
  for (const name of ['openssl', 'v8', 'uv', 'zlib']) assert.ok(libraries?.includes(name), name);
});

test('what cannot be built is said, with what can be', () => {
  const cases: [target: string, reason: RegExp][] = [
    ['win-x64', /no executable for Windows/],
    [
      'plan9-x64',
      /unknown target plan9-x64: expected one of linux-x64, linux-arm64, darwin-x64, darwin-arm64/,
    ],
    ['darwin-arm64', /newest Node for darwin-arm64 is 24\.0\.0.*NODE_OPTIONS/],
    [process.platform === 'darwin' ? 'toString' : 'darwin-x64', /on such a Mac|unknown target/],
  ];
  for (const [target, reason] of cases) {
    const script = join(root, 'build', 'executable.mjs');
    const { status, stderr } = spawnSync(process.execPath, [script, '--target', target], {
      encoding: 'utf8',
    });
    assert.equal(status, 1, target);
    assert.match(stderr, reason);
    assert.doesNotMatch(stderr, / at /, 'no stack');
  }
});

test("another platform's Node is taken only as the lockfile names it", () => {
  const other = process.arch === 'x64' ? 'linux-arm64' : 'linux-x64';
  // npm's place is taken by one that gives other bytes.
  const npm = join(home, 'npm.js');
  const writes =
    "require('node:fs').writeFileSync(folder + '/' + name.replace('@', '-') + '.tgz', 'other bytes')";
  writeFileSync(npm, `const [, , , name, , folder] = process.argv; ${writes};`);
  const targets = JSON.stringify(join(root, 'build', 'targets.mjs'));
  const [downloads, staging] = [JSON.stringify(join(home, 'downloads')), JSON.stringify(temporary)];
  const script = `const { nodeOf } = await import(${targets}); nodeOf('${other}', ${staging}, ${downloads});`;
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    env: { npm_execpath: npm },
    encoding: 'utf8',
  });
  assert.equal(status, 1);
  assert.match(stderr, /is not what package-lock\.json names: the registry gave other bytes/);
  assert.deepEqual(readdirSync(join(home, 'downloads')), []);
});

test('databases open on the main thread and in a worker, from a private copy of the addon', () => {
  const { mainSqlite, worker } = look();
  assert.equal(
    JSON.parse(wirewatch('version', '--json')).sqlite,
    mainSqlite,
    'what version says is what is there',
  );
  const file = addonIn(cache());
  assert.equal(statSync(cache()).mode & 0o777, 0o700);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.match(worker.stack, /at worker\.cjs:\d+/, 'a stack names the script');

  const before = statSync(file).mtimeMs;
  look();
  assert.equal(statSync(file).mtimeMs, before, 'a good copy is used again');
});

test('the environment cannot load code, nor a signal open a debugger', () => {
  const { execArgv } = look({ NODE_OPTIONS: `--require ${join(home, 'absent.js')}` });
  assert.deepEqual(execArgv, ['--disable-sigusr1']);
});

test('a signal opens no debugger, and Node does not write what passes through it when told to debug', async () => {
  const debugging = { NODE_DEBUG: '*', NODE_OPTIONS: '--inspect=0', NODE_INSPECT_RESUME_ON_START: '1' };
  const data = join(home, 'data');
  const child = spawn(program, ['serve', '--data', data, '--port', '0'], {
    cwd: home,
    env: environment(debugging),
  });
  let told = '';
  child.stdout.on('data', (text) => {
    told += String(text);
  });
  child.stderr.on('data', (text) => {
    told += String(text);
  });
  const ended = new Promise((resolve) => child.once('close', resolve));
  const until = async (what: RegExp): Promise<string> => {
    for (;;) {
      const [, found] = what.exec(told) ?? [];
      if (found !== undefined) return found;
      assert.equal(child.exitCode, null, told.slice(-2000));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  try {
    const url = await until(/"url":"(http:[^"]*)"[^\n]*"msg":"listening"/);
    child.kill('SIGUSR1');
    const headers = { authorization: 'Bearer a-secret-key' };
    assert.equal((await fetch(`${url}/v1/me`, { headers })).status, 401);
    const body = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: 'x',
      client_secret: 'a-secret-key',
    });
    assert.equal((await fetch(`${url}/oauth/token`, { method: 'POST', body })).status, 401);
  } finally {
    child.kill('SIGTERM');
    await ended;
  }
  assert.doesNotMatch(told, /^(HTTP|NET|STREAM) \d+: /m, 'Node was not told to debug');
  assert.ok(!told.includes('a-secret-key'));
  assert.ok(!told.includes(Buffer.from('secret').toString('hex')));
  assert.doesNotMatch(told, /^Debugger listening/m);
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

/** Runs the probe as root (in a namespace of its own) where a shell command with mounts has changed the home. */
function lookWhere(change: string): Seen {
  const command = `${change} && exec "$PROBE"`;
  const options = {
    cwd: temporary,
    env: environment({ PROBE: probe, PATH: '/usr/bin:/bin:/usr/sbin:/sbin' }),
  };
  const result = spawnSync('unshare', [UNSHARE, 'sh', '-c', command], { ...options, encoding: 'utf8' });
  return checked(result.status, result.stdout, result.stderr);
}

const UNSHARE = process.getuid?.() === 0 ? '-m' : '-rm';
const mounts = `mount -t tmpfs none "${scratch}"`;
const needsMounts = {
  skip: spawnSync('unshare', [UNSHARE, 'sh', '-c', mounts]).status !== 0 && 'no mounts can be made here',
};

test('a home that is mounted noexec is passed over', needsMounts, () => {
  lookWhere('mount -t tmpfs -o noexec none "$HOME"');
  addonIn(join(temporary, 'wirewatch-0'));
});

test('a read-only home is passed over', needsMounts, () => {
  lookWhere('mount -t tmpfs -o ro none "$HOME"');
  addonIn(join(temporary, 'wirewatch-0'));
});

test('a read-only home that holds a good copy from before is used', needsMounts, () => {
  look();
  const { mtimeMs } = statSync(addonIn(cache()));
  lookWhere('mount --bind "$HOME" "$HOME" && mount -o remount,ro,bind "$HOME"');
  assert.equal(statSync(addonIn(cache())).mtimeMs, mtimeMs);
  assert.deepEqual(readdirSync(temporary), []);
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

test("a folder that lies in somebody else's is passed over, and nothing is made there", {
  skip: process.getuid?.() !== 0 && 'only root can give a folder away',
}, () => {
  chownSync(home, 12345, 12345);
  look();
  assert.deepEqual(readdirSync(home), []);
  addonIn(join(temporary, `wirewatch-${process.getuid?.()}`));
});

test('a folder that lies in one to which others can write is passed over, unless each keeps their own there', () => {
  for (const mode of [0o777, 0o770, 0o2775]) {
    chmodSync(home, mode);
    look();
    assert.deepEqual(readdirSync(home), []);
    addonIn(join(temporary, `wirewatch-${process.getuid?.()}`));
  }
  chmodSync(home, 0o1777);
  look();
  addonIn(cache());
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

test('a copy that the system will not load is followed by the next folder', () => {
  const folders = [join(home, 'a'), join(home, 'b')];
  assert.throws(
    () => loadAddon(Buffer.from('not an addon'), folders),
    (error) => error instanceof Refused && folders.every((folder) => error.message.includes(`  ${folder}: `)),
  );
  const { addon, file } = loadAddon(addonBytes(), [join(home, 'c')]);
  assert.ok('Database' in addon);
  assert.equal(dirname(file), join(home, 'c'));
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
