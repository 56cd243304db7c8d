/**
 * The last step of a restore: the files of a complete new state, which lie in a folder of their own within the data
 * folder, take the places of those that are there, which are moved aside.
 *
 * A rename brings the folder `incoming-<time>` to its name when all in it is whole and on disk. From then on the new
 * state holds: every step can be done again, and whoever comes next, the same command or the next start, goes on where
 * a crash left it. Until it is done, nothing else is opened. The data folder itself is never renamed: its parent
 * mostly belongs to another user, and it may be a mount.
 */
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { isErrorCode, Refused } from '../refused.ts';
import { formatCompact } from '../time.ts';
import { type DataFolder, syncFolder } from './folder.ts';

const INCOMING = /^incoming-(\d{8}T\d{6}Z)$/;
const PLACED = [
  'detections.db',
  'detections.db-identity',
  'access.db',
  'secret',
  'access-log',
  'log',
] as const;
const STATE = /^((detections|access)\.db([.-].*)?|secret|(access-)?log(-new)?|(alerts|verified)\.json)$/;

/** Names of the files in a data folder that make up an installation's state, with SQLite's own beside them. */
export function stateFiles(folder: DataFolder): string[] {
  return existsSync(folder.root) ? readdirSync(folder.root).filter((name) => STATE.test(name)) : [];
}

/** Where a complete new state is to lie, and where the old one goes, both in the data folder, and not there yet. */
export function incomingNames(folder: DataFolder, nowMs: number): { incoming: string; aside: string } {
  for (let ms = nowMs; ; ms += 1000) {
    const time = formatCompact(ms);
    const names = { incoming: `incoming-${time}`, aside: `replaced-${time}` };
    if (!Object.values(names).some((name) => existsSync(join(folder.root, name)))) return names;
  }
}

/** A restore that was begun and not finished; null mostly. */
export function pendingRestore({ root }: DataFolder): string | null {
  if (!existsSync(root)) return null;
  return readdirSync(root).find((name) => INCOMING.test(name)) ?? null;
}

/** @throws Refused `configuration` while a restore is not finished: some files are of one state, some of another */
export function refuseHalfRestored(folder: DataFolder): void {
  if (pendingRestore(folder) === null) return;
  throw new Refused(
    'configuration',
    `a restore into ${folder.root} is running or was interrupted. If it is not running, complete it: start Wirewatch (wirewatch serve), or repeat the restore command.`,
  );
}

/**
 * Puts what is complete in its place; the caller holds the folder's lock, and its state alone.
 *
 * @returns the name of the folder that holds what was there before, null where nothing was; undefined where there was
 *   nothing to do
 */
export function completeRestore(folder: DataFolder): string | null | undefined {
  const incoming = pendingRestore(folder);
  if (incoming === null) return undefined;
  const aside = incoming.replace('incoming-', 'replaced-');
  for (const step of placingSteps(folder, incoming, aside)) step();
  return existsSync(join(folder.root, aside)) ? aside : null;
}

/** One rename each, in their order; each may have been done before. Apart so that tests can end after any of them. */
export function placingSteps(folder: DataFolder, incoming: string, aside: string): (() => void)[] {
  const { root } = folder;
  const from = join(root, incoming);
  const moveAside = (name: string) => () => {
    mkdirSync(join(root, aside), { recursive: true, mode: 0o700 });
    try {
      renameSync(join(root, name), join(root, aside, name));
    } catch (error) {
      // SQLite takes a log away when the last one who reads the database has closed it.
      if (!isErrorCode(error, 'ENOENT')) throw error;
    }
    syncFolder(join(root, aside));
    syncFolder(root);
  };
  const steps: (() => void)[] = [];
  for (const name of PLACED) {
    // One that is no longer there has been placed: what lies under its name is the new one.
    if (!existsSync(join(from, name))) continue;
    const own = stateFiles(folder).filter(
      (file) =>
        file === name ||
        // A log that was begun anew and is not in its place yet would be put there by the next start.
        file === `${name}-new` ||
        (name.endsWith('.db') && /^[.-]/.test(after(file, name))),
    );
    steps.push(...own.map(moveAside));
    steps.push(() => {
      renameSync(join(from, name), join(root, name));
      syncFolder(from);
      syncFolder(root);
    });
  }
  for (const path of [folder.alerts, folder.verified])
    if (existsSync(path)) steps.push(moveAside(basename(path)));
  steps.push(() => {
    rmSync(from, { recursive: true, force: true });
    syncFolder(root);
  });
  return steps;
}

/** What a file's name has behind that of the file it belongs to, as `-wal`; nothing where it does not. */
function after(file: string, name: string): string {
  return file.startsWith(name) ? file.slice(name.length) : '';
}
