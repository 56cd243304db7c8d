/**
 * Requests per minute, counted in memory: by key, address or client id. Each window begins with the first request after
 * the previous one, so `reset` is exact, and after it the full allowance is available.
 */
import { addressNetwork } from '../addresses.ts';
import { BoundedMap } from '../bounded-map.ts';
import { counted } from '../counted.ts';
import { Refused } from '../refused.ts';
import { SECOND_MS } from '../time.ts';
import { RATE_WINDOW_MS } from './api-limits.ts';
import type { SeenKeys } from './key-uses.ts';

/** The state shown to clients (draft-ietf-httpapi-ratelimit-headers-06). */
export type Rate = ReturnType<typeof rateOf>;

export const rateLimited = ({ limit, reset_seconds }: Rate): Refused =>
  tooMany(`This key is limited to ${counted(limit, 'request')} per minute`, reset_seconds);

/** @param what as a sentence without its end; @param seconds to wait, at least 1 */
export function tooMany(what: string, seconds: number): Refused {
  const detail = `${what}. Retry in ${counted(seconds, 'second')}.`;
  return new Refused('rate_limited', detail, { retryAfterSeconds: seconds });
}

type Window = { readonly startMs: number; count: number };

/** `reset_seconds`: until the window ends, at least 1. */
function rateOf({ startMs, count }: Window, limit: number, allowed: boolean, nowMs: number) {
  const reset_seconds = Math.max(1, Math.ceil((startMs + RATE_WINDOW_MS - nowMs) / SECOND_MS));
  return { allowed, limit, remaining: limit - count, reset_seconds };
}

/** Clients choose addresses and client ids, so the number of windows is bounded. */
const NAMES_MAX = 10_000;

/** @param limit requests in a window */
export function createRequestRate(limit: number) {
  const windows = new BoundedMap<string, Window>(NAMES_MAX);

  /** The running window, or a new one. One that begins in the future is from before the clock was set back. */
  function windowOf(name: string, nowMs: number): Window {
    const window = windows.get(name);
    const isRunning = window && nowMs >= window.startMs && nowMs < window.startMs + RATE_WINDOW_MS;
    return isRunning ? window : { startMs: nowMs, count: 0 };
  }

  function take(name: string, nowMs: number): Rate {
    const window = windowOf(name, nowMs);
    if (window.count === 0) windows.set(name, window);
    const allowed = window.count < limit;
    if (allowed) window.count += 1;
    return rateOf(window, limit, allowed, nowMs);
  }

  return {
    take,
    /** Counts a request like `take`. @returns seconds to wait, at least 1; null if it is allowed */
    secondsToWait(name: string, nowMs: number): number | null {
      const { allowed, reset_seconds } = take(name, nowMs);
      return allowed ? null : reset_seconds;
    },
    /** The state without counting a request, for the response to a long poll. */
    current: (name: string, nowMs: number) => rateOf(windowOf(name, nowMs), limit, true, nowMs),
  };
}

/** Appends names and values in turn, as `response.writeHead` takes them: the common answer allocates nothing else. */
export function pushRateLimitHeaders(headers: string[], { limit, remaining, reset_seconds }: Rate): void {
  headers.push('RateLimit-Limit', `${limit}`, 'RateLimit-Policy', `${limit};w=${RATE_WINDOW_MS / SECOND_MS}`);
  headers.push('RateLimit-Remaining', `${remaining}`, 'RateLimit-Reset', `${reset_seconds}`);
}

/**
 * Limits requests for tokens. A client id is public: so that others cannot use up the limit of its owner, it has two
 * windows, one for networks that proved the key recently, and one for all others.
 * @param limit requests per window; @param seen the networks that proved a key
 */
export function createTokenRate(limit: number, seen: Pick<SeenKeys, 'isSeen' | 'markSeen'>) {
  const addresses = createRequestRate(limit);
  const owners = createRequestRate(limit);
  const strangers = createRequestRate(limit);
  return {
    /** Counts a request. @returns seconds to wait, at least 1; null if it is allowed */
    takeAddress: (address: string, nowMs: number) => addresses.secondsToWait(addressNetwork(address), nowMs),
    takeClient(clientId: string, address: string, nowMs: number): number | null {
      const clients = seen.isSeen(clientId, address, nowMs) ? owners : strangers;
      return clients.secondsToWait(clientId, nowMs);
    },
    /**
     * Call when the last request counted for this client id had the right secret. @returns seconds to wait, at least 1, if
     * the owner has used up the limit from other networks; null if it is allowed
     */
    takeProven(clientId: string, address: string, nowMs: number): number | null {
      const isCounted = seen.isSeen(clientId, address, nowMs);
      seen.markSeen(clientId, address, nowMs);
      return isCounted ? null : owners.secondsToWait(clientId, nowMs);
    },
  };
}
