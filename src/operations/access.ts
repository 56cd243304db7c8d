/** How operations change access.db. */
import { findAccount, suspendAccount } from '../auth/accounts.ts';
import type { Denied } from '../auth/denials.ts';
import { findKey, revokeKey } from '../auth/keys.ts';
import { type OpenAccessOptions, openAccess } from '../auth/open-access.ts';
import { type Database, writing } from '../store/database.ts';
import type { DataFolder } from '../store/folder.ts';
import { emptyRevocations, readEnded } from '../store/revocations.ts';

/**
 * Runs `work` on a writer of access.db, behind what was revoked while it could not be written.
 *
 * @param onApplied called with those, which access.db has now
 */
export function changeAccess<Result>(
  folder: DataFolder,
  options: OpenAccessOptions,
  work: (access: Database) => Result,
  onApplied: (applied: readonly Denied[]) => void = () => {},
): Result {
  using access = openAccess(folder.root, options);
  onApplied(applyRevocations(folder, access));
  return work(access);
}

/** Gives access.db what was revoked or suspended while it could not be written. @returns what it was */
export function applyRevocations(folder: DataFolder, access: Database): readonly Denied[] {
  const ended = readEnded(folder);
  if (ended.length === 0) return [];
  writing(access, () => {
    for (const { kind, id, at } of ended) {
      // It may have been removed since.
      if (kind === 'key' && findKey(access, id) !== null) revokeKey(access, id, at);
      if (kind === 'account' && findAccount(access, id) !== null) suspendAccount(access, id, at);
    }
  });
  emptyRevocations(folder);
  return ended;
}
