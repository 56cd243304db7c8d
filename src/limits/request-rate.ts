/**
 * Requests a minute and key (contract: Limits), counted in memory.
 *
 * A window is fixed and begins with the first request that finds none running, so `reset` is exact: after it the
 * whole allowance is there again. A sliding window would be fairer at its edges, but its reset says only when the
 * next single request fits, and a client that waits for it runs into 429 again at once.
 */
import { BoundedMap } from '../bounded-map.ts';
import { SECOND_MS } from '../time.ts';
import { RATE_WINDOW_MS } from './contract-limits.ts';

/** What is told to the client (draft-ietf-httpapi-ratelimit-headers-06). */
export interface Rate {
  readonly allowed: boolean;
  readonly limit: number;
  readonly remaining: number;
  /** Seconds until the window ends, at least 1. */
  readonly reset_seconds: number;
}

export interface RequestRate {
  /** Counts one request of a key; a refused one counts for nothing, as the window does not move. */
  take(keyId: string, nowMs: number): Rate;
  /** Where a key stands now, counting nothing: for an answer that was waited for. */
  current(keyId: string, nowMs: number): Rate;
}

interface Window {
  readonly startMs: number;
  count: number;
}

/** Only keys that were verified are counted; still, what is kept is bounded. */
const KEYS_MAX = 10_000;

/** @param limit requests in a window */
export function createRequestRate(limit: number, keysMax = KEYS_MAX): RequestRate {
  const windows = new BoundedMap<string, Window>(keysMax);
  const told = ({ startMs, count }: Window, allowed: boolean, nowMs: number): Rate => ({
    allowed,
    limit,
    remaining: limit - count,
    reset_seconds: Math.max(1, Math.ceil((startMs + RATE_WINDOW_MS - nowMs) / SECOND_MS)),
  });
  return {
    take(keyId, nowMs) {
      let window = windows.get(keyId);
      if (window === undefined || !isRunning(window, nowMs)) {
        window = { startMs: nowMs, count: 0 };
        windows.set(keyId, window);
      }
      const allowed = window.count < limit;
      if (allowed) window.count += 1;
      return told(window, allowed, nowMs);
    },
    current(keyId, nowMs) {
      const window = windows.get(keyId);
      const isOver = window === undefined || !isRunning(window, nowMs);
      return told(isOver ? { startMs: nowMs, count: 0 } : window, true, nowMs);
    },
  };
}

/** A window that begins in the future belongs to a clock that was set back: it would never end. */
function isRunning(window: Window, nowMs: number): boolean {
  return nowMs >= window.startMs && nowMs < window.startMs + RATE_WINDOW_MS;
}
