/**
 * Requests with key ids that an address has not used lately: so many a minute, then none before the minute is over
 * (contract: Authentication, 6). It stops those who try out keys before the database is asked for every one.
 *
 * A key id that was proven from an address within a day is not counted there: whoever shares an address with somebody
 * who guesses goes on working with the keys in use. Counted in memory, so after a start every key is new once.
 */
import { addressNetwork } from '../addresses.ts';
import { BoundedMap } from '../bounded-map.ts';
import { DAY_MS } from '../time.ts';
import { createRequestRate } from './request-rate.ts';

export interface UnseenKeyIds {
  /** Counts a request that claims a key id. @returns seconds to wait, at least 1; null when it may go on */
  take(keyId: string, address: string, nowMs: number): number | null;
  /** Whether the key was proven from this address, or its network, within a day. */
  isSeen(keyId: string, address: string, nowMs: number): boolean;
  /** The key was proven: from now on its id is known at this address. */
  markSeen(keyId: string, address: string, nowMs: number): void;
}

/** How long a key id counts as seen after it was last proven. */
const SEEN_MS = DAY_MS;
/** Pairs of address and key id. Nobody gets one in without a good key, so this is reached by large installations only. */
const SEEN_MAX = 50_000;

/** @param limit requests in a minute, for each address; an IPv6 network of 64 bits is one */
export function createUnseenKeyIds(limit: number, seenMax = SEEN_MAX): UnseenKeyIds {
  const attempts = createRequestRate(limit);
  /** When each was last proven. */
  const seen = new BoundedMap<string, number>(seenMax);

  function isSeen(keyId: string, address: string, nowMs: number): boolean {
    const lastMs = seen.get(pairOf(addressNetwork(address), keyId));
    // A time far ahead is one of a clock that was set back since.
    return lastMs !== undefined && Math.abs(nowMs - lastMs) < SEEN_MS;
  }

  return {
    take(keyId, address, nowMs) {
      if (isSeen(keyId, address, nowMs)) return null;
      const { allowed, reset_seconds } = attempts.take(addressNetwork(address), nowMs);
      return allowed ? null : reset_seconds;
    },
    isSeen,
    markSeen(keyId, address, nowMs) {
      seen.set(pairOf(addressNetwork(address), keyId), nowMs);
    },
  };
}

function pairOf(network: string, keyId: string): string {
  return `${network} ${keyId}`;
}
