/**
 * Limits requests with key ids that an address has not used recently : guessing keys does
 * not reach the database.
 *
 * A key id that was proven from an address within a day is not counted there, so clients that share the address with a
 * guesser keep working.
 */
import { addressNetwork } from '../addresses.ts';
import { createRequestRate } from './request-rate.ts';
import { createSeenKeys, type SeenKeys } from './seen-keys.ts';

export interface UnseenKeyIds extends Pick<SeenKeys, 'isSeen' | 'markSeen'> {
  /** Counts a request that claims a key id. @returns seconds to wait, at least 1; null if it is allowed */
  take(keyId: string, address: string, nowMs: number): number | null;
}

/** @param limit requests per minute and address; an IPv6 network of 64 bits counts as one */
export function createUnseenKeyIds(limit: number, { isSeen, markSeen } = createSeenKeys()): UnseenKeyIds {
  const attempts = createRequestRate(limit);
  return {
    take: (keyId, address, nowMs) =>
      isSeen(keyId, address, nowMs) ? null : attempts.secondsToWait(addressNetwork(address), nowMs),
    isSeen,
    markSeen,
  };
}
