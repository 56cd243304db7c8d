/** As whom a command acts on a data folder. */
import { statSync } from 'node:fs';
import { Refused } from '../refused.ts';
import { nativeBinding } from './addon.ts';
import type { DataFolder } from './folder.ts';

let hasSwitched = false;

/**
 * Root works in the folder of another user as that one: what it makes there could otherwise be opened by nobody else,
 * and a link that this user puts there would lead root elsewhere. There is no way back for the process, saved ids
 * included, so nothing that it reads there can have it act as root again.
 */
export function actAsOwner({ root }: DataFolder): void {
  const owner = otherOwner(root);
  if (owner === null) return;
  // The library of the database is kept where this user, who is still root, keeps such things.
  nativeBinding();
  process.setgroups?.([owner.gid]);
  process.setgid?.(owner.gid);
  process.setuid?.(owner.uid);
  hasSwitched = true;
}

/** Whether this process was started by root, and acts as another user. */
export function actsAsOwner(): boolean {
  return hasSwitched;
}

/** @throws Refused `configuration` where root is about to serve the folder of another user */
export function refuseAsRoot({ root }: DataFolder): void {
  const owner = otherOwner(root);
  if (owner === null) return;
  const { uid, gid } = owner;
  throw new Refused(
    'configuration',
    `root cannot serve the data folder ${root}, because it belongs to user id ${uid}. Run as that user (setpriv --reuid=${uid} --regid=${gid} --init-groups wirewatch serve ..., User= in a unit, --user in a container), or change the owner to root (chown -R root).`,
  );
}

/** The owner of a folder that is there, where this is root and the owner is not. */
function otherOwner(root: string): { readonly uid: number; readonly gid: number } | null {
  if (process.geteuid?.() !== 0) return null;
  const found = statSync(root, { throwIfNoEntry: false });
  return found === undefined || found.uid === 0 ? null : found;
}
