/**
 * Reads from `access.db` what is needed to judge a request, fresh for every request: a key that is revoked, an
 * account that is suspended, is turned away from the next request on.
 *
 * A key that was proven and read is kept until anything is committed to the store, which SQLite is asked for every
 * request. A secret that is wrong takes exactly the same steps for a key that is kept, for one that is there and for one
 * that is not, so that the time of an answer does not tell which ids there are.
 *
 * The file is opened when it is first asked for, again after every failure, and again when another file stands
 * in its place or its content was checkpointed: without that a removed or overwritten database would be served
 * from an open handle and from pages in memory.
 */

import { statSync } from 'node:fs';
import { BoundedMap } from '../bounded-map.ts';
import type { ContentType } from '../detection/content-type.ts';
import { Refused } from '../refused.ts';
import { type Database, openDatabase, type Statement } from '../store/database.ts';
import type { Scope } from './scopes.ts';

/** A key with its account, as the store has them at this moment. Times are epoch milliseconds. */
export interface StoredKey {
  readonly id: string;
  readonly name: string;
  /** SHA-256 of the whole key. */
  readonly hash: Uint8Array;
  /** The key's first part, needed to check a secret that comes without it. */
  readonly prefix: string;
  readonly scopes: readonly Scope[];
  readonly expires_at: number | null;
  readonly revoked_at: number | null;
  readonly allow_addresses: readonly string[];
  readonly daily_rows: number | null;
  readonly account: {
    readonly id: string;
    readonly name: string;
    readonly daily_rows: number | null;
    readonly suspended_at: number | null;
    readonly created_at: number;
  };
  readonly subscriptions: readonly {
    readonly id: number;
    readonly name: string | null;
    readonly time_zone: string;
    /** What the key reads of it: where it names types, those of them that the subscription still has. */
    readonly content_types: readonly ContentType[];
  }[];
}

/** What a key is proven by. */
export type KeyProof = Pick<StoredKey, 'hash' | 'prefix'>;

export interface AccessReader {
  /**
   * The key of this id, if what was presented proves to be it; null for a wrong secret and for an unknown id alike.
   *
   * @param proves asked of every key, also where there is none: it must take as long whatever it is given
   * @throws Refused `unavailable` when the store cannot be read right now, for whatever reason
   */
  findKey(keyId: string, proves: (key: KeyProof) => boolean): StoredKey | null;
  /** @throws Refused `unavailable` when keys cannot be read right now */
  check(): void;
  /** Whether it could not be read at some moment of the last so many milliseconds. */
  hasFailedWithin(ms: number): boolean;
  close(): void;
}

interface Row {
  readonly name: string;
  readonly hash: Uint8Array;
  readonly prefix: string;
  readonly scopes: string;
  readonly expires_at: number | null;
  readonly revoked_at: number | null;
  readonly allow_addresses: string;
  readonly daily_rows: number | null;
  /** JSON, as are scopes, addresses and subscriptions. */
  readonly account: string;
  readonly subscriptions: string;
}

const HASH_BYTES = 32;
/** Keys that are kept read at most. */
const KEYS_MAX = 1000;

/** Differs when another connection has committed since. */
const SELECT_VERSION = 'PRAGMA data_version';

/**
 * Always a row, while there are keys at all: where this one is not there, that of another, which is not used. Without
 * that an unknown id would take half the time.
 */
export const SELECT_PROOF = `
  SELECT k.id = :id AS is_asked, k.hash, k.prefix FROM api_key k
  WHERE k.rowid = max(coalesce((SELECT rowid FROM api_key WHERE id = :id), 0), (SELECT min(rowid) FROM api_key))`;

/** Stands in for a key that is not there. */
const NO_KEY: KeyProof = { prefix: 'ww', hash: Buffer.alloc(HASH_BYTES) };

/** Id, name, time zone, the subscription's types, the key's own types. */
type SubscriptionParts = [number, string | null, string, ContentType[], ContentType[] | null];

/**
 * One statement, so that everything it tells is of one moment. Account and subscriptions are scalar subqueries:
 * joined at the top level the same rows took five times as long (25 instead of 5 microseconds).
 */
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

interface OpenStore {
  readonly db: Database;
  readonly select: Statement<Row>;
  readonly selectProof: Statement<KeyProof & { is_asked: number }>;
  readonly selectVersion: Statement<number>;
  /** Keys as they were at {@link keysVersion}. */
  readonly keys: Map<string, StoredKey>;
  keysVersion: number;
  /** What {@link fileState} was when it was opened. */
  readonly fileState: string;
}

/** @param path of access.db, which need not be there yet */
export function createAccessReader(path: string): AccessReader {
  let store: OpenStore | null = null;
  let failedAtMs = Number.NEGATIVE_INFINITY;

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
      failedAtMs = performance.now();
      throw unavailable(error);
    }
  }

  return {
    findKey(keyId, proves) {
      return reading((from) => {
        const kept = keptKeys(from).get(keyId);
        // Asked of nobody's key, too: a wrong secret takes the same steps whether its key is kept, there, or neither.
        if (proves(kept ?? NO_KEY) && kept !== undefined) return kept;
        const proof = readProof(from, keyId);
        return proves(proof ?? NO_KEY) && proof !== null ? readKey(from, keyId, proof) : null;
      });
    },
    check: () => void reading((from) => readProof(from, '')),
    hasFailedWithin: (ms) => performance.now() - failedAtMs <= ms,
    close,
  };
}

export function unavailable(cause: unknown): Refused {
  return new Refused('unavailable', 'Credentials cannot be verified right now. Try again later.', { cause });
}

function readProof({ selectProof }: OpenStore, id: string): KeyProof | null {
  const row = selectProof.get({ id });
  if (row === undefined || row.is_asked === 0) return null;
  if (row.hash.byteLength !== HASH_BYTES) throw new Error(`the stored hash of key ${id} is damaged`);
  return row;
}

/** Keys that were proven and read since anything was last committed to the store. */
function keptKeys(store: OpenStore): Map<string, StoredKey> {
  const version = store.selectVersion.get();
  if (version === undefined) throw new Error('SQLite did not return a data version');
  if (version !== store.keysVersion) store.keys.clear();
  store.keysVersion = version;
  return store.keys;
}

/** @param proof as it was proven: a key that is another by now, under the same id, was not */
function readKey(store: OpenStore, keyId: string, proof: KeyProof): StoredKey | null {
  const row = store.select.get({ id: keyId });
  if (row === undefined || Buffer.compare(row.hash, proof.hash) !== 0) return null;
  const key = storedKey(keyId, row);
  // What was committed between the two readings is in the key, and the next version tells of it.
  store.keys.set(keyId, key);
  return key;
}

/** Differs when another file stands at the path, or pages were written to this one. */
function fileState(path: string): string {
  const { dev, ino, size, mtimeMs } = statSync(path);
  // Opened, even for reading, an empty file makes SQLite delete the log beside it: what was committed last would
  // be lost to the database that somebody is about to restore.
  if (size === 0) throw new Error(`${path} is empty`);
  return `${dev}:${ino}:${size}:${mtimeMs}`;
}

function openStore(path: string, fileState: string): OpenStore {
  const db = openDatabase(path, 'read');
  try {
    return {
      db,
      select: db.prepare<{ id: string }, Row>(SELECT_KEY_FOR_REQUEST),
      selectProof: db.prepare<{ id: string }, KeyProof & { is_asked: number }>(SELECT_PROOF),
      selectVersion: db.prepare<[], number>(SELECT_VERSION).pluck(),
      keys: new BoundedMap(KEYS_MAX),
      keysVersion: 0,
      fileState,
    };
  } catch (error) {
    db.close();
    throw error;
  }
}

function storedKey(id: string, row: Row): StoredKey {
  const subscriptions: SubscriptionParts[] = JSON.parse(row.subscriptions);
  return {
    id,
    name: row.name,
    hash: row.hash,
    prefix: row.prefix,
    scopes: JSON.parse(row.scopes),
    expires_at: row.expires_at,
    revoked_at: row.revoked_at,
    allow_addresses: JSON.parse(row.allow_addresses),
    daily_rows: row.daily_rows,
    account: JSON.parse(row.account),
    subscriptions: subscriptions.map(([id, name, time_zone, types, keyTypes]) => ({
      id,
      name,
      time_zone,
      content_types: keyTypes === null ? types : types.filter((type) => keyTypes.includes(type)),
    })),
  };
}
