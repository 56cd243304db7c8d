/** As whom a command acts on a data folder. */
import { existsSync, statSync } from 'node:fs';
import { nativeBinding } from './addon.ts';
import type { DataFolder } from './folder.ts';

/**
 * Root works in the folder of another user as that one, for good: what it makes there could otherwise be opened by
 * nobody else, and a link that this user puts there would lead root elsewhere.
 */
export function actAsOwner({ root }: DataFolder): void {
  if (process.geteuid?.() !== 0 || !existsSync(root)) return;
  const { uid, gid } = statSync(root);
  if (uid === 0) return;
  // The library of the database is kept where this user, who is still root, keeps such things.
  nativeBinding();
  process.setgroups?.([gid]);
  process.setegid?.(gid);
  process.seteuid?.(uid);
}
