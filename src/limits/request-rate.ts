/**
 * Requests per minute, counted in memory by key, address or client id.
 *
 * The windows are fixed: each begins with the first request after the previous one, so `reset` is exact, and after it
 * the full allowance is available. With a sliding window, a client that waited for the reset could send one request, and
 * would get 429 for the next.
 */
import { BoundedMap } from '../bounded-map.ts';
import { SECOND_MS } from '../time.ts';
import { RATE_WINDOW_MS } from './contract-limits.ts';

/** The state shown to clients (draft-ietf-httpapi-ratelimit-headers-06). */
export interface Rate {
  readonly allowed: boolean;
  readonly limit: number;
  readonly remaining: number;
  /** Seconds until the window ends, at least 1. */
  readonly reset_seconds: number;
}

export interface RequestRate {
  /** Counts one request, unless it is refused. */
  take(name: string, nowMs: number): Rate;
  /** As {@link take}, as seconds to wait, at least 1; null if the request is allowed. */
  secondsToWait(name: string, nowMs: number): number | null;
  /** The state without counting a request, for the response to a long poll. */
  current(name: string, nowMs: number): Rate;
}

interface Window {
  readonly startMs: number;
  count: number;
}

/** Clients choose addresses and client ids, so the number of windows is bounded. */
const NAMES_MAX = 10_000;

/** @param limit requests in a window */
export function createRequestRate(limit: number, namesMax = NAMES_MAX): RequestRate {
  const windows = new BoundedMap<string, Window>(namesMax);
  const rateOf = ({ startMs, count }: Window, allowed: boolean, nowMs: number): Rate => ({
    allowed,
    limit,
    remaining: limit - count,
    reset_seconds: Math.max(1, Math.ceil((startMs + RATE_WINDOW_MS - nowMs) / SECOND_MS)),
  });
  const rate: RequestRate = {
    take(name, nowMs) {
      let window = windows.get(name);
      if (window === undefined || !isRunning(window, nowMs)) {
        window = { startMs: nowMs, count: 0 };
        windows.set(name, window);
      }
      const allowed = window.count < limit;
      if (allowed) window.count += 1;
      return rateOf(window, allowed, nowMs);
    },
    secondsToWait(name, nowMs) {
      const { allowed, reset_seconds } = rate.take(name, nowMs);
      return allowed ? null : reset_seconds;
    },
    current(name, nowMs) {
      const window = windows.get(name);
      const isOver = window === undefined || !isRunning(window, nowMs);
      return rateOf(isOver ? { startMs: nowMs, count: 0 } : window, true, nowMs);
    },
  };
  return rate;
}

/** Appends names and values in turn, as `response.writeHead` takes them: the common answer allocates nothing else. */
export function pushRateLimitHeaders(headers: string[], { limit, remaining, reset_seconds }: Rate): void {
  headers.push('RateLimit-Limit', `${limit}`, 'RateLimit-Policy', `${limit};w=${RATE_WINDOW_MS / SECOND_MS}`);
  headers.push('RateLimit-Remaining', `${remaining}`, 'RateLimit-Reset', `${reset_seconds}`);
}

/** A window that begins in the future is from before the clock was set back: it would never end. */
function isRunning(window: Window, nowMs: number): boolean {
  return nowMs >= window.startMs && nowMs < window.startMs + RATE_WINDOW_MS;
}
