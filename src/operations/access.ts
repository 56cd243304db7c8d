/** How operations change access.db. */
import { applyRevocations, type Denied } from '../auth/denials.ts';
import { type OpenAccessOptions, openAccess } from '../auth/open-access.ts';
import type { Database } from '../store/database.ts';
import type { DataFolder } from '../store/folder.ts';

/**
 * Runs `work` on a writer of access.db, behind what was revoked while it could not be written.
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
