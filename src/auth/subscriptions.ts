/** Subscriptions of the accounts. `db` is a writer on access.db; `nowMs` is epoch milliseconds. */
import { CONTENT_TYPES, type ContentType } from '../detection/content-type.ts';
import { failed } from '../refused.ts';
import { type Database, documents, jsonMembers, writing } from '../store/database.ts';
import { formatMs } from '../time.ts';
import { type Changes, changed, getAccount } from './accounts.ts';

type Terms = Readonly<{ name: string | null; time_zone: string; content_types: readonly ContentType[] }>;

export type Subscription = Readonly<{ id: number; account_id: string; created_at: number }> & Terms;

const TERMS_DEFAULT: Terms = { name: null, time_zone: 'UTC', content_types: CONTENT_TYPES };

/** Absent and undefined members get their default. */
export type NewSubscription = Pick<Subscription, 'id' | 'account_id'> & Changes<Terms>;

const SUBSCRIPTION = `json_object(${jsonMembers('id', 'account_id', 'name', 'time_zone', 'created_at')},
  'content_types', json(content_types))`;
const SELECT_SUBSCRIPTIONS = `SELECT ${SUBSCRIPTION} FROM subscription ORDER BY id`;
const SELECT_SUBSCRIPTION = `SELECT ${SUBSCRIPTION} FROM subscription WHERE id = :id`;
const INSERT_SUBSCRIPTION = `
  INSERT INTO subscription (id, account_id, name, time_zone, content_types, created_at)
  VALUES (:id, :account_id, :name, :time_zone, :content_types, :created_at)`;
const UPDATE_SUBSCRIPTION = `
  UPDATE subscription SET name = :name, time_zone = :time_zone, content_types = :content_types WHERE id = :id`;
const SELECT_REMOVAL = 'SELECT 1 FROM removal WHERE subscription_id = :id';

/** @throws Refused `failed` if the id exists or is still being removed, or the account does not exist */
export const addSubscription = (db: Database, subscription: NewSubscription, nowMs: number): Subscription =>
  writing(db, () => {
    getAccount(db, subscription.account_id);
    const found = findSubscription(db, subscription.id);
    if (found !== null)
      throw failed(
        `subscription ${found.id} already exists, in account ${found.account_id}. To change it, run: wirewatch subscription set ${found.id}`,
      );
    if (isBeingRemoved(db, subscription.id))
      throw failed(
        `subscription ${subscription.id} was removed, but its rows are still being deleted. To wait until that is done, run: wirewatch subscription remove ${subscription.id}`,
      );
    const columns = columnsOf({ ...subscription, ...changed(TERMS_DEFAULT, subscription) });
    db.prepare(INSERT_SUBSCRIPTION).run({ ...columns, created_at: nowMs });
    return getSubscription(db, subscription.id);
  });

export const listSubscriptions = (db: Database) => documents<Subscription>(db, SELECT_SUBSCRIPTIONS);

export const findSubscription = (db: Database, id: number): Subscription | null =>
  documents<Subscription>(db, SELECT_SUBSCRIPTION, { id })[0] ?? null;

/** @throws Refused `failed` if it does not exist */
export function getSubscription(db: Database, id: number): Subscription {
  const subscription = findSubscription(db, id);
  if (subscription !== null) return subscription;
  throw failed(
    `subscription ${id} does not exist. To add it, run: wirewatch subscription add ${id} --account ACCOUNT. To list subscriptions, run: wirewatch subscription list`,
  );
}

/**
 * @param changes `account_id` repeats the account; a subscription, with its history, never moves to another
 * @throws Refused `failed` if it does not exist, or the account is not its own
 */
export const setSubscription = (db: Database, id: number, changes: Changes<Omit<NewSubscription, 'id'>>) =>
  writing(db, () => {
    const found = getSubscription(db, id);
    if (changes.account_id !== undefined && changes.account_id !== found.account_id)
      throw failed(
        `subscription ${id} belongs to account ${found.account_id} and cannot be moved, because its detections would move with it.`,
      );
    db.prepare(UPDATE_SUBSCRIPTION).run(columnsOf(changed(found, changes)));
    return getSubscription(db, id);
  });

function columnsOf<Of extends Terms>(subscription: Of) {
  return { ...subscription, content_types: JSON.stringify(subscription.content_types) };
}

/** Whether the rows of a removed subscription are still being deleted. */
export const isBeingRemoved = (db: Database, id: number): boolean =>
  db.prepare<{ id: number }, object>(SELECT_REMOVAL).get({ id }) !== undefined;

export function subscriptionDocument(subscription: Subscription) {
  const { id, account_id, name, time_zone, content_types, created_at } = subscription;
  return { id, account: account_id, name, time_zone, content_types, created_at: formatMs(created_at) };
}
