/**
 * Hands SQLite's native addon to better-sqlite3.
 *
 * With node_modules, better-sqlite3 finds its own. In the executable the addon is packed inside, but the system loads
 * code only from a file. So its bytes are written into a folder that nobody else can write to, checked on every start,
 * and loaded from there. A home may be read-only, mounted noexec, missing or prepared by an attacker, so several
 * folders are tried.
 */
import { hash, randomUUID } from 'node:crypto';
import { constants, existsSync, fstatSync, lstatSync, mkdirSync, readFileSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, isAbsolute, join, resolve } from 'node:path';
import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads';
import { isPacked, packedAddon } from '../packed.ts';
import { misconfigured, reasonOf, unlessError } from '../refused.ts';
import { openFile, writeWhole } from './folder.ts';

/** On Windows, where there is none, Wirewatch does not run (build/targets.mjs). */
const UID = process.getuid?.();

let loaded: object | undefined;

/** The name under which the main thread passes its workers the file that it has checked and loaded. */
const LOADED_FILE = 'wirewatch addon';

/**
 * The addon for `new Database(file, { nativeBinding })`, or undefined if better-sqlite3 finds it by itself. Call this on
 * the main thread before any worker starts: an addon first loaded by a worker is unloaded with that worker.
 * @throws Refused 'configuration' if the executable can load it from none of the folders
 */
export function nativeBinding(): object | undefined {
  if (!isPacked) return undefined;
  const checked = getEnvironmentData(LOADED_FILE);
  if (loaded === undefined && typeof checked === 'string') loaded = load(checked);
  if (loaded === undefined) {
    const { addon, file } = loadAddon(packedAddon(), addonFolders(process.env));
    loaded = addon;
    setEnvironmentData(LOADED_FILE, file);
  }
  return loaded;
}

/** Loads the addon from the first folder that works. */
export function loadAddon(bytes: Uint8Array, folders: readonly string[]): { addon: object; file: string } {
  const digest = hash('sha256', bytes);
  const failures: string[] = [];
  for (const folder of folders) {
    try {
      const file = join(prepareFolder(folder), `better_sqlite3-${digest}.node`);
      placeFile(file, bytes, digest);
      return { addon: load(file), file };
    } catch (error) {
      failures.push(`  ${folder}: ${reasonOf(error)}\n`);
    }
  }
  throw misconfigured(
    `cannot load SQLite: none of these folders can hold its library:\n${failures.join('')}Set WIREWATCH_ADDON_DIR to a folder that only this user can access (mode 0700), on a file system that is writable and not mounted noexec.`,
  );
}

/**
 * The folders for the addon, in the order of trying.
 * @param environment empty variables and relative paths are ignored (XDG Base Directory Specification), except that
 *   WIREWATCH_ADDON_DIR may be relative
 */
export function addonFolders(environment: NodeJS.ProcessEnv): string[] {
  const below = (parent: string | undefined, ...names: string[]): string[] =>
    parent !== undefined && isAbsolute(parent) ? [join(parent, ...names)] : [];
  const override = environment.WIREWATCH_ADDON_DIR;
  const folders = [
    ...(override ? [resolve(override)] : []),
    ...below(environment.XDG_CACHE_HOME, 'wirewatch'),
    // A user without an entry in the password file has no home.
    ...below(unlessError(undefined, homedir), '.cache', 'wirewatch'),
    ...below(environment.XDG_RUNTIME_DIR, 'wirewatch'),
    ...below(environment.TMPDIR || environment.TEMP || '/tmp', `wirewatch-${UID}`),
    ...(process.platform === 'linux' ? [`/dev/shm/wirewatch-${UID}`] : []),
  ];
  return [...new Set(folders)];
}

/** Makes a missing folder. One that another user could change or replace is refused as it is. @returns it, without links */
function prepareFolder(folder: string): string {
  requireGuarded(nearestExisting(dirname(folder)));
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = join(realpathSync(dirname(folder)), basename(folder));
  const found = lstatSync(path);
  if (!found.isDirectory()) throw new Error('not a folder, or a link to a folder');
  if (found.uid !== UID) throw new Error(`belongs to user id ${found.uid}, not to ${UID}`);
  const mode = found.mode & 0o777;
  if (mode !== 0o700) throw new Error(`has mode ${mode.toString(8).padStart(4, '0')}, not 0700`);
  return path;
}

/** In a user namespace, every user without a number there; often the owner of the root folder. */
const OVERFLOW_UID = 65534;
/** By the group, too. */
const OTHERS_WRITE = 0o022;
const STICKY = 0o1000;

/**
 * Who can rename a parent folder could replace the file between the check and the loading. So no parent may belong to
 * another user (such as the home that sudo keeps) or be writable by others, except if it is sticky like /tmp.
 */
function requireGuarded(folder: string): void {
  for (let at = folder; ; at = dirname(at)) {
    const found = lstatSync(at);
    if (![0, UID, OVERFLOW_UID].includes(found.uid))
      throw new Error(`is in ${at}, which belongs to user id ${found.uid}`);
    if ((found.mode & OTHERS_WRITE) !== 0 && (found.mode & STICKY) === 0)
      throw new Error(`is in ${at}, which other users can write to`);
    if (at === dirname(at)) return;
  }
}

/** The folder or its nearest parent that exists, without links. */
function nearestExisting(folder: string): string {
  for (let at = folder; ; at = dirname(at)) if (existsSync(at) || at === dirname(at)) return realpathSync(at);
}

/** Writes `bytes` to `file`, unless it has them. Several processes may do so at once. */
function placeFile(file: string, bytes: Uint8Array, digest: string): void {
  if (isGenuine(file, bytes.length, digest)) return;
  writeWhole(file, bytes, `${file}.${randomUUID()}`);
  if (!isGenuine(file, bytes.length, digest))
    throw new Error('the library reads back differently from what was written');
}

/** Whether it is a file of this user with the right content. Never follows a link, never waits for a pipe. */
function isGenuine(file: string, length: number, digest: string): boolean {
  // Missing, a link, or unreadable: writing it again shows which.
  return unlessError(false, () => {
    using opened = openFile(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const found = fstatSync(opened.fd);
    if (!found.isFile() || found.uid !== UID || (found.mode & OTHERS_WRITE) !== 0) return false;
    return found.size === length && hash('sha256', readFileSync(opened.fd)) === digest;
  });
}

function load(file: string): object {
  const target: { exports: unknown } = { exports: {} };
  process.dlopen(target, file);
  if (typeof target.exports === 'object' && target.exports !== null) return target.exports;
  throw new Error(`${file} is not an addon`);
}
