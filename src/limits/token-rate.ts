/**
 * Requests a minute to the token endpoint, per address and per client id (contract: Limits), counted in memory.
 *
 * Both are counted before anything is verified, and whoever asks can choose a client id, and within an IPv6 network
 * the address: so a network of 64 bits counts as one address, and what is kept is bounded.
 *
 * A client id is public. So that nobody who knows one can use up what its owner may ask, it has two windows: one for
 * the networks that proved the key lately, one for all others.
 */
import { addressNetwork } from '../addresses.ts';
import { createRequestRate, type RequestRate } from './request-rate.ts';
import type { UnseenKeyIds } from './unseen-key-ids.ts';

export interface TokenRate {
  /** Counts a request. @returns seconds to wait, at least 1; null when it may go on */
  takeAddress(address: string, nowMs: number): number | null;
  takeClient(clientId: string, address: string, nowMs: number): number | null;
  /** The request that was counted last for this client id had the right secret. */
  markProven(clientId: string, address: string, nowMs: number): void;
}

/** @param limit requests in a window, for each; @param seen which networks proved a key, with a token or the key itself */
export function createTokenRate(limit: number, seen: Pick<UnseenKeyIds, 'isSeen' | 'markSeen'>): TokenRate {
  const addresses = createRequestRate(limit);
  const owners = createRequestRate(limit);
  const strangers = createRequestRate(limit);
  return {
    takeAddress: (address, nowMs) => secondsToWait(addresses, addressNetwork(address), nowMs),
    takeClient(clientId, address, nowMs) {
      const clients = seen.isSeen(clientId, address, nowMs) ? owners : strangers;
      return secondsToWait(clients, clientId, nowMs);
    },
    markProven(clientId, address, nowMs) {
      // It was counted with the others: the owner has no request more for that.
      if (!seen.isSeen(clientId, address, nowMs)) owners.take(clientId, nowMs);
      seen.markSeen(clientId, address, nowMs);
    },
  };
}

function secondsToWait(rate: RequestRate, name: string, nowMs: number): number | null {
  const { allowed, reset_seconds } = rate.take(name, nowMs);
  return allowed ? null : reset_seconds;
}
