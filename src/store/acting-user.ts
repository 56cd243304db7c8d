/** The user that a command acts as in a data folder. */
import { accessSync, constants, statSync } from 'node:fs';
import { Refused, reasonOf } from '../refused.ts';
import { nativeBinding } from './addon.ts';
import type { DataFolder } from './folder.ts';

let hasSwitched = false;

/**
 * In the folder of another user, root acts as that user. Otherwise nobody else could open the files it creates, and a
 * link of that user could lead root elsewhere. The process cannot switch back, because the saved ids change too.
 *
 * @throws Refused `configuration` if that user cannot enter the folder: to it, an installation would seem to be missing
 */
export function actAsOwner({ root }: DataFolder): void {
  const owner = otherOwner(root);
  if (owner === null) return;
  // While this is still root: the library of SQLite is stored in a folder of root.
  nativeBinding();
  process.setgroups?.([owner.gid]);
  process.setgid?.(owner.gid);
  process.setuid?.(owner.uid);
  hasSwitched = true;
  try {
    accessSync(root, constants.X_OK);
  } catch (error) {
    throw new Refused(
      'configuration',
      `user id ${owner.uid} owns the data folder ${root}, but cannot enter it: ${reasonOf(error, root)}. Root acts as that user there: give that user access to every folder above.`,
      { cause: error },
    );
  }
}

/** Whether this process was started by root, and acts as another user. */
export function actsAsOwner(): boolean {
  return hasSwitched;
}

/** @throws Refused `configuration` if root would serve the folder of another user */
export function refuseAsRoot({ root }: DataFolder): void {
  const owner = otherOwner(root);
  if (owner === null) return;
  const { uid, gid } = owner;
  throw new Refused(
    'configuration',
    `root cannot serve the data folder ${root}, because it belongs to user id ${uid}. Run as that user (setpriv --reuid=${uid} --regid=${gid} --init-groups wirewatch serve ..., User= in a unit, --user in a container), or change the owner to root (chown -R root).`,
  );
}

/** The owner of an existing folder, if this process is root's and the folder is not; otherwise null. */
function otherOwner(root: string): { readonly uid: number; readonly gid: number } | null {
  if (process.geteuid?.() !== 0) return null;
  const found = statSync(root, { throwIfNoEntry: false });
  return found === undefined || found.uid === 0 ? null : found;
}
