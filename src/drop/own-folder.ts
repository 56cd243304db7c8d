/**
 * Every access of ingest to the drop folder. Others write there, so it trusts no name in it:
 *
 * - A call names a file relative to a folder that is open, so that nobody can exchange the folder below it. Node has no
 *   openat(2); Linux has `/proc/self/fd`. Elsewhere the checks are the same, and a race remains.
 * - Wirewatch's own folders must belong to its user, with nobody else writing there, each time they are opened.
 * - A new file is created exclusively under a random name in `.taken`, and gets its name when it is complete.
 *
 * Paths are relative to the drop folder, `root`. Errors name the path, and what to do.
 */
import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import { basename, dirname, join, parse, resolve, sep } from 'node:path';
import { isErrorCode, unlessCode } from '../refused.ts';
import { isThere, openFile, syncFolder } from '../store/folder.ts';

/** Wirewatch's own folders in it. `.taken` holds the file that is being processed. */
export const OWN_FOLDERS = ['archive', 'failed', 'refused', '.taken'] as const;

const OPEN_FILES = '/proc/self/fd';
const HAS_OPEN_FILES = fs.existsSync(OPEN_FILES);
const FOLDER_FLAGS = fs.constants.O_RDONLY | fs.constants.O_DIRECTORY | fs.constants.O_NOFOLLOW;
// With O_EXCL, the last name is never followed.
const NEW_FILE = 'wx';
const READ_FLAGS = fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK;
const WRITABLE_BY_OTHERS = 0o022;
const STICKY = 0o1000;
const NAME_THE_TARGET = 'Set [ingest] drop to the folder that it leads to.';
/** How the name of a draft of {@link writeIn} begins; the rest is random. */
const DRAFT = 'draft-';

/** `at`: its path for system calls. */
type OpenFolder = Readonly<{ at: string; path: string; file: number }>;

/** Others could direct what Wirewatch writes to other files. */
export class ForeignFolder extends Error {
  readonly code: 'EPERM' | 'ENOTDIR';
  readonly problem: string;
  /** What to do, with the command. */
  readonly repair: string;

  constructor(code: 'EPERM' | 'ENOTDIR', problem: string, repair: string) {
    super(`${problem}. ${repair}`);
    this.code = code;
    this.problem = problem;
    this.repair = repair;
  }
}

/** Calls back with a path for system calls. */
export const inDrop = <T>(root: string, path: string, use: (path: string) => T): T =>
  inFolder(root, folderOf(path), (at) => use(join(at, basename(path))));

/** The same for a folder: our own, one below, or '', the drop folder. @throws ForeignFolder; Error ENOENT if it is not there */
export function inFolder<T>(root: string, path: string, use: (path: string) => T): T {
  const opened: OpenFolder[] = [];
  try {
    let folder = openFolder(realPath(root), root);
    opened.push(folder);
    for (const name of path === '' ? [] : path.split(sep)) {
      folder = openFolder(join(folder.at, name), join(folder.path, name));
      opened.push(folder);
      requireOwn(folder.path, fs.fstatSync(folder.file));
    }
    return use(folder.at);
  } catch (error) {
    throw withPlainPaths(error, opened);
  } finally {
    for (const { file } of opened) fs.closeSync(file);
  }
}

const folderOf = (path: string): string => (dirname(path) === '.' ? '' : dirname(path));

function openFolder(at: string, path: string): OpenFolder {
  try {
    const file = fs.openSync(at, FOLDER_FLAGS);
    // Somebody may have exchanged a folder on the way since it was looked at.
    if (HAS_OPEN_FILES && !at.startsWith(OPEN_FILES) && fs.readlinkSync(join(OPEN_FILES, `${file}`)) !== at) {
      fs.closeSync(file);
      throw Object.assign(new Error(`${path} was moved while it was opened`), { code: 'ESTALE' });
    }
    return { at: HAS_OPEN_FILES ? join(OPEN_FILES, `${file}`) : at, path, file };
  } catch (error) {
    if (!isErrorCode(error, 'ENOTDIR', 'ELOOP')) throw error;
    const problem = `${path} is not a folder: expected a real folder, not a link`;
    throw new ForeignFolder('ENOTDIR', problem, moveAway(path));
  }
}

/** @throws ForeignFolder */
function requireOwn(path: string, { uid, mode }: fs.Stats): void {
  const user = process.geteuid?.() ?? uid;
  const danger = 'could direct what Wirewatch writes there to other files';
  const foreign = `${path} belongs to user id ${uid}, not to that of Wirewatch (${user}): its owner ${danger}`;
  if (uid !== user) throw new ForeignFolder('EPERM', foreign, moveAway(path));
  const octal = (mode & 0o7777).toString(8).padStart(4, '0');
  const open = `${path} has mode ${octal}: others ${danger}`;
  if ((mode & WRITABLE_BY_OTHERS) !== 0) throw new ForeignFolder('EPERM', open, `Run: chmod go-w ${path}`);
}

const moveAway = (path: string): string =>
  `Wirewatch makes this folder itself. Run: mv ${path} ${path}-before`;

/** The drop folder without links of its operator. @throws ForeignFolder for a link that another user made, or can replace */
function realPath(path: string): string {
  let real = parse(resolve(path)).root;
  const rest = resolve(path).split(sep).filter(Boolean);
  for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
    const next = join(real, name);
    if (!fs.lstatSync(next).isSymbolicLink()) {
      real = next;
      continue;
    }
    const { mode } = fs.lstatSync(real);
    const isOpenToOthers = (mode & WRITABLE_BY_OTHERS) !== 0 && (mode & STICKY) === 0;
    if (!isTrusted(fs.lstatSync(next)) || !isTrusted(fs.lstatSync(real)) || isOpenToOthers)
      throw new ForeignFolder('EPERM', `${next} is a link that another user can replace`, NAME_THE_TARGET);
    const target = fs.readlinkSync(next);
    rest.unshift(...target.split(sep).filter(Boolean));
    if (target.startsWith(sep)) real = parse(target).root;
  }
  return real;
}

const isTrusted = ({ uid }: fs.Stats): boolean => uid === 0 || uid === process.geteuid?.();

/** An error of a system call, with paths that its reader knows. */
function withPlainPaths(error: unknown, opened: readonly OpenFolder[]): unknown {
  if (!(error instanceof Error) || !HAS_OPEN_FILES) return error;
  const plain = (text: string) =>
    // The innermost first: `/proc/self/fd/2` is also the beginning of `/proc/self/fd/23`.
    opened.reduceRight((all, { at, path }) => all.replace(new RegExp(`${at}(?!\\d)`, 'g'), () => path), text);
  error.message = plain(error.message);
  for (const member of ['path', 'dest'])
    if (member in error) Object.assign(error, { [member]: plain(String(Reflect.get(error, member))) });
  return error;
}

/** Makes one of our own folders, or one below. */
export function makeOwnFolder(root: string, path: string): void {
  const parent = folderOf(path);
  if (parent !== '') makeOwnFolder(root, parent);
  inFolder(root, parent, (at) => {
    const own = join(at, basename(path));
    if (isThere(own)) return;
    fs.mkdirSync(own, 0o755);
    syncFolder(at);
  });
  inFolder(root, path, () => {});
}

/** @throws ForeignFolder, or the file system's error, if files cannot be moved out of the folder or into its own folders */
export function checkWritable(root: string): void {
  const needed = fs.constants.R_OK | fs.constants.W_OK | fs.constants.X_OK;
  inFolder(root, '', (path) => fs.accessSync(path, needed));
  // A missing one is made when it is needed.
  for (const name of OWN_FOLDERS)
    unlessCode(undefined, () => inFolder(root, name, (path) => fs.accessSync(path, needed)), 'ENOENT');
}

/** Whether it is a folder, link, pipe, socket or device. Some file systems do not tell. */
export function isOther(entry: fs.Dirent): boolean {
  const isDevice = entry.isBlockDevice() || entry.isCharacterDevice();
  return isDevice || entry.isDirectory() || entry.isSymbolicLink() || entry.isFIFO() || entry.isSocket();
}

/** Empty if there is no such folder. */
export function entriesIn(root: string, folder: string): fs.Dirent[] {
  const read = (at: string) => fs.readdirSync(at, { withFileTypes: true });
  return unlessCode([], () => inFolder(root, folder, read), 'ENOENT');
}

/** As long as nothing is in the archive, the disk of the drop folder may not be mounted. */
export const hasArchive = (root: string): boolean => entriesIn(root, 'archive').length > 0;

export const isThereIn = (root: string, path: string): boolean =>
  unlessCode(false, () => inDrop(root, path, isThere), 'ENOENT', 'ENOTDIR');

/** Neither name is durable before {@link syncIn} of its folder. */
export const renameIn = (root: string, from: string, to: string): void =>
  inDrop(root, from, (old) => inDrop(root, to, (fresh) => fs.renameSync(old, fresh)));

/** Unlike rmSync, it fails if a folder is in the file's place. */
export const removeIn = (root: string, path: string): void =>
  unlessCode(undefined, () => inDrop(root, path, fs.unlinkSync), 'ENOENT');

export const syncIn = (root: string, folder: string): void => inFolder(root, folder, syncFolder);

/** Opens a file that others wrote, to read it. It follows no link and waits for no pipe. A `using` declaration closes it. */
export const openIn = (root: string, path: string): { readonly fd: number } & Disposable =>
  inDrop(root, path, (at) => openFile(at, READ_FLAGS));

/** Writes a small file, readable for those who may enter its folder. It gets its name when its content is on the disk. */
export function writeIn(root: string, path: string, text: string): void {
  const draft = join('.taken', `${DRAFT}${randomBytes(16).toString('hex')}`);
  try {
    inDrop(root, draft, (at) => fs.writeFileSync(at, text, { flag: NEW_FILE, mode: 0o644, flush: true }));
    renameIn(root, draft, path);
  } catch (error) {
    removeIn(root, draft);
    throw error;
  }
  syncIn(root, dirname(path));
}

/** Whether the name in `.taken` is that of a draft. After a crash nobody completes it. */
export const isDraft = (name: string): boolean => name.startsWith(DRAFT);
