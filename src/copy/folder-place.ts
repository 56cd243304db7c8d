/**
 * A place that is a folder: on another disk, a stick, a network share.
 *
 * An object is written under a temporary name and linked to its own, which only one of several machines can do, also on a
 * share. Every call is asynchronous and limited in time: a share may hang, and the program must not hang with it.
 */
import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import * as files from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { HangingCalls } from '../hanging-calls.ts';
import { errorCode, failed, isErrorCode, reasonOf } from '../refused.ts';
import { isName, type Place, Unreachable } from './place.ts';

const TEMPORARY = /^\.tmp-[0-9a-f]{16}$/;
/** A temporary file is this old only if the program ended before it could delete it. */
const LEFT_OVER_MS = 24 * 60 * 60 * 1000;

/** For each operation, besides a second for each MiB that it moves. */
const LIMIT_MS = 30_000;
const READ = { flag: constants.O_RDONLY | constants.O_NOFOLLOW };
/** No object that is read should be larger. */
const READ_BYTES_MAX = 64 * 1024 * 1024;

/** What link() says on a file system without hard links, such as FAT. */
const NO_LINKS = ['EPERM', 'ENOTSUP', 'ENOSYS'];

const RIGHTS = 'Give the user that Wirewatch runs as the right to read and write there';
const ADVICE: ReadonlyMap<string, string> = new Map([
  ['ENOSPC', 'Free space there'],
  ['EDQUOT', 'Free space there, or raise the quota'],
  ['EACCES', RIGHTS],
  ['EPERM', RIGHTS],
  ['EROFS', 'Mount it so that it can be written to'],
  ['ENOTDIR', 'Use another folder, or remove the file that is in the way'],
]);

/** Whoever tries again opens a place anew. */
const overdue = new HangingCalls<unknown>();

/**
 * The folder is made by the first create, if the one that it is in exists: where a disk is not mounted, making more would
 * fill another disk. One that was there and has gone is not made again.
 * @param link of node:fs/promises, and the times: tests change them
 */
export function openFolderPlace(path: string, link = files.link, limitMs = LIMIT_MS, againMs?: number) {
  const root = resolve(path);
  /** Whether the folder was there, and outlasts a power failure. */
  let wasThere = false;

  async function make(folder: string): Promise<void> {
    if (folder === root && wasThere) return;
    if (folder !== root) await make(dirname(folder));
    const made = files.mkdir(folder, { mode: 0o700 }).then(() => true);
    const isMade = await unlessCode(made, 'EEXIST', false);
    // Another program may have made a folder within, and not synced it yet.
    if (isMade || folder !== root) await syncFolder(dirname(folder));
  }

  async function create(name: string, content: Uint8Array): Promise<boolean> {
    const target = join(root, name);
    const folder = dirname(target);
    await make(folder);
    const temporary = join(folder, `.tmp-${randomBytes(8).toString('hex')}`);
    const created = await files
      .writeFile(temporary, content, { flag: 'wx', mode: 0o600, flush: true })
      .then(() => linkOnce(temporary, target))
      .finally(() => files.unlink(temporary).catch(() => {}));
    // Also if it exists: that it does must not change any more, whoever made it.
    await syncFolder(folder);
    return created;
  }

  async function linkOnce(temporary: string, target: string): Promise<boolean> {
    try {
      await link(temporary, target);
      return true;
    } catch (error) {
      // NFS repeats a call whose answer was lost, and then finds its own link (open(2), O_EXCL).
      if (isErrorCode(error, 'EEXIST')) return (await files.stat(temporary)).nlink === 2;
      if (!isErrorCode(error, ...NO_LINKS)) throw error;
      const why = `cannot keep a copy in ${root}: its file system has no hard links (${errorCode(error)})`;
      const then = 'Use a folder on ext4, XFS, NFS or CephFS, or an S3 store';
      throw failed(`${why}, so two machines could create the same object. ${then}.`, { cause: error });
    }
  }

  async function find(prefix: string, after: string): Promise<string[]> {
    const folder = join(root, prefix.slice(0, prefix.lastIndexOf('/') + 1));
    const listed = files.readdir(folder, { recursive: true, withFileTypes: true });
    const names: string[] = [];
    for (const entry of await unlessAbsent(listed, [])) {
      const path = join(entry.parentPath, entry.name);
      const name = relative(root, path);
      if (TEMPORARY.test(entry.name)) await deleteLeftOver(path);
      else if (entry.isFile() && isName(name) && name.startsWith(prefix) && name > after) names.push(name);
    }
    return names.sort();
  }

  const read = (name: string) => unlessAbsent<Buffer | null>(files.readFile(join(root, name), READ), null);

  /** Only an absent object or folder is `absent`: without the root, nothing is known. */
  async function unlessAbsent<T>(work: Promise<T>, absent: T): Promise<T> {
    const found = await unlessCode(work, 'ENOENT', absent);
    if (found === absent) await files.stat(root);
    return found;
  }

  async function guarded<T>(work: () => Promise<T>, bytes = 0): Promise<T> {
    if (!overdue.mayTryAgain(root, againMs)) throw silent();
    const working = work();
    const timeUp = Promise.withResolvers<never>();
    const late = () => {
      overdue.add(root, working);
      timeUp.reject(silent());
    };
    const timer = setTimeout(late, limitMs + bytes / 1024);
    try {
      const result = await Promise.race([working, timeUp.promise]);
      wasThere = true;
      return result;
    } catch (error) {
      if (!(error instanceof Error && 'syscall' in error)) throw error;
      const advice = ADVICE.get(errorCode(error)) ?? 'Check that the disk or share is mounted and answers';
      throw new Unreachable(`cannot use ${root}: ${reasonOf(error, root)}. ${advice}.`, { cause: error });
    } finally {
      clearTimeout(timer);
    }
  }

  const silent = () =>
    new Unreachable(
      `${root} does not answer. Check that the share is mounted and its server runs. If it was mounted anew, restart Wirewatch.`,
    );

  return {
    text: root,
    create: (name, content) => guarded(() => create(name, content), content.length),
    list: (prefix, after) => guarded(() => find(prefix, after)),
    read: (name) => guarded(() => read(name), READ_BYTES_MAX),
    delete: (name) =>
      guarded(async () => {
        const target = join(root, name);
        const remove = files.unlink(target).then(() => true);
        if (await unlessAbsent(remove, false)) await syncFolder(dirname(target));
      }),
  } satisfies Place;
}

async function syncFolder(path: string): Promise<void> {
  await using folder = await files.open(path, 'r');
  // SMB shares have no such call.
  await unlessCode(folder.sync(), 'EINVAL', undefined);
}

/** One that cannot be deleted is left: it stands in nobody's way. */
async function deleteLeftOver(path: string): Promise<void> {
  try {
    if ((await files.lstat(path)).mtimeMs < Date.now() - LEFT_OVER_MS) await files.unlink(path);
  } catch {}
}

async function unlessCode<T>(work: Promise<T>, code: string, otherwise: T): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!isErrorCode(error, code)) throw error;
    return otherwise;
  }
}
