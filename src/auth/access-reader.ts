/**
 * Reads keys, with their accounts and subscriptions, from `access.db` for every request: revoking a key or suspending
 * an account takes effect with the next request.
 *
 * A proven key is cached until anything is committed to the store, for which SQLite is asked at every request. A wrong
 * secret takes exactly the same steps for a cached key, a stored one and an unknown id, so the response time does not
 * reveal which ids exist.
 *
 * The file is opened on first use, after every failure, and when its path holds another file or its content was
 * checkpointed: otherwise a removed or overwritten database would be served from an open handle and from memory.
 */
import { statSync } from 'node:fs';
import { BoundedMap } from '../bounded-map.ts';
import type { ContentType } from '../detection/content-type.ts';
import { Refused } from '../refused.ts';
import { type Database, openDatabase } from '../store/database.ts';
import type { Account } from './accounts.ts';
import type { Key } from './keys.ts';
import { readAccessState } from './spare-copy.ts';
import type { Subscription } from './subscriptions.ts';

export interface StoredKey extends Omit<Key, 'account_id' | 'subscriptions' | 'created_at'> {
  /** SHA-256 of the complete key. */
  readonly hash: Uint8Array;
  /** The key's first part, needed to check a secret that comes without it. */
  readonly prefix: string;
  readonly account: Omit<Account, 'print_metadata'>;
  /**
   * By id, with the types that the key can read: if it names some, those of them that the subscription still has, perhaps
   * none.
   */
  readonly subscriptions: readonly Pick<Subscription, 'id' | 'name' | 'time_zone' | 'content_types'>[];
}

export type KeyProof = Pick<StoredKey, 'hash' | 'prefix'>;

export type AccessReader = ReturnType<typeof createAccessReader>;

type JsonColumn = 'scopes' | 'allow_addresses' | 'account' | 'subscriptions';
type Row = Omit<StoredKey, 'id' | JsonColumn> & Readonly<Record<JsonColumn, string>>;

const HASH_BYTES = 32;
const KEYS_MAX = 1000;

/** Returns a row for an unknown id too, that of another key, which is not used: otherwise it would take half the time. */
export const SELECT_PROOF = `
  SELECT k.id = :id AS is_asked, k.hash, k.prefix FROM api_key k
  WHERE k.rowid = max(coalesce((SELECT rowid FROM api_key WHERE id = :id), 0), (SELECT min(rowid) FROM api_key))`;

/** In place of an unknown key. */
const NO_KEY: KeyProof = { prefix: 'ww', hash: Buffer.alloc(HASH_BYTES) };

/** Id, name, time zone, the subscription's types, the key's own types. */
type SubscriptionParts = [number, string | null, string, ContentType[], ContentType[] | null];

/** One statement, for one snapshot. Joins at the top level would take five times as long as these subqueries. */
export const SELECT_KEY_FOR_REQUEST = `
  SELECT k.name, k.hash, k.prefix, k.scopes, k.expires_at, k.revoked_at, k.allow_addresses, k.daily_rows,
    (SELECT json_object('id', a.id, 'name', a.name, 'daily_rows', a.daily_rows, 'suspended_at', a.suspended_at,
        'created_at', a.created_at)
      FROM account a WHERE a.id = k.account_id) AS account,
    (SELECT json_group_array(
        json_array(s.id, s.name, s.time_zone, json(s.content_types), json(ks.content_types)) ORDER BY s.id)
      FROM api_key_subscription ks
      JOIN subscription s ON s.id = ks.subscription_id AND s.account_id = k.account_id
      WHERE ks.key_id = k.id) AS subscriptions
  FROM api_key k
  WHERE k.id = :id`;

type OpenStore = ReturnType<typeof openStore>;

/** @param path of access.db, which need not exist yet */
export function createAccessReader(path: string) {
  let store: OpenStore | null = null;

  function close(): void {
    const closing = store;
    store = null;
    closing?.db.close();
  }

  function reading<T>(read: (from: OpenStore) => T): T {
    try {
      const found = fileState(path);
      if (store !== null && store.fileState !== found) close();
      store ??= openStore(path, found);
      return read(store);
    } catch (error) {
      close();
      throw unavailable(error);
    }
  }

  return {
    /**
     * The key with this id, if the presented credential proves it; null for a wrong secret and for an unknown id.
     * @param proves called even if there is no such key; must take the same time for every key
     * @throws Refused `unavailable` if the store cannot be read now, as the other methods do
     */
    findKey: (keyId: string, proves: (key: KeyProof) => boolean): StoredKey | null =>
      reading((from) => {
        const cached = cachedKeys(from).get(keyId);
        // Also called for NO_KEY: a wrong secret takes the same steps whether its key is cached, stored or unknown.
        if (proves(cached ?? NO_KEY) && cached !== undefined) return cached;
        const proof = readProof(from, keyId);
        return proves(proof ?? NO_KEY) && proof !== null ? readKey(from, keyId, proof) : null;
      }),
    hasKey: (keyId: string) => reading((from) => readProof(from, keyId) !== null),
    /** @throws Refused `unavailable` if keys cannot be read now */
    check: () => void reading((from) => readProof(from, '')),
    read: <T>(use: (db: Database) => T) => reading(({ db }) => use(db)),
    /** The number of the last change of accounts, subscriptions and keys. */
    change: () => reading(({ db }) => readAccessState(db)?.change ?? 0),
    close,
  };
}

export const unavailable = (cause: unknown): Refused =>
  new Refused('unavailable', 'Credentials cannot be verified right now. Try again later.', { cause });

function readProof({ selectProof }: OpenStore, id: string): KeyProof | null {
  const row = selectProof.get({ id });
  if (row === undefined || row.is_asked === 0) return null;
  if (row.hash.byteLength !== HASH_BYTES) throw new Error(`the stored hash of key ${id} is damaged`);
  return row;
}

/** The keys proven since the last commit to the store. */
function cachedKeys(store: OpenStore): Map<string, StoredKey> {
  const version = store.selectVersion.get();
  if (version === undefined) throw new Error('SQLite did not return a data version');
  if (version !== store.keysVersion) store.keys.clear();
  store.keysVersion = version;
  return store.keys;
}

/** @param proof as proven: if the key was replaced since, under the same id, it was not proven */
function readKey(store: OpenStore, keyId: string, proof: KeyProof): StoredKey | null {
  const row = store.select.get({ id: keyId });
  if (row === undefined || Buffer.compare(row.hash, proof.hash) !== 0) return null;
  const subscriptions: SubscriptionParts[] = JSON.parse(row.subscriptions);
  const key: StoredKey = {
    ...row,
    id: keyId,
    scopes: JSON.parse(row.scopes),
    allow_addresses: JSON.parse(row.allow_addresses),
    account: JSON.parse(row.account),
    subscriptions: subscriptions.map(([id, name, time_zone, types, keyTypes]) => ({
      id,
      name,
      time_zone,
      content_types: keyTypes === null ? types : types.filter((type) => keyTypes.includes(type)),
    })),
  };
  // A commit between the two reads is part of this key, and changes the version for the next request.
  store.keys.set(keyId, key);
  return key;
}

/** Changes when the path holds another file, or pages were written to this one. */
function fileState(path: string): string {
  const { dev, ino, size, mtimeMs } = statSync(path);
  // Opening an empty file, even for reading, makes SQLite delete the write-ahead log beside it, and with it the last
  // commits of the database that somebody is about to restore.
  if (size === 0) throw new Error(`${path} is empty`);
  return `${dev}:${ino}:${size}:${mtimeMs}`;
}

function openStore(path: string, fileState: string) {
  const db = openDatabase(path, 'read');
  try {
    return {
      db,
      select: db.prepare<{ id: string }, Row>(SELECT_KEY_FOR_REQUEST),
      selectProof: db.prepare<{ id: string }, KeyProof & { is_asked: number }>(SELECT_PROOF),
      /** Changes when another connection commits. */
      selectVersion: db.prepare<[], number>('PRAGMA data_version').pluck(),
      /** The cache, valid at `keysVersion`. */
      keys: new BoundedMap<string, StoredKey>(KEYS_MAX),
      keysVersion: 0,
      fileState,
    };
  } catch (error) {
    db.close();
    throw error;
  }
}
