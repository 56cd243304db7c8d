/**
 * The last step of a restore: the files of the new state, in a folder of their own in the data folder, replace the existing
 * ones, which are moved aside.
 *
 * Once everything in that folder is on the disk, it is renamed to `incoming-<time>`. From then on the new state counts:
 * every step can be repeated, and the same command or the next start continues after a crash. The data folder itself is
 * never renamed: it may be a mount point.
 */
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { misconfigured, unlessCode } from '../refused.ts';
import { formatCompact, SECOND_MS } from '../time.ts';
import { type DataFolder, isThere, syncFolder } from './folder.ts';

const INCOMING = /^incoming-(\d{8}T\d{6}Z)$/;
/** The files and folders of an installation that a restore replaces, in this order. */
export const RESTORED_NAMES: readonly string[] = ['detections.db', 'access.db', 'secret', 'log', 'copied'];

/** A path in the data folder for the new state: of the first second whose two names nothing has yet. */
export function incomingPath({ root }: DataFolder, nowMs: number): string {
  for (let ms = nowMs; ; ms += SECOND_MS) {
    const time = formatCompact(ms);
    const [incoming, aside] = [join(root, `incoming-${time}`), join(root, `replaced-${time}`)];
    if (!isThere(incoming) && !isThere(aside)) return incoming;
  }
}

/** The folder of a restore that is not complete; null: there is none. */
export const pendingRestore = ({ root }: DataFolder): string | null =>
  (existsSync(root) ? readdirSync(root) : []).find((name) => INCOMING.test(name)) ?? null;

/** @throws Refused `configuration` while a restore is not complete: the files may be of two states */
export function refuseHalfRestored(folder: DataFolder): void {
  if (pendingRestore(folder) === null) return;
  throw misconfigured(
    `a restore into ${folder.root} is running or was interrupted. If it is not running, complete it: start Wirewatch (wirewatch serve), or repeat the restore command.`,
  );
}

/**
 * Completes a restore; the caller holds the locks of {@link takeStopped}. Each step can be repeated.
 * @returns the folder with the previous files; null: there were none; undefined: there was nothing to do
 */
export function completeRestore(folder: DataFolder): string | null | undefined {
  const { root, verified, role } = folder;
  const incoming = pendingRestore(folder);
  if (incoming === null) return undefined;
  const from = join(root, incoming);
  const aside = join(root, incoming.replace('incoming-', 'replaced-'));
  const moveAside = (name: string) => {
    mkdirSync(aside, { recursive: true, mode: 0o700 });
    // SQLite deletes a write-ahead log when the last connection closes.
    unlessCode(undefined, () => renameSync(join(root, name), join(aside, name)), 'ENOENT');
    syncFolder(aside);
    syncFolder(root);
  };
  // Also what this machine is to the copy.
  for (const name of [...RESTORED_NAMES, basename(role)]) {
    // If it is gone, it is in place already.
    if (!existsSync(join(from, name))) continue;
    const isBeside = (file: string) => file.startsWith(`${name}.`) || file.startsWith(`${name}-`);
    for (const file of readdirSync(root))
      if (file === name || (name.endsWith('.db') && isBeside(file))) moveAside(file);
    renameSync(join(from, name), join(root, name));
    syncFolder(from);
    syncFolder(root);
  }
  // What was compared.
  if (existsSync(verified)) moveAside(basename(verified));
  // Last: after it, the same command would be refused. What a power cut brings back of it is placed nowhere.
  rmSync(from, { recursive: true, force: true });
  return existsSync(aside) ? aside : null;
}
