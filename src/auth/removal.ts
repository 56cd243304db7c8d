/**
 * Removes an account or a subscription with all rights to it: from the next request on nobody can read it, and ingest
 * skips its rows. In the same transaction, a removal is opened for each subscription: the ingest thread deletes the rows
 * in detections.db, and then closes it. Until then the subscription cannot be added again: its new owner would see them.
 */
import { type Database, writing } from '../store/database.ts';
import { getAccount } from './accounts.ts';
import { readTrail } from './audit.ts';
import { getSubscription } from './subscriptions.ts';

export interface Removed {
  readonly subscriptions: readonly number[];
  readonly keys: readonly string[];
  /** Remaining keys without any subscription: they can get another one. */
  readonly keys_without_subscriptions: readonly string[];
}

const SELECT_SUBSCRIPTION_IDS = 'SELECT id FROM subscription WHERE account_id = :account ORDER BY id';
const SELECT_KEY_IDS = 'SELECT id FROM api_key WHERE account_id = :account ORDER BY id';
const INSERT_ENDED_KEYS = 'INSERT INTO ended_key (id) SELECT id FROM api_key WHERE account_id = :account';
const OPEN_REMOVAL =
  'INSERT INTO removal (subscription_id, account_id) SELECT id, account_id FROM subscription WHERE id = :id';
const SELECT_REMOVALS = `
  SELECT subscription_id FROM removal
  WHERE :account IS NULL OR account_id = :account ORDER BY subscription_id`;
const SELECT_ADDED_AGAIN = `
  SELECT DISTINCT subscription.id
  FROM subscription, audit, json_each(iif(json_valid(changes), changes, '[]')) AS change
  WHERE change.value ->> '$.subject' = 'subscription' AND change.value ->> '$.change' = 'removed'
    AND change.value ->> '$.id' = subscription.id AND max(created_at, at) > :since`;
const CLOSE_REMOVAL = 'DELETE FROM removal WHERE subscription_id = :id';
const DELETE_RIGHTS_TO = 'DELETE FROM api_key_subscription WHERE subscription_id = :id';
const DELETE_RIGHTS_OF =
  'DELETE FROM api_key_subscription WHERE key_id IN (SELECT id FROM api_key WHERE account_id = :account)';
const DELETE_SUBSCRIPTION = 'DELETE FROM subscription WHERE id = :id';
const DELETE_KEYS = 'DELETE FROM api_key WHERE account_id = :account';
const DELETE_ACCOUNT = 'DELETE FROM account WHERE id = :account';
const SELECT_KEYS_WITH_ONE = `
  SELECT id FROM api_key
  WHERE revoked_at IS NULL
    AND id IN (SELECT key_id FROM api_key_subscription WHERE subscription_id = :id)
    AND (SELECT count(*) FROM api_key_subscription WHERE key_id = api_key.id) = 1
  ORDER BY id`;

/** @throws Refused `failed` if it does not exist */
export const removeSubscription = (db: Database, id: number): Removed =>
  writing(db, () => {
    getSubscription(db, id);
    const keys_without_subscriptions = idsOf<string>(db, SELECT_KEYS_WITH_ONE, { id });
    run(db, [OPEN_REMOVAL, DELETE_RIGHTS_TO, DELETE_SUBSCRIPTION], { id });
    return { subscriptions: [id], keys: [], keys_without_subscriptions };
  });

/** Records the ids of its keys: a start must not create them again. @throws Refused `failed` if it does not exist */
export const removeAccount = (db: Database, account: string): Removed =>
  writing(db, () => {
    getAccount(db, account);
    const keys = idsOf<string>(db, SELECT_KEY_IDS, { account });
    const subscriptions = idsOf<number>(db, SELECT_SUBSCRIPTION_IDS, { account });
    for (const id of subscriptions) run(db, [OPEN_REMOVAL, DELETE_RIGHTS_TO, DELETE_SUBSCRIPTION], { id });
    run(db, [INSERT_ENDED_KEYS, DELETE_RIGHTS_OF, DELETE_KEYS, DELETE_ACCOUNT], { account });
    return { subscriptions, keys, keys_without_subscriptions: [] };
  });

function run(db: Database, statements: readonly string[], values: object): void {
  for (const statement of statements) db.prepare(statement).run(values);
}

/** The removed subscriptions, of one account or of all, whose rows are still being deleted. */
export const openRemovals = (db: Database, account: string | null = null): number[] =>
  idsOf<number>(db, SELECT_REMOVALS, { account });

/**
 * The subscriptions that were removed, and added again, after a time, epoch milliseconds: perhaps for another account. If the
 * clock was set back meanwhile, one of the two is still later.
 */
export const addedAgain = (db: Database, since: number) => idsOf<number>(db, SELECT_ADDED_AGAIN, { since });

/**
 * The subscriptions that were removed between two states of access.db, also where they were added again; and those whose rows
 * were still being deleted at the earlier one.
 * @returns how often each was removed by the later one; infinite where the audit trail cannot tell
 */
export function removedSince(earlier: Database, later: Database): Map<number, number> {
  const [before, after] = [removalsIn(earlier), removalsIn(later)];
  const known = new Set(before.removals.map((removal) => JSON.stringify(removal)));
  const since = after.removals.filter((removal) => !known.has(JSON.stringify(removal)));
  const timesOf = (own: number) => after.removals.filter(({ id }) => Number(id) === own).length;
  const removed = [...openRemovals(earlier), ...since.map(({ id }) => Number(id))];
  return new Map(removed.map((id) => [id, after.isWhole ? timesOf(id) : Number.POSITIVE_INFINITY]));
}

function removalsIn(db: Database) {
  const { changes, damage } = readTrail(db);
  const own = changes.filter(({ subject, change }) => subject === 'subscription' && change === 'removed');
  return { removals: own, isWhole: damage === null };
}

/** Call it once the log of detections has the removals and no rows are left. */
export function closeRemovals(db: Database, subscriptions: readonly number[]): void {
  writing(db, () => {
    for (const id of subscriptions) db.prepare(CLOSE_REMOVAL).run({ id });
  });
}

const idsOf = <Id>(db: Database, sql: string, values: object): Id[] =>
  db.prepare<unknown[], Id>(sql).pluck().all(values);
