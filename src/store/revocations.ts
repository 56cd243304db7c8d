/** Which keys the journal names as revoked, for those who are about to make one that is not there. */
import { journalLines } from './journal-lines.ts';

export function readRevokedKeys(path: string): Set<string> {
  const revoked = new Set<string>();
  for (const { entry } of journalLines(path))
    if (typeof entry.key_revoked === 'string') revoked.add(entry.key_revoked);
  return revoked;
}
