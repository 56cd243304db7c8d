/**
 * The drop folder: whether files can be moved in it as ingest does, and whether the file system tells of new ones.
 *
 * What is tried has a name that begins with a dot, which a running appliance leaves alone, and is gone afterwards.
 */
import { randomBytes } from 'node:crypto';
import { renameSync, rmSync, statSync, watch, writeFileSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { OWN_FOLDERS } from '../ingest/drop-folder.ts';
import { paced } from '../pace.ts';
import { reasonOf } from '../refused.ts';
import { fileSystemOf } from './file-system.ts';
import { bad, type Finding, ok, warn } from './finding.ts';
import { isUsable, statOf } from './folders.ts';

/** Events come within milliseconds where they come at all. */
const EVENT_PATIENCE_MS = paced(2000);

const WRITABLE_BY_OTHERS = 0o022;
const STICKY = 0o1000;

export interface DropOptions {
  readonly folder: string;
  readonly rescanSeconds: number;
}

export async function checkDropFolder({ folder, rescanSeconds }: DropOptions): Promise<Finding[]> {
  const check = 'drop folder';
  const found = statOf(folder);
  if (found === null)
    return [
      warn(
        check,
        `${folder} is not there yet`,
        'The first start makes it, with its own folders in it. Is it the right one, and mounted?',
      ),
    ];
  if (typeof found === 'string' || !found.isDirectory()) {
    const reason = typeof found === 'string' ? found : 'it is no folder';
    return [
      bad(
        check,
        `${folder}: ${reason}`,
        'Name another with [ingest] drop, or give this user the right to reach it.',
      ),
    ];
  }
  const fault = faultOf(folder);
  if (fault !== null) return [fault];
  const type = await statfs(folder).then(
    (disk) => fileSystemOf(disk.type),
    () => null,
  );
  const where = type === null ? '' : `, on ${type.name}`;
  if ((found.mode & WRITABLE_BY_OTHERS) !== 0 && (found.mode & STICKY) === 0)
    return [
      warn(
        check,
        `${folder}: whoever may write to it can also move archive/ and the files of others away`,
        `chmod +t ${folder}`,
      ),
      await checkEvents(folder, rescanSeconds),
    ];
  return [
    ok(check, `${folder}${where}: files can be made and renamed, its own folders are on one file system`),
    await checkEvents(folder, rescanSeconds),
  ];
}

/** What keeps ingest from taking files out of the folder; null when nothing does. */
function faultOf(folder: string): Finding | null {
  const check = 'drop folder';
  const rights = 'Give the user of the appliance the right to write to the folder and to those in it.';
  const draft = probeName(folder);
  try {
    writeFileSync(draft, '', { flag: 'wx', mode: 0o600 });
    renameSync(draft, `${draft}.renamed`);
  } catch (error) {
    return bad(check, `${folder}: cannot make a file and rename it: ${reasonOf(error)}`, rights);
  } finally {
    rmSync(draft, { force: true });
    rmSync(`${draft}.renamed`, { force: true });
  }
  const { dev } = statSync(folder);
  for (const name of OWN_FOLDERS) {
    const path = join(folder, name);
    const found = statOf(path);
    if (found === null) continue;
    if (typeof found === 'string' || !found.isDirectory() || !isUsable(path))
      return bad(check, `${path} cannot be written to by this user`, rights);
    if (found.dev !== dev) {
      return bad(
        check,
        `${path} is on another file system than ${folder}: files cannot be renamed into it`,
        'Put all of the drop folder on one file system.',
      );
    }
  }
  return null;
}

async function checkEvents(folder: string, rescanSeconds: number): Promise<Finding> {
  const check = 'drop events';
  const polled = `files are found every ${rescanSeconds} s ([ingest] rescan_seconds) instead`;
  const path = probeName(folder);
  try {
    const wasSeen = await isSeen(folder, path);
    return wasSeen
      ? ok(check, 'the file system tells of new files at once')
      : warn(
          check,
          `the file system does not tell of new files: ${polled}`,
          'Nothing, where that is soon enough; network shares are like that.',
        );
  } catch (error) {
    return warn(
      check,
      `the folder cannot be watched: ${reasonOf(error)}; ${polled}`,
      'Where files should be found at once, raise the limit on watched files (fs.inotify.max_user_watches, max_user_instances).',
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
