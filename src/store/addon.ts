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
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import type { Options } from 'better-sqlite3';
import { isPacked, packedAddon } from '../packed.ts';
import { Refused } from '../refused.ts';

let loaded: object | undefined;

/**
 * The addon as `new Database(file, { nativeBinding })` takes it, or undefined where better-sqlite3 finds it by
 * itself. Call it on the main thread before any worker does: an addon first loaded by a worker is torn down
 * with that worker.
 *
 * @throws Refused 'configuration' when the executable can load it from none of the folders
 */
export function nativeBinding(): object | undefined {
  if (!isPacked) return undefined;
  loaded ??= loadAddon(packedAddon(), addonFolders(process.env));
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
export function loadAddon(bytes: Uint8Array, folders: readonly string[]): object {
  const hash = sha256(bytes);
  const failures: string[] = [];
  for (const folder of folders) {
    try {
      prepareFolder(folder);
      const file = join(folder, `better_sqlite3-${hash}.node`);
      placeFile(file, bytes, hash);
      return load(file);
    } catch (error) {
      failures.push(`${folder}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  throw new Refused(
    'configuration',
    'SQLite could not be loaded: none of these folders can hold its library.\n' +
      `${failures.map((failure) => `  ${failure}\n`).join('')}` +
      'Set WIREWATCH_ADDON_DIR to a folder that belongs to this user alone (mode 0700), on a file system that is ' +
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

/** Makes the folder if it is missing; a folder that someone else could write to is not used, nor changed. */
function prepareFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const found = lstatSync(folder);
  if (!found.isDirectory()) throw new Error('not a folder, or a link to one');
  const uid = process.getuid?.();
  if (uid === undefined) return; // Windows: the user's own folders are guarded by access lists instead
  if (found.uid !== uid) throw new Error(`belongs to user id ${found.uid}, not to ${uid}`);
  const mode = found.mode & 0o777;
  if (mode !== 0o700) throw new Error(`has mode ${mode.toString(8).padStart(4, '0')}, not 0700`);
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
    throw new Error('what was written there does not read back the same');
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
  if (typeof exports !== 'object' || exports === null) throw new Error(`${file} is no addon`);
  return exports;
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
