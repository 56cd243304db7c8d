/**
 * Hands SQLite's native addon to better-sqlite3.
 *
 * With node_modules there is nothing to do: better-sqlite3 finds its own. In the executable the addon is packed
 * inside, and the system loads code only from a file: its bytes are written into a folder that nobody else can
 * write to, checked on every start, and loaded from there. Homes may be read-only, mounted noexec, absent or
 * prepared by somebody else, so several folders are tried.
 */
import { createHash, randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, isAbsolute, join, resolve } from 'node:path';
import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads';
import type { Options } from 'better-sqlite3';
import { isPacked, packedAddon } from '../packed.ts';
import { Refused, reasonOf } from '../refused.ts';

let loaded: object | undefined;

/** Under which the main thread tells its workers the file that it has checked and loaded. */
const LOADED_FILE = 'wirewatch addon';

/**
 * The addon as `new Database(file, { nativeBinding })` takes it, or undefined where better-sqlite3 finds it by
 * itself. Call it on the main thread before any worker is started: an addon first loaded by a worker is torn down
 * with that worker, and one that the main thread has loaded needs no second check.
 *
 * @throws Refused 'configuration' when the executable can load it from none of the folders
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

/**
 * The options for `new Database(file, options)`, with the addon among them where it is needed. better-sqlite3 takes
 * the addon as an object, which its published types do not know yet.
 */
export function withNativeBinding(options: Options = {}): Options {
  const binding = nativeBinding();
  return binding === undefined ? options : Object.assign({}, options, { nativeBinding: binding });
}

/** Loads the addon by way of the first folder that works. Exported for its tests. */
export function loadAddon(bytes: Uint8Array, folders: readonly string[]): { addon: object; file: string } {
  const hash = sha256(bytes);
  const failures: string[] = [];
  for (const folder of folders) {
    try {
      const file = join(prepareFolder(folder), `better_sqlite3-${hash}.node`);
      placeFile(file, bytes, hash);
      return { addon: load(file), file };
    } catch (error) {
      failures.push(`${folder}: ${reasonOf(error)}`);
    }
  }
  throw new Refused(
    'configuration',
    'cannot load SQLite: none of these folders can hold its library:\n' +
      `${failures.map((failure) => `  ${failure}\n`).join('')}` +
      'Set WIREWATCH_ADDON_DIR to a folder that only this user can access (mode 0700), on a file system that is ' +
      'writable and not mounted noexec.',
  );
}

/**
 * Where the addon may be kept, in the order of trying.
 *
 * @param environment variables that are unset or empty are passed over, and so are relative paths (XDG Base
 *   Directory Specification), but for the one that names the folder outright
 */
export function addonFolders(environment: NodeJS.ProcessEnv): string[] {
  const owner = process.getuid?.() ?? 'user';
  const below = (parent: string | undefined, ...names: string[]): string[] =>
    parent !== undefined && isAbsolute(parent) ? [join(parent, ...names)] : [];
  const override = environment.WIREWATCH_ADDON_DIR;
  const folders = [
    ...(override ? [resolve(override)] : []),
    ...below(environment.XDG_CACHE_HOME, 'wirewatch'),
    ...below(home(), '.cache', 'wirewatch'),
    ...below(environment.XDG_RUNTIME_DIR, 'wirewatch'),
    ...below(environment.TMPDIR || environment.TEMP || '/tmp', `wirewatch-${owner}`),
    ...(process.platform === 'linux' ? [`/dev/shm/wirewatch-${owner}`] : []),
  ];
  return [...new Set(folders)];
}

/** A user without an entry in the password file, as containers have them, has no home. */
function home(): string | undefined {
  try {
    return homedir();
  } catch {
    return undefined;
  }
}

/**
 * Makes the folder if it is missing; one that someone else could write to, or exchange, is not used, nor changed.
 *
 * @returns the folder's path, without links
 */
function prepareFolder(folder: string): string {
  const uid = process.getuid?.();
  if (uid !== undefined) requireGuarded(nearestExisting(dirname(folder)), uid);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = join(realpathSync(dirname(folder)), basename(folder));
  const found = lstatSync(path);
  if (!found.isDirectory()) throw new Error('not a folder, or a link to a folder');
  if (uid === undefined) return path; // Windows: the user's own folders are guarded by access lists instead
  if (found.uid !== uid) throw new Error(`belongs to user id ${found.uid}, not to ${uid}`);
  const mode = found.mode & 0o777;
  if (mode !== 0o700) throw new Error(`has mode ${mode.toString(8).padStart(4, '0')}, not 0700`);
  return path;
}

/** Within a user namespace, whoever has no number there: the owner of the root folder, often. */
const OVERFLOW_UID = 65534;
/** Of a group, too: who else is in it is not known here. */
const OTHERS_WRITE = 0o022;
const STICKY = 0o1000;

/**
 * Whoever can rename a folder on the way puts another in its place between our look and the loading: so none may
 * belong to another user (as the home does that sudo keeps), nor be open to others, but for those, like /tmp, where
 * everyone renames only their own.
 */
function requireGuarded(folder: string, uid: number): void {
  for (let at = folder; ; at = dirname(at)) {
    const found = lstatSync(at);
    if (![0, uid, OVERFLOW_UID].includes(found.uid))
      throw new Error(`is in ${at}, which belongs to user id ${found.uid}`);
    if ((found.mode & OTHERS_WRITE) !== 0 && (found.mode & STICKY) === 0)
      throw new Error(`is in ${at}, which other users can write to`);
    if (at === dirname(at)) return;
  }
}

/** Of the folder and those that it lies in, the first that is there, without links. */
function nearestExisting(folder: string): string {
  for (let at = folder; ; at = dirname(at)) {
    if (existsSync(at) || at === dirname(at)) return realpathSync(at);
  }
}

/** Leaves `file` with exactly `bytes`, whatever stood there. Several starts at once do not disturb each other. */
function placeFile(file: string, bytes: Uint8Array, hash: string): void {
  if (isGenuine(file, bytes.length, hash)) return;
  const temporary = `${file}.${process.pid}-${randomBytes(6).toString('hex')}`;
  try {
    writeFileSync(temporary, bytes, { flag: 'wx', mode: 0o600 });
    renameSync(temporary, file);
  } finally {
    rmSync(temporary, { force: true });
  }
  if (!isGenuine(file, bytes.length, hash))
    throw new Error('the library reads back differently from what was written');
}

/** Is it a plain file of ours with the right content? Never follows a link and never waits on a pipe. */
function isGenuine(file: string, length: number, hash: string): boolean {
  let descriptor: number;
  try {
    const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
    // Windows knows neither of the two flags.
    descriptor = openSync(file, O_RDONLY | (O_NOFOLLOW ?? 0) | (O_NONBLOCK ?? 0));
  } catch {
    return false; // missing, a link, or unreadable: writing it anew shows which
  }
  try {
    const found = fstatSync(descriptor);
    if (!found.isFile() || found.size !== length) return false;
    if (process.getuid !== undefined && (found.uid !== process.getuid() || (found.mode & 0o022) !== 0))
      return false;
    return sha256(readFileSync(descriptor)) === hash;
  } finally {
    closeSync(descriptor);
  }
}

function load(file: string): object {
  const target: { exports: unknown } = { exports: {} };
  process.dlopen(target, file);
  const { exports } = target;
  if (typeof exports !== 'object' || exports === null) throw new Error(`${file} is not an addon`);
  return exports;
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
