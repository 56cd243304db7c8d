/** Accounts, subscriptions and keys of the configuration: whether their secrets can be read, and a start can create them. */
import { preseed as createMissing, type Preseeded, type ReplacedKey, type Seeds } from '../auth/preseed.ts';
import type { Preseed } from '../config/preseed.ts';
import { readSecretFiles } from '../config/secret-file.ts';
import { Refused, reasonOf } from '../refused.ts';
import { ACCESS_SCHEMA } from '../store/access-schema.ts';
import type { Database } from '../store/database.ts';
import { openRehearsal } from '../store/writer.ts';
import { bad, type Finding, ok, warn } from './finding.ts';

/** @returns seeds null where they could not be read whole, or there are none */
export function checkSecretFiles(preseed: Preseed): { findings: Finding[]; seeds: Seeds | null } {
  const check = 'secret files';
  const { accounts, subscriptions, keys } = preseed;
  if (accounts.length + subscriptions.length + keys.length === 0) return { findings: [], seeds: null };
  try {
    const { seeds, readable_by_all } = readSecretFiles(preseed);
    if (!keys.some(({ source }) => source.kind === 'secret_file')) return { findings: [], seeds };
    const finding =
      readable_by_all.length === 0
        ? ok(check, 'each holds its key')
        : warn(
            check,
            `every user of this machine can read ${readable_by_all.join(', ')}`,
            `chmod o-r ${readable_by_all.join(' ')}`,
          );
    return { findings: [finding], seeds };
  } catch (error) {
    return { findings: [bad(check, reasonOf(error), 'Mend the entry, or the file.')], seeds: null };
  }
}

/** @param access null: there is none yet, the start would make it */
export function checkConfigured(seeds: Seeds, access: Database | null, nowMs: number): Finding[] {
  const check = 'configured accounts';
  const copy = openRehearsal(access, ACCESS_SCHEMA);
  try {
    const preseeded = createMissing(copy, seeds, nowMs);
    return [checkEntries(check, preseeded), ...preseeded.replaced.map(checkReplaced)];
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return [bad(check, error.message, 'Mend the entry: no start is possible before.')];
  } finally {
    copy.close();
  }
}

function checkEntries(check: string, { created, differences }: Preseeded): Finding {
  if (differences.length > 0)
    return warn(
      check,
      `what is there differs from the configuration, and stays as it is: ${differences.join('; ')}`,
      'Bring the file up to date; see "wirewatch manual preseeding".',
    );
  const { accounts, subscriptions, keys } = created;
  const missing = accounts.length + subscriptions.length + keys.length;
  return ok(check, missing === 0 ? 'all are there' : `a start creates ${missing} that are missing`);
}

function checkReplaced({ id, place }: ReplacedKey): Finding {
  return warn(
    'replaced key',
    `key ${id} still works, though ${place} has another key in its place`,
    `Once its client has the new key: wirewatch key revoke ${id}`,
  );
}
