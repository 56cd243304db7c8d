/** The sample agency in access.db: an account, two subscriptions, and new keys at every start. */
import { addAccount, findAccount } from '../auth/accounts.ts';
import { createKey, hashKey, parseKey } from '../auth/key.ts';
import { addKey, listKeys, type NewKey, revokeKey, subscriptionsText } from '../auth/keys.ts';
import { addSubscription, findSubscription } from '../auth/subscriptions.ts';
import { SAMPLE_ACCOUNT, SAMPLE_SUBSCRIPTIONS } from '../generate/sample-agency.ts';
import type { Database } from '../store/database.ts';

export interface SampleKey {
  readonly id: string;
  readonly name: string;
  /** In the form of `key create --subscriptions`. */
  readonly reads: string;
  readonly key: string;
}

const [FIRST, SECOND] = SAMPLE_SUBSCRIPTIONS;
const KEYS = [
  {
    name: 'demo: everything',
    subscriptions: [
      { id: FIRST.id, content_types: null },
      { id: SECOND.id, content_types: null },
    ],
  },
  { name: 'demo: overseas stories', subscriptions: [{ id: SECOND.id, content_types: ['text' as const] }] },
];

/**
 * @param access a writer on access.db
 * @returns keys that work until the next start: only their hashes are stored, so new ones are made each time
 */
export function prepareAgency(access: Database, prefix: string, nowMs: number): SampleKey[] {
  prepareAccount(access, nowMs);
  // Only those of the last start: keys that a user created stay.
  for (const { id, name, revoked_at } of listKeys(access)) {
    if (revoked_at === null && KEYS.some((own) => own.name === name)) revokeKey(access, id, nowMs);
  }
  return KEYS.map(({ name, subscriptions }) => {
    const { id, key } = createKey(prefix);
    addSampleKey(access, key, { name, subscriptions, expires_at: null }, nowMs);
    return { id, name, reads: subscriptionsText(subscriptions), key };
  });
}

/** Adds the account and its subscriptions if they are missing. @param access a writer on access.db */
export function prepareAccount(access: Database, nowMs: number): void {
  if (findAccount(access, SAMPLE_ACCOUNT.id) === null) {
    addAccount(access, { ...SAMPLE_ACCOUNT, daily_rows: null }, nowMs);
  }
  for (const { id, name, timeZone, contentTypes } of SAMPLE_SUBSCRIPTIONS) {
    if (findSubscription(access, id) !== null) continue;
    const content_types = [...contentTypes];
    addSubscription(
      access,
      { id, account_id: SAMPLE_ACCOUNT.id, name, time_zone: timeZone, content_types },
      nowMs,
    );
  }
}

/** Adds a key that reads detections to the account. @param key the complete key */
export function addSampleKey(
  access: Database,
  key: string,
  terms: Pick<NewKey, 'name' | 'subscriptions' | 'expires_at'>,
  nowMs: number,
): void {
  const parsed = parseKey(key);
  if (parsed === null) throw new Error('a key of the sample agency does not have the form of a key');
  const { id, prefix } = parsed;
  const account_id = SAMPLE_ACCOUNT.id;
  const defaults = { scopes: ['detections:read' as const], allow_addresses: [], daily_rows: null };
  addKey(access, { id, prefix, hash: hashKey(key), account_id, ...defaults, ...terms }, nowMs);
}
