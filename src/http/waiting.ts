/**
 * Requests that wait for the next change (`Prefer: wait=N`, or as an event stream); the ingest thread wakes them when a
 * transaction is visible. Each holds a connection, so their number is bounded.
 */
import type { Socket } from 'node:net';
import { monotonicMs } from '../clock.ts';
import { WAIT_SECONDS_MAX } from '../limits/api-limits.ts';

/** Requests of one key that wait for a change. */
export const WAITS_PER_KEY_MAX = 50;
/** The same of all keys, as a share of `server.max_connections`. */
export const WAITS_SHARE = 1 / 2;

type Waiter = Readonly<{ keyId: string; changed: () => void; end: () => void }>;

export type Waiting = ReturnType<typeof createWaiting>;

/** @param connectionsMax that are open at once */
export function createWaiting(connectionsMax: number) {
  const waitsMax = Math.ceil(connectionsMax * WAITS_SHARE);
  /** The oldest first. */
  const waiters = new Set<Waiter>();
  /** Sockets of the requests that have seen every change so far. */
  const idle = new Set<Socket>();
  let isClosed = false;

  function makeRoom(keyId: string): void {
    const own = [...waiters].filter((waiter) => waiter.keyId === keyId);
    if (own.length >= WAITS_PER_KEY_MAX) own[0]?.end();
    const [oldest] = waiters;
    if (waiters.size >= waitsMax) oldest?.end();
  }

  return {
    /**
     * Begins the wait of a request; a `using` declaration ends it. If too many wait, of its key or in all, the oldest
     * of them is over. @param ms null: until the client goes
     */
    begin(keyId: string, ms: number | null, socket: Socket) {
      const endMs = monotonicMs() + (ms ?? Number.POSITIVE_INFINITY);
      let isOver = false;
      let wake: ((isChanged: boolean) => void) | null = null;
      const settle = (isChanged: boolean) => {
        wake?.(isChanged);
        wake = null;
        idle.delete(socket);
      };
      const end = () => {
        isOver = true;
        waiters.delete(waiter);
        clearTimeout(timer);
        socket.removeListener('close', end).removeListener('end', end);
        settle(false);
      };
      const waiter = { keyId, changed: () => settle(true), end };
      const timer = ms === null ? undefined : setTimeout(end, ms);
      // A client that ends its side has usually gone; if not, it gets its answer now.
      socket.once('close', end).once('end', end);
      makeRoom(keyId);
      waiters.add(waiter);
      if (isClosed || socket.destroyed) end();
      return {
        /**
         * Resolves to true with the next change, and at the latest after `quietMs`.
         * @returns false once the time is over, the client is gone, others need the room, or the server closes
         */
        forChange: (quietMs?: number) => {
          const { promise, resolve } = Promise.withResolvers<boolean>();
          // The clock of a lab jumps, and its timers do not.
          if (isOver || monotonicMs() >= endMs) resolve(false);
          else {
            const quiet = quietMs === undefined ? undefined : setTimeout(waiter.changed, quietMs);
            wake = (isChanged) => {
              clearTimeout(quiet);
              resolve(isChanged);
            };
            idle.add(socket);
          }
          return promise;
        },
        [Symbol.dispose]: end,
      };
    },
    /** A transaction with changes is visible. */
    changed() {
      for (const waiter of waiters) waiter.changed();
    },
    /** Ends all waits, and those that begin later. */
    close() {
      isClosed = true;
      for (const waiter of [...waiters]) waiter.end();
    },
    count: () => waiters.size,
    /** Whether a request of the socket waits, and has seen every change so far. */
    isIdle: (socket: Socket) => idle.has(socket),
  };
}

/**
 * Reads the header `Prefer: wait=N` (RFC 7240, 4.3).
 * @returns whole seconds, 1 to {@link WAIT_SECONDS_MAX}; null without the preference, or for one that is not a number,
 *   which is ignored (RFC 7240, 2)
 */
export function preferredWaitSeconds(header: string | string[] | undefined): number | null {
  // A comma in a quoted text is part of it.
  for (const [preference] of (header ?? '').toString().matchAll(/(?:"[^"]*"|[^",])+/g)) {
    const [, seconds] = /^\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:;|$)/i.exec(preference) ?? [];
    // If a preference is repeated, the first counts (RFC 7240, 2).
    if (seconds !== undefined)
      return Number(seconds) === 0 ? null : Math.min(Number(seconds), WAIT_SECONDS_MAX);
  }
  return null;
}
