/**
 * Limits requests with key ids that an address has not used recently (contract: Authentication, 6): guessing keys does
 * not reach the database.
 *
 * A key id that was proven from an address within a day is not counted there, so clients that share the address with a
 * guesser keep working. Counted in memory: after a start every key is unseen once.
 */
import { addressNetwork } from '../addresses.ts';
import { BoundedMap } from '../bounded-map.ts';
import { DAY_MS } from '../time.ts';
import { createRequestRate } from './request-rate.ts';

export interface UnseenKeyIds {
  /** Counts a request that claims a key id. @returns seconds to wait, at least 1; null if it is allowed */
  take(keyId: string, address: string, nowMs: number): number | null;
  /** Whether the key was proven from the network of this address within a day. */
  isSeen(keyId: string, address: string, nowMs: number): boolean;
  /** Call when the key was proven from this address. */
  markSeen(keyId: string, address: string, nowMs: number): void;
}

/** How long a key id counts as seen after its last proof. */
const SEEN_MS = DAY_MS;
/** Pairs of network and key id. Each needs a valid key, so only large installations reach this. */
const SEEN_MAX = 50_000;

/** @param limit requests per minute and address; an IPv6 network of 64 bits counts as one */
export function createUnseenKeyIds(limit: number, seenMax = SEEN_MAX): UnseenKeyIds {
  const attempts = createRequestRate(limit);
  /** The time of the last proof. */
  const seen = new BoundedMap<string, number>(seenMax);

  function isSeen(keyId: string, address: string, nowMs: number): boolean {
    const lastMs = seen.get(pairOf(addressNetwork(address), keyId));
    // A time far ahead is from before the clock was set back.
    return lastMs !== undefined && Math.abs(nowMs - lastMs) < SEEN_MS;
  }

  return {
    take(keyId, address, nowMs) {
      if (isSeen(keyId, address, nowMs)) return null;
      return attempts.secondsToWait(addressNetwork(address), nowMs);
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
