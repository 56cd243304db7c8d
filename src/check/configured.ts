/** Accounts, subscriptions and keys of the configuration: whether their secrets are readable, and a start can create them. */

import { preseed as createMissing, type Preseeded, type ReplacedKey, type Seeds } from '../auth/preseed.ts';
import type { Preseed } from '../config/preseed.ts';
import { readSecretFiles } from '../config/secret-file.ts';
import { counted } from '../counted.ts';
import { Refused, reasonOf } from '../refused.ts';
import { ACCESS_SCHEMA } from '../store/access-schema.ts';
import { type Database, openCopyInMemory } from '../store/database.ts';
import { bad, type Finding, finding, type Outcome, ok, warn } from './finding.ts';

/** @returns seeds null if they could not all be read, or there are none */
export function checkSecretFiles(preseed: Preseed): { findings: Finding[]; seeds: Seeds | null } {
  const { accounts, subscriptions, keys } = preseed;
  if (accounts.length + subscriptions.length + keys.length === 0) return { findings: [], seeds: null };
  try {
    const { seeds, readable_by_all } = readSecretFiles(preseed);
    if (!keys.some(({ source }) => source.kind === 'secret_file')) return { findings: [], seeds };
    const outcome =
      readable_by_all.length === 0
        ? ok('each contains its key')
        : warn(
            `every user of this machine can read ${readable_by_all.join(', ')}`,
            `chmod o-r ${readable_by_all.join(' ')}`,
          );
    return { findings: [finding('secret files', outcome)], seeds };
  } catch (error) {
    const outcome = bad(reasonOf(error), 'Fix the entry or the file.');
    return { findings: [finding('secret files', outcome)], seeds: null };
  }
}

/** @param access null: it does not exist yet, and the start would create it */
export function checkConfigured(seeds: Seeds, access: Database | null, nowMs: number): Finding[] {
  const check = 'configured accounts';
  using copy = openCopyInMemory(access, ACCESS_SCHEMA);
  try {
    const preseeded = createMissing(copy, seeds, nowMs);
    return [
      finding(check, checkEntries(preseeded)),
      ...preseeded.replaced.map((key) => finding('replaced key', checkReplaced(key))),
    ];
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return [finding(check, bad(error.message, 'Fix the entry: until then, Wirewatch cannot start.'))];
  }
}

function checkEntries({ created, differences }: Preseeded): Outcome {
  if (differences.length > 0)
    return warn(
      `existing entries differ from the configuration, which does not change them: ${differences.join('; ')}`,
      'Update the configuration file; see: wirewatch manual preseeding',
    );
  const { accounts, subscriptions, keys } = created;
  const missing = accounts.length + subscriptions.length + keys.length;
  return ok(
    missing === 0
      ? 'all exist'
      : `the next start creates ${counted(missing, 'missing entry', 'missing entries')}`,
  );
}

function checkReplaced({ id, place }: ReplacedKey): Outcome {
  return warn(
    `key ${id} still works, although ${place} now has another key`,
    `Once its client has the new key: wirewatch key revoke ${id}`,
  );
}
