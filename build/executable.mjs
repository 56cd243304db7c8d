/**
 * Makes dist/wirewatch: the program, its worker, SQLite's addon and the pinned Node in one file that runs with
 * nothing installed; beside it its checksum and the list of what is inside.
 *
 * @yao-pkg/pkg injects the bundle into Node as a single executable application; the program reads its packed files
 * through src/packed.ts. Nothing is written outside dist/, and nothing is downloaded but the Node of another platform
 * (`--target`). Runs on the pinned Node: the blob's layout belongs to one exact version, so the Node that makes it
 * must be of the version that reads it.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { NODE_FLAGS } from '../src/packed.ts';
import { bundle, commit, root, sqliteVersion, version } from './bundle.mjs';
import { bomOf } from './sbom.mjs';
import { elfMachine, stripped } from './strip.mjs';
import { BuildRefused, hostTarget, nodeOf, requireTarget, TARGETS } from './targets.mjs';

const require = createRequire(import.meta.url);

const BYTES_MAX = 125_000_000;
/** In Node's binary this ends in 0, and in 1 once something was injected. In two parts, so that it is not in here. */
const FUSE_SET = ['NODE_SEA_FUSE', 'fce680ab2cc467b6e072b8b5df1996b2:1'].join('_');

/**
 * @param {object} options
 * @param {string} options.output the executable to write; an older one is replaced, even while it runs
 * @param {string} [options.target] the platform it is for
 * @throws {BuildRefused}
 */
export async function makeExecutable({ output, target = hostTarget }) {
  requireTarget(target);
  // Its path gets into the executable: with one of the same name each time, the same sources give the same bytes.
  const staging = `${output}.staging`;
  rmSync(staging, { recursive: true, force: true });
  mkdirSync(staging, { recursive: true });
  try {
    const { binary, license } = nodeOf(target, staging);
    const packages = await bundle({ folder: staging, packed: true, nodeLicense: license });
    copyFileSync(addonPath(target), join(staging, 'better_sqlite3.node'));
    const made = join(staging, basename(output));
    await pack({ staging, binary, target, made });
    const bytes = readFileSync(made);
    requireSound(bytes, target);
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    const bom = bomOf({
      root,
      target,
      packages,
      sha256,
      version: version(),
      commit: commit(),
      sqlite: sqliteVersion(),
    });
    renameSync(made, output);
    writeFileSync(`${output}.sha256`, `${sha256}  ${basename(output)}\n`);
    writeFileSync(`${output}.cdx.json`, `${JSON.stringify(bom, null, 2)}\n`);
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

async function pack({ staging, binary, target, made }) {
  // The packager looks for Node among its downloads in the home, and puts its scratch files where the system says
  // temporary files go: give it both in our own folder.
  const before = { HOME: process.env.HOME, TMPDIR: process.env.TMPDIR };
  Object.assign(process.env, { HOME: staging, TMPDIR: staging });
  const [platform, arch] = target.split('-');
  fillCache({ staging, binary, target });
  const { log } = require('@yao-pkg/pkg/lib-es5/log.js');
  log.info = () => {};
  const sea = require('@yao-pkg/pkg/lib-es5/sea.js').default;
  try {
    await sea(join(staging, 'main.cjs'), {
      signature: platform === 'darwin', // macOS runs nothing on ARM that is not signed, if only by itself
      targets: [
        {
          platform: platform === 'darwin' ? 'macos' : platform,
          arch,
          nodeRange: `node${process.versions.node}`,
          output: made,
        },
      ],
      seaConfig: {
        // Relative to the packager's scratch folder in ours: it stands in stack traces, where our path has no place.
        main: join('..', 'main.cjs'),
        // A quarter less time to start. It belongs to the processor on which it was made.
        useCodeCache: target === hostTarget,
        execArgv: NODE_FLAGS,
        // Otherwise NODE_OPTIONS can load foreign code.
        execArgvExtension: 'none',
        assets: Object.fromEntries(
          [
            'worker.cjs',
            'better_sqlite3.node',
            'licenses.json',
            'console.json',
            'manual.json',
            'config.json',
          ].map((name) => [name, join(staging, name)]),
        ),
      },
    });
  } finally {
    for (const [name, value] of Object.entries(before)) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  }
}

/** Puts Node where the packager keeps what it has downloaded, unpacked and checked. */
function fillCache({ staging, binary, target }) {
  const cache = join(staging, '.pkg-cache', 'sea');
  const name = `node-v${process.versions.node}-${target}`;
  const folder = join(cache, name, 'bin');
  mkdirSync(folder, { recursive: true });
  const isLinux = TARGETS[target].machine !== undefined;
  if (isLinux) writeFileSync(join(folder, 'node'), stripped(readFileSync(binary)), { mode: 0o755 });
  else copyFileSync(binary, join(folder, 'node'));
  for (const file of [`${name}.tar.gz`, `${name}.tar.gz.ok`, join(name, 'bin', 'node.ok')]) {
    writeFileSync(join(cache, file), '');
  }
}

/** The addon for the target that is inside better-sqlite3's package. */
function addonPath(target) {
  const path = join(root, 'node_modules', 'better-sqlite3', 'prebuilds', `${target}.node`);
  if (!existsSync(path)) throw new BuildRefused(`better-sqlite3 has no addon for ${target}.`);
  return path;
}

/** What can be told of an executable without running it. */
function requireSound(bytes, target) {
  if (bytes.length > BYTES_MAX) {
    throw new BuildRefused(
      `the executable has ${bytes.length.toLocaleString('en-US')} bytes, more than the limit of ${BYTES_MAX.toLocaleString('en-US')}.`,
    );
  }
  const { machine } = TARGETS[target];
  if (machine !== undefined && elfMachine(bytes) !== machine) {
    throw new BuildRefused(
      `the executable is not for ${target}: the machine in its header is ${elfMachine(bytes)}.`,
    );
  }
  if (!bytes.includes(FUSE_SET)) throw new BuildRefused('the executable would start as plain Node.');
}

async function main() {
  const { values } = parseArgs({ options: { target: { type: 'string' } } });
  const target = values.target ?? hostTarget;
  const output = join(root, 'dist', values.target === undefined ? 'wirewatch' : `wirewatch-${target}`);
  await makeExecutable({ output, target });
  const megabytes = Math.round(statSync(output).size / 1e6);
  say(
    `wrote ${output} (${megabytes} MB, Node ${process.versions.node}), and beside it its .sha256 and .cdx.json`,
  );
  if (target !== hostTarget) {
    say(
      `the executable was not tested, because this machine is ${hostTarget}. Before you use it, try "wirewatch --version" and your exports on a ${target} machine.`,
    );
    return;
  }
  const { status, stdout, stderr } = spawnSync(output, ['--version'], { env: {}, encoding: 'utf8' });
  if (status !== 0) throw new BuildRefused(`the executable does not run on this machine: ${stderr}`);
  say(`the executable runs: ${stdout.trim()}`);
}

function say(text) {
  console.error(`wirewatch build: ${text}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    await main();
  } catch (error) {
    const isUsage = error instanceof Error && String(error.code).startsWith('ERR_PARSE_ARGS');
    if (!(error instanceof BuildRefused) && !isUsage) throw error;
    say(error.message);
    process.exitCode = isUsage ? 2 : 1;
  }
}
