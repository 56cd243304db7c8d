/** Whose a data folder is: one user runs Wirewatch on it and its commands, so that each can open what the others write. */
import { accessSync, constants, readFileSync, statSync } from 'node:fs';
import { isErrorCode, misconfigured, unlessError } from '../refused.ts';
import type { DataFolder } from './folder.ts';

/**
 * Checks that the folder belongs to the user of this process; a missing one does.
 * @throws Refused `configuration` with the owner and how to run the command as that user
 */
export function requireOwner({ root }: Pick<DataFolder, 'root'>): void {
  const found = ownerOf(root);
  if (found !== null && found.uid !== process.geteuid?.()) throw found.refusal;
}

/** @throws Refused `configuration` as {@link requireOwner}, if this user cannot read a folder that exists */
export function refuseUnreadable({ root }: Pick<DataFolder, 'root'>): void {
  const found = ownerOf(root);
  if (found === null) return;
  try {
    accessSync(root, constants.R_OK | constants.X_OK);
  } catch {
    throw found.refusal;
  }
}

/**
 * @returns null if there is no such folder; `refusal`: that it belongs to another user, and how to run a command as that one
 * @throws Refused if this user cannot see whether there is one
 */
function ownerOf(root: string) {
  try {
    const found = statSync(root, { throwIfNoEntry: false });
    if (found?.isDirectory() !== true) return null;
    const { uid, gid } = found;
    const name = nameOf(uid);
    const switching =
      name === null ? `setpriv --reuid=${uid} --regid=${gid} --init-groups` : `runuser -u ${name} --`;
    const asOwner = process.geteuid?.() === 0 ? switching : `sudo -u ${name ?? `'#${uid}'`}`;
    const refusal = misconfigured(
      `the data folder ${root} belongs to ${name ?? `user id ${uid}`}: run this as that user, for example: ${asOwner} wirewatch ...`,
    );
    return { uid, refusal };
  } catch (error) {
    if (!isErrorCode(error, 'EACCES')) return null;
    throw misconfigured(
      `no permission to see ${root}: run it as the user that owns the data folder, for example: sudo -u wirewatch wirewatch ...`,
    );
  }
}

/** @returns null for users that are not in the file */
function nameOf(uid: number): string | null {
  const lines = unlessError('', () => readFileSync('/etc/passwd', 'utf8')).split('\n');
  return lines.map((line) => line.split(':')).find(([, , id]) => id === `${uid}`)?.[0] ?? null;
}
