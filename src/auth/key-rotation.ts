/** Exchanging a key for a new one with the same rights, while the old one goes on for a while. */
import { Refused } from '../refused.ts';
import { type Database, writing } from '../store/database.ts';
import { addKey, getKey, type Key, keyStatus, type NewKey, setKey } from './keys.ts';

export interface Rotation {
  readonly added: Key;
  /** As it is afterwards. */
  readonly old: Key;
}

export interface RotationTerms {
  /** How long the old key goes on, in milliseconds; one that ends before keeps its end. */
  readonly overlapMs: number;
  /** When the new key ends; undefined: as the old one would have. */
  readonly expires_at: number | null | undefined;
}

/**
 * Adds a key with the terms of another, and gives that one an end: both or none.
 *
 * @throws Refused `failed` when there is no such key, or it has ended
 */
export function rotateKey(
  db: Database,
  id: string,
  made: Pick<NewKey, 'id' | 'prefix' | 'hash'>,
  { overlapMs, expires_at }: RotationTerms,
  nowMs: number,
): Rotation {
  return writing(db, () => {
    const found = getKey(db, id);
    const status = keyStatus(found, nowMs);
    if (status !== 'active') {
      throw new Refused(
        'failed',
        `key ${id} is ${status}, so it cannot be rotated. To create a new key, run: wirewatch key create --account ${found.account_id}`,
      );
    }
    const { account_id, name, scopes, subscriptions, allow_addresses, daily_rows } = found;
    const terms = { account_id, name, scopes, subscriptions, allow_addresses, daily_rows };
    const ends = expires_at === undefined ? found.expires_at : expires_at;
    const added = addKey(db, { ...made, ...terms, expires_at: ends }, nowMs);
    const endMs = Math.min(found.expires_at ?? Number.POSITIVE_INFINITY, nowMs + overlapMs);
    return { added, old: setKey(db, id, { expires_at: endMs }) };
  });
}
