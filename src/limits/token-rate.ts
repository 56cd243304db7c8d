/**
 * Requests a minute to the token endpoint, per address and per client id (contract: Limits), counted in memory.
 *
 * Both are counted before anything is verified, and whoever asks can choose a client id, and within an IPv6 network
 * the address: so a network of 64 bits counts as one address, and what is kept is bounded.
 */
import { addressNetwork } from './address-network.ts';
import { createRequestRate, type RequestRate } from './request-rate.ts';

export interface TokenRate {
  /** Counts a request. @returns seconds to wait, at least 1; null when it may go on */
  takeAddress(address: string, nowMs: number): number | null;
  takeClient(clientId: string, nowMs: number): number | null;
}

/** @param limit requests in a window, for each */
export function createTokenRate(limit: number): TokenRate {
  const addresses = createRequestRate(limit);
  const clients = createRequestRate(limit);
  return {
    takeAddress: (address, nowMs) => secondsToWait(addresses, addressNetwork(address), nowMs),
    takeClient: (clientId, nowMs) => secondsToWait(clients, clientId, nowMs),
  };
}

function secondsToWait(rate: RequestRate, name: string, nowMs: number): number | null {
  const { allowed, reset_seconds } = rate.take(name, nowMs);
  return allowed ? null : reset_seconds;
}
