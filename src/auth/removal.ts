/**
 * Takes an account or a subscription away, with every right to it: from the next request on nobody sees it, and
 * ingest takes no row of it any more. What lies in detections.db is deleted by the one who ingests, who is asked for
 * that in the same transaction.
 *
 * Until that is done the subscription cannot be added again: whoever got its number would see what is left.
 */
import { type Database, writing } from '../store/database.ts';
import { getAccount } from './accounts.ts';
import { getSubscription } from './subscriptions.ts';

export interface Removed {
  /** Whose detections are to be deleted. */
  readonly subscriptions: readonly number[];
  /** Keys that are gone with their account. */
  readonly keys: readonly string[];
  /** Keys in use that have nothing left to read. They stay, since they can be given something else. */
  readonly keys_without_subscriptions: readonly string[];
}

const SELECT_SUBSCRIPTION_IDS = 'SELECT id FROM subscription WHERE account_id = :account ORDER BY id';
const SELECT_KEY_IDS = 'SELECT id FROM api_key WHERE account_id = :account ORDER BY id';

const INSERT_ENDED_KEYS = 'INSERT INTO ended_key (id) SELECT id FROM api_key WHERE account_id = :account';

const DELETE_RIGHTS_TO = 'DELETE FROM api_key_subscription WHERE subscription_id = :id';
const DELETE_RIGHTS_OF =
  'DELETE FROM api_key_subscription WHERE key_id IN (SELECT id FROM api_key WHERE account_id = :account)';
const DELETE_SUBSCRIPTION = 'DELETE FROM subscription WHERE id = :id';
const DELETE_KEYS = 'DELETE FROM api_key WHERE account_id = :account';
const DELETE_SUBSCRIPTIONS = 'DELETE FROM subscription WHERE account_id = :account';
const DELETE_ACCOUNT = 'DELETE FROM account WHERE id = :account';

const SELECT_KEYS_WITH_ONE = `
  SELECT id FROM api_key
  WHERE revoked_at IS NULL
    AND id IN (SELECT key_id FROM api_key_subscription WHERE subscription_id = :id)
    AND (SELECT count(*) FROM api_key_subscription WHERE key_id = api_key.id) = 1
  ORDER BY id`;

/** @throws Refused `failed` when there is none */
export function removeSubscription(db: Database, id: number): Removed {
  return writing(db, () => {
    getSubscription(db, id);
    const keys_without_subscriptions = idsOf(db, SELECT_KEYS_WITH_ONE, { id });
    db.prepare(DELETE_RIGHTS_TO).run({ id });
    db.prepare(DELETE_SUBSCRIPTION).run({ id });
    return { subscriptions: [id], keys: [], keys_without_subscriptions };
  });
}

/**
 * Its keys are remembered as ended, so that the configuration does not bring them to life again.
 *
 * @throws Refused `failed` when there is none
 */
export function removeAccount(db: Database, account: string): Removed {
  return writing(db, () => {
    getAccount(db, account);
    const keys = idsOf(db, SELECT_KEY_IDS, { account });
    const subscriptions = db
      .prepare<{ account: string }, { id: number }>(SELECT_SUBSCRIPTION_IDS)
      .all({ account })
      .map(({ id }) => id);
    const statements = [
      INSERT_ENDED_KEYS,
      DELETE_RIGHTS_OF,
      DELETE_KEYS,
      DELETE_SUBSCRIPTIONS,
      DELETE_ACCOUNT,
    ];
    for (const statement of statements) db.prepare(statement).run({ account });
    return { subscriptions, keys, keys_without_subscriptions: [] };
  });
}

function idsOf(db: Database, sql: string, values: Readonly<Record<string, string | number>>): string[] {
  return db
    .prepare<Readonly<Record<string, string | number>>, { id: string }>(sql)
    .all(values)
    .map(({ id }) => id);
}
