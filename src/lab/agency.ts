/** The sample agency in access.db: an account, two subscriptions, and keys. */
import { addAccount } from '../auth/accounts.ts';
import { hashKey, parseKey } from '../auth/key.ts';
import { addKey, type NewKey } from '../auth/keys.ts';
import { addSubscription } from '../auth/subscriptions.ts';
import { SAMPLE_ACCOUNT, SAMPLE_SUBSCRIPTIONS } from '../generate/rows.ts';
import { type Database, writing } from '../store/database.ts';

/** A key that reads detections. */
export interface LabKey extends Pick<NewKey, 'name' | 'subscriptions' | 'expires_at'> {
  /** The complete key. */
  readonly key: string;
}

/** @param access a writer on a new access.db */
export function prepareAgency(access: Database, keys: readonly LabKey[], nowMs: number): void {
  const account_id = SAMPLE_ACCOUNT.id;
  const defaults = {
    account_id,
    scopes: ['detections:read' as const],
    allow_addresses: [],
    daily_rows: null,
  };
  // In one transaction: each transaction is an fsync, and the user waits.
  writing(access, () => {
    addAccount(access, { ...SAMPLE_ACCOUNT, daily_rows: null }, nowMs);
    for (const { id, name, timeZone, contentTypes } of SAMPLE_SUBSCRIPTIONS) {
      const terms = { time_zone: timeZone, content_types: [...contentTypes] };
      addSubscription(access, { id, account_id, name, ...terms }, nowMs);
    }
    for (const { key, ...own } of keys) {
      const parsed = parseKey(key);
      if (parsed === null) throw new Error('a key of the sample agency does not have the form of a key');
      const { id, prefix } = parsed;
      addKey(access, { id, prefix, hash: hashKey(key), ...defaults, ...own }, nowMs);
    }
  });
}
