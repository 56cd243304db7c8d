/**
 * Makes dist/wirewatch: the program, its worker, SQLite's addon and the pinned Node in one file that runs with
 * nothing installed.
 *
 * @yao-pkg/pkg injects the bundle into the Node that came with `npm ci`, as a single executable application; the
 * program reads its packed files through src/packed.ts. Nothing is downloaded, and nothing is written outside
 * dist/. Runs on the pinned Node: the blob's layout belongs to one exact version, so the Node that makes it must
 * be the one that reads it.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundle, root } from './bundle.mjs';

const require = createRequire(import.meta.url);
const suffix = process.platform === 'win32' ? '.exe' : '';

/**
 * @param {object} options
 * @param {string} options.output the executable to write; an older one is replaced, even while it runs
 * @param {Record<string, string>} [options.entries] other sources than the program's own, for tests
 */
export async function makeExecutable({ output, entries }) {
  mkdirSync(join(root, 'dist'), { recursive: true });
  const staging = mkdtempSync(join(root, 'dist', 'staging-'));
  try {
    await bundle({ folder: staging, packed: true, ...(entries === undefined ? {} : { entries }) });
    copyFileSync(addonPath(), join(staging, 'better_sqlite3.node'));
    const node = strippedNode(staging);
    const made = join(staging, `wirewatch${suffix}`);
    await pack({ staging, node, made });
    mkdirSync(dirname(output), { recursive: true });
    renameSync(made, output);
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

async function pack({ staging, node, made }) {
  // The packager puts its scratch files where the system says temporary files go: keep them in our own folder.
  const temporaryBefore = process.env.TMPDIR;
  process.env.TMPDIR = staging;
  const { log } = require('@yao-pkg/pkg/lib-es5/log.js');
  log.info = () => {};
  const sea = require('@yao-pkg/pkg/lib-es5/sea.js').default;
  try {
    await sea(join(staging, 'main.cjs'), {
      nodePath: node,
      signature: process.platform === 'darwin', // macOS runs nothing on ARM that is not signed, if only by itself
      targets: [
        {
          platform: pkgPlatform(),
          arch: process.arch,
          nodeRange: `node${process.versions.node}`,
          output: made,
        },
      ],
      seaConfig: {
        useCodeCache: true, // a quarter less time to start
        // Without these, `kill -USR1` opens a debugger port, and NODE_OPTIONS can load foreign code.
        execArgv: ['--disable-sigusr1'],
        execArgvExtension: 'none',
        assets: Object.fromEntries(
          ['worker.cjs', 'better_sqlite3.node', 'licenses.txt'].map((name) => [name, join(staging, name)]),
        ),
      },
    });
  } finally {
    if (temporaryBefore === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = temporaryBefore;
  }
}

function pkgPlatform() {
  return { darwin: 'macos', win32: 'win' }[process.platform] ?? process.platform;
}

/** The addon for this platform that is inside better-sqlite3's package. */
function addonPath() {
  const path = require(join(root, 'node_modules/better-sqlite3/lib/binding.js')).getPrebuildPath();
  if (path === null)
    throw new Error(`better-sqlite3 brings no addon for ${process.platform} ${process.arch}.`);
  return path;
}

/**
 * A copy of this very Node without its symbol table, a sixth smaller. It has to happen before the injection:
 * stripping afterwards breaks the executable.
 */
function strippedNode(staging) {
  const copy = join(staging, `node${suffix}`);
  copyFileSync(process.execPath, copy);
  if (process.platform !== 'linux') return copy;
  const { error, status, stderr } = spawnSync('strip', ['--strip-unneeded', copy], { encoding: 'utf8' });
  if (error === undefined && status === 0) return copy;
  const reason =
    error?.code === 'ENOENT' ? '`strip` (binutils) is not installed' : (error?.message ?? stderr.trim());
  console.error(`wirewatch build: ${reason}; the executable will be about 20 MB larger.`);
  copyFileSync(process.execPath, copy);
  return copy;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const output = join(root, 'dist', `wirewatch${suffix}`);
  await makeExecutable({ output });
  const megabytes = Math.round(statSync(output).size / 1e6);
  console.error(`wirewatch build: ${output}, ${megabytes} MB, Node ${process.versions.node}`);
}
