/** Accounts, subscriptions and keys of the configuration: whether a start can create those that are missing. */
import { preseed as createMissing, type Seeds } from '../auth/preseed.ts';
import type { Preseed } from '../config/preseed.ts';
import { readSecretFiles } from '../config/secret-file.ts';
import { Refused } from '../refused.ts';
import { ACCESS_SCHEMA } from '../store/access-schema.ts';
import { type Database, openCopyInMemory } from '../store/database.ts';
import { bad, type Finding, finding, type Outcome, ok, warn } from './finding.ts';

/**
 * Creates them in a copy, in memory.
 *
 * @param access null: it does not exist yet, and the start would create it
 */
export function checkConfigured(preseed: Preseed, access: Database | null, nowMs: number): Finding[] {
  const { accounts, subscriptions, keys } = preseed;
  if (accounts.length + subscriptions.length + keys.length === 0) return [];
  return outcomesOf(preseed, access, nowMs).map((outcome) => finding('configured accounts', outcome));
}

function outcomesOf(preseed: Preseed, access: Database | null, nowMs: number): Outcome[] {
  try {
    const { seeds, readable_by_all } = readSecretFiles(preseed);
    const warnings = [
      ...readable_by_all.map((file) =>
        warn(`every user of this machine can read ${file}`, `chmod o-r ${file}`),
      ),
      ...ofEntries(seeds, access, nowMs),
    ];
    return warnings.length > 0 ? warnings : [ok('all exist, or the next start creates them')];
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return [bad(error.message, 'Fix the entry or the file: until then, Wirewatch cannot start.')];
  }
}

/** @throws Refused `configuration` as a start does */
function ofEntries(seeds: Seeds, access: Database | null, nowMs: number): Outcome[] {
  using copy = openCopyInMemory(access, ACCESS_SCHEMA);
  const { differences, replaced } = createMissing(copy, seeds, nowMs);
  const differ = warn(
    `existing entries differ from the configuration, which does not change them: ${differences.join('; ')}`,
    'Update the configuration file; see: wirewatch manual preseeding',
  );
  return [
    ...(differences.length > 0 ? [differ] : []),
    ...replaced.map(({ id, place }) =>
      warn(
        `key ${id} still works, although ${place} now has another key`,
        `Once its client has the new key: wirewatch key revoke ${id}`,
      ),
    ),
  ];
}
