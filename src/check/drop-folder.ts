/**
 * The drop folder: whether files can be moved in it as ingest does, and whether the file system reports new ones.
 *
 * The files for the check have names that begin with a dot, which a running appliance ignores, and are removed.
 */
import { randomBytes } from 'node:crypto';
import { renameSync, rmSync, statSync, watch, writeFileSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ForeignFolder, inFolder, OWN_FOLDERS } from '../ingest/drop/own-folder.ts';
import { paced } from '../pace.ts';
import { reasonOf } from '../refused.ts';
import { fileSystemOf } from './file-system.ts';
import { bad, type Finding, finding, type Outcome, ok, warn } from './finding.ts';
import { isUsable, statOf } from './folders.ts';

/** Events arrive within milliseconds, if at all. */
const EVENT_PATIENCE_MS = paced(2000);

const WRITABLE_BY_OTHERS = 0o022;
const STICKY = 0o1000;

export async function checkDropFolder(folder: string, rescanSeconds: number): Promise<Finding[]> {
  const problem = problemOf(folder);
  if (problem !== null) return [finding('drop folder', problem)];
  return [
    finding('drop folder', await checkUse(folder)),
    finding('drop events', await checkEvents(folder, rescanSeconds)),
  ];
}

async function checkUse(folder: string): Promise<Outcome> {
  const { mode } = statSync(folder);
  if ((mode & WRITABLE_BY_OTHERS) !== 0 && (mode & STICKY) === 0)
    return warn(
      `${folder}: anyone who can write to it can also move archive/ and the files of others`,
      `chmod +t ${folder}`,
    );
  const type = await statfs(folder).then(
    (disk) => fileSystemOf(disk.type),
    () => null,
  );
  const where = type === null ? '' : `, on ${type.name}`;
  return ok(
    `${folder}${where}: files can be created and renamed, and its subfolders are on the same file system`,
  );
}

/** What keeps ingest from moving files out of the folder; null if nothing does. */
function problemOf(folder: string): Outcome | null {
  const entry = statOf(folder);
  if (entry === null)
    return warn(
      `${folder} does not exist yet`,
      'The first start creates it and its subfolders. Check that it is the right folder, and that its disk is mounted.',
    );
  if (typeof entry === 'string' || !entry.isDirectory()) {
    const reason = typeof entry === 'string' ? entry : 'it is not a folder';
    return bad(`${folder}: ${reason}`, 'Name another folder with [ingest] drop, or give this user access.');
  }
  const rights = 'Give the user that Wirewatch runs as write access to the folder and its subfolders.';
  const draft = probeName(folder);
  try {
    writeFileSync(draft, '', { flag: 'wx', mode: 0o600 });
    renameSync(draft, `${draft}.renamed`);
  } catch (error) {
    return bad(`${folder}: cannot create and rename a file: ${reasonOf(error)}`, rights);
  } finally {
    rmSync(draft, { force: true });
    rmSync(`${draft}.renamed`, { force: true });
  }
  for (const name of OWN_FOLDERS) {
    const path = join(folder, name);
    const foreign = foreignFolder(folder, name);
    if (foreign !== null) return bad(foreign.problem, foreign.repair);
    const found = statOf(path);
    if (found === null) continue;
    if (typeof found === 'string' || !isUsable(path))
      return bad(`${path}: this user cannot write to it`, rights);
    if (found.dev !== entry.dev) {
      return bad(
        `${path} is on another file system than ${folder}: files cannot be renamed into it`,
        'Put the drop folder and its subfolders on one file system.',
      );
    }
  }
  return null;
}

function foreignFolder(folder: string, name: string): ForeignFolder | null {
  try {
    inFolder(folder, name, () => {});
    return null;
  } catch (error) {
    if (error instanceof ForeignFolder) return error;
    // Whoever uses the folder reports the error.
    return null;
  }
}

async function checkEvents(folder: string, rescanSeconds: number): Promise<Outcome> {
  const polled = `Wirewatch scans the folder every ${rescanSeconds} s instead ([ingest] rescan_seconds)`;
  const path = probeName(folder);
  try {
    const wasSeen = await isSeen(folder, path);
    return wasSeen
      ? ok('the file system reports new files at once')
      : warn(
          `the file system does not report new files; ${polled}`,
          'Nothing, if that is soon enough: this is normal for network shares.',
        );
  } catch (error) {
    return warn(
      `the folder cannot be watched: ${reasonOf(error)}; ${polled}`,
      'To have files found at once, raise the limits on watched files (fs.inotify.max_user_watches, max_user_instances).',
    );
  } finally {
    rmSync(path, { force: true });
  }
}

async function isSeen(folder: string, path: string): Promise<boolean> {
  const done = new AbortController();
  const watcher = watch(folder, { persistent: false });
  try {
    const seen = new Promise<boolean>((resolve, reject) => {
      watcher.once('error', reject);
      watcher.on('change', (_, name) => {
        if (name !== null && path.endsWith(String(name))) resolve(true);
      });
    });
    writeFileSync(path, '', { flag: 'wx', mode: 0o600 });
    const late = sleep(EVENT_PATIENCE_MS, false, { signal: done.signal }).catch(() => false);
    return await Promise.race([seen, late]);
  } finally {
    done.abort();
    watcher.close();
  }
}

function probeName(folder: string): string {
  return join(folder, `.check-${process.pid}-${randomBytes(6).toString('hex')}`);
}
