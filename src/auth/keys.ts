/** The stored keys. `db` is a writer on access.db; times are epoch milliseconds. */
import type { ContentType } from '../detection/content-type.ts';
import { failed } from '../refused.ts';
import { type Database, documents, jsonMembers, writing } from '../store/database.ts';
import { formatMs } from '../time.ts';
import { type Changes, changed, getAccount } from './accounts.ts';
import type { Scope } from './scopes.ts';
import { getSubscription } from './subscriptions.ts';

/** `content_types`: null: those that the subscription has when the key is used. */
export type KeySubscription = Readonly<{ id: number; content_types: readonly ContentType[] | null }>;

export interface KeyTerms {
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly subscriptions: readonly KeySubscription[];
  readonly expires_at: number | null;
  readonly allow_addresses: readonly string[];
  /** Null: only the account's allowance holds. */
  readonly daily_rows: number | null;
}

export type Key = KeyTerms &
  Readonly<{ id: string; account_id: string; revoked_at: number | null; created_at: number }>;

type OptionalTerms = Pick<KeyTerms, 'expires_at' | 'allow_addresses' | 'daily_rows'>;
const TERMS_DEFAULT: OptionalTerms = { expires_at: null, allow_addresses: [], daily_rows: null };

/** The terms of a new key; absent and undefined ones get their default. */
export type NewKeyTerms = Omit<KeyTerms, keyof OptionalTerms> & Changes<OptionalTerms>;

export type NewKey = NewKeyTerms & Readonly<{ id: string; account_id: string; prefix: string; hash: Buffer }>;

const KEY = `json_object(
  ${jsonMembers('id', 'account_id', 'name', 'expires_at', 'revoked_at', 'daily_rows', 'created_at')},
  'scopes', json(scopes), 'allow_addresses', json(allow_addresses),
  'subscriptions', json((SELECT json_group_array(
      json_object('id', subscription_id, 'content_types', json(content_types)) ORDER BY subscription_id)
    FROM api_key_subscription WHERE key_id = api_key.id)))`;
const SELECT_KEYS = `SELECT ${KEY} FROM api_key ORDER BY account_id, created_at, id`;
const SELECT_STATES = 'SELECT id, account_id, revoked_at, expires_at FROM api_key ORDER BY account_id, id';
const SELECT_KEY = `SELECT ${KEY} FROM api_key WHERE id = :id`;
const SELECT_HASH = 'SELECT hash FROM api_key WHERE id = :id';
const SELECT_ENDED = 'SELECT 1 FROM ended_key WHERE id = :id';
const INSERT_KEY = `
  INSERT INTO api_key
    (id, account_id, name, prefix, hash, scopes, expires_at, allow_addresses, daily_rows, created_at)
  VALUES
    (:id, :account_id, :name, :prefix, :hash, :scopes, :expires_at, :allow_addresses, :daily_rows, :created_at)`;
const UPDATE_KEY = `
  UPDATE api_key SET name = :name, scopes = :scopes, expires_at = :expires_at,
    allow_addresses = :allow_addresses, daily_rows = :daily_rows
  WHERE id = :id`;
const UPDATE_REVOKED = 'UPDATE api_key SET revoked_at = :revoked_at WHERE id = :id AND revoked_at IS NULL';
const INSERT_KEY_SUBSCRIPTION = `
  INSERT INTO api_key_subscription (key_id, subscription_id, content_types)
  VALUES (:key_id, :subscription_id, :content_types)`;
const DELETE_KEY_SUBSCRIPTIONS = 'DELETE FROM api_key_subscription WHERE key_id = :key_id';

/** @throws Refused `failed` if the account or a subscription does not exist, or does not belong to the account */
export const addKey = (db: Database, key: NewKey, nowMs: number): Key =>
  writing(db, () => {
    getAccount(db, key.account_id);
    if (findKey(db, key.id) !== null) throw failed(`key ${key.id} already exists.`);
    const columns = columnsOf({ ...key, ...changed(TERMS_DEFAULT, key) });
    db.prepare(INSERT_KEY).run({ ...columns, created_at: nowMs });
    putSubscriptions(db, key, key.subscriptions);
    return getKey(db, key.id);
  });

export const listKeys = (db: Database) => documents<Key>(db, SELECT_KEYS);

/** What tells the status of each key. Takes much less time than {@link listKeys}: revoked keys are never deleted. */
export const listKeyStates = (db: Database) =>
  db.prepare<[], Pick<Key, 'id' | 'account_id' | 'revoked_at' | 'expires_at'>>(SELECT_STATES).all();

export const findKey = (db: Database, id: string) => documents<Key>(db, SELECT_KEY, { id })[0] ?? null;

/** The stored SHA-256 of a key; null if it does not exist. */
export const keyHash = (db: Database, id: string): Buffer | null =>
  db.prepare<{ id: string }, { hash: Buffer }>(SELECT_HASH).get({ id })?.hash ?? null;

/** Whether the key was removed together with its account. */
export const isRemoved = (db: Database, id: string) => db.prepare(SELECT_ENDED).get({ id }) !== undefined;

/** @throws Refused `failed` if it does not exist */
export function getKey(db: Database, id: string): Key {
  const key = findKey(db, id);
  if (key !== null) return key;
  throw failed(`key ${id} does not exist. To list keys, run: wirewatch key list`);
}

/** @throws Refused `failed` as {@link addKey}, and if the account is not that of the key, which never moves to another */
export const setKey = (db: Database, id: string, changes: Changes<KeyTerms & Pick<Key, 'account_id'>>): Key =>
  writing(db, () => {
    const found = getKey(db, id);
    if (changes.account_id !== undefined && changes.account_id !== found.account_id)
      throw failed(
        `key ${id} belongs to account ${found.account_id} and cannot be moved. To create a key for the other account, run: wirewatch key create --account ${changes.account_id}`,
      );
    db.prepare(UPDATE_KEY).run(columnsOf(changed(found, changes)));
    if (changes.subscriptions !== undefined) {
      db.prepare(DELETE_KEY_SUBSCRIPTIONS).run({ key_id: id });
      putSubscriptions(db, found, changes.subscriptions);
    }
    return getKey(db, id);
  });

/** The time of an earlier revocation stays. */
export const revokeKey = (db: Database, id: string, nowMs: number): Key =>
  writing(db, () => {
    db.prepare(UPDATE_REVOKED).run({ id, revoked_at: nowMs });
    return getKey(db, id);
  });

interface NewRotation extends Pick<NewKey, 'id' | 'prefix' | 'hash'> {
  /** How long the old key remains valid, in milliseconds, unless it ends before. */
  readonly overlapMs: number;
  /** The end of the new key; undefined: that of the old key, which must be after the overlap. */
  readonly expires_at: number | null | undefined;
}

/**
 * Adds a key with the same rights, and gives the old one an end.
 * @throws Refused `failed` unless it is active, and the new one works longer than the old one
 */
export function rotateKey(db: Database, id: string, rotation: NewRotation, nowMs: number) {
  const { overlapMs, expires_at, ...made } = rotation;
  return writing(db, () => {
    const found = getKey(db, id);
    const status = keyStatus(found, nowMs);
    if (status !== 'active')
      throw failed(
        `key ${id} is ${status}, so it cannot be rotated. To create a new key, run: wirewatch key create --account ${found.account_id}`,
      );
    const endMs = Math.min(found.expires_at ?? Number.POSITIVE_INFINITY, nowMs + overlapMs);
    const ends = expires_at === undefined ? found.expires_at : expires_at;
    // Also refuses, without a later end, to repeat a rotation whose answer was lost.
    if (ends !== null && ends <= endMs)
      throw failed(
        `key ${id} works until ${formatMs(endMs)}, and the new key would end by then: give it a later end, or none, with --expires, or the old key less time with --overlap. To see whether there is a new key already, run: wirewatch key list`,
      );
    const added = addKey(db, { ...found, ...made, expires_at: ends }, nowMs);
    return { added, old: setKey(db, id, { expires_at: endMs }) };
  });
}

export function keyStatus(key: Pick<Key, 'revoked_at' | 'expires_at'>, nowMs: number) {
  const { revoked_at, expires_at } = key;
  if (revoked_at !== null) return 'revoked';
  return expires_at !== null && nowMs >= expires_at ? 'expired' : 'active';
}

export function keyDocument(key: Key, nowMs: number) {
  return {
    id: key.id,
    name: key.name,
    account: key.account_id,
    scopes: key.scopes,
    subscriptions: key.subscriptions,
    expires_at: key.expires_at === null ? null : formatMs(key.expires_at),
    status: keyStatus(key, nowMs),
    revoked_at: key.revoked_at === null ? null : formatMs(key.revoked_at),
    allow_addresses: key.allow_addresses,
    daily_rows: key.daily_rows,
    created_at: formatMs(key.created_at),
  };
}

function putSubscriptions(db: Database, key: Pick<Key, 'id' | 'account_id'>, rights: Key['subscriptions']) {
  const insert = db.prepare(INSERT_KEY_SUBSCRIPTION);
  for (const { id, content_types } of rights) {
    const found = getSubscription(db, id);
    if (found.account_id !== key.account_id)
      throw failed(
        `subscription ${id} belongs to account ${found.account_id}, but the key belongs to account ${key.account_id}. A key can read only the subscriptions of its own account. To list them, run: wirewatch subscription list`,
      );
    const missing = content_types?.find((type) => !found.content_types.includes(type));
    if (missing !== undefined)
      throw failed(
        `subscription ${id} has only the content type ${found.content_types.join(', ')}, not ${missing}. To add it, run: wirewatch subscription set ${id} --content-types text,image`,
      );
    const types = content_types === null ? null : JSON.stringify(content_types);
    insert.run({ key_id: key.id, subscription_id: id, content_types: types });
  }
}

function columnsOf<Of extends Pick<KeyTerms, 'scopes' | 'allow_addresses'>>(key: Of) {
  const { scopes, allow_addresses } = key;
  return { ...key, scopes: JSON.stringify(scopes), allow_addresses: JSON.stringify(allow_addresses) };
}

/** The subscriptions as `key create --subscriptions` takes them, one by one. */
export const rightsOf = (subscriptions: readonly KeySubscription[]): string[] =>
  subscriptions.flatMap(
    ({ id, content_types }) => content_types?.map((type) => `${id}:${type}`) ?? [`${id}`],
  );
