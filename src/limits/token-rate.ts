/**
 * Requests per minute to the token endpoint, by address and by client id, counted in memory before
 * anything is verified.
 *
 * A client id is public. So that others cannot use up the limit of its owner, it has two windows: one for networks that
 * proved the key recently, one for all others.
 */
import { addressNetwork } from '../addresses.ts';
import { createRequestRate } from './request-rate.ts';
import type { UnseenKeyIds } from './unseen-key-ids.ts';

export interface TokenRate {
  /** Counts a request. @returns seconds to wait, at least 1; null if it is allowed */
  takeAddress(address: string, nowMs: number): number | null;
  takeClient(clientId: string, address: string, nowMs: number): number | null;
  /** Call when the last request counted for this client id had the right secret. */
  markProven(clientId: string, address: string, nowMs: number): void;
}

/** @param limit requests per window; @param seen the networks that proved a key */
export function createTokenRate(limit: number, seen: Pick<UnseenKeyIds, 'isSeen' | 'markSeen'>): TokenRate {
  const addresses = createRequestRate(limit);
  const owners = createRequestRate(limit);
  const strangers = createRequestRate(limit);
  return {
    takeAddress: (address, nowMs) => addresses.secondsToWait(addressNetwork(address), nowMs),
    takeClient(clientId, address, nowMs) {
      const clients = seen.isSeen(clientId, address, nowMs) ? owners : strangers;
      return clients.secondsToWait(clientId, nowMs);
    },
    markProven(clientId, address, nowMs) {
      // It was counted with the others; count it for the owner as well.
      if (!seen.isSeen(clientId, address, nowMs)) owners.take(clientId, nowMs);
      seen.markSeen(clientId, address, nowMs);
    },
  };
}
