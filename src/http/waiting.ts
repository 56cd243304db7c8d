/**
 * Requests that wait for the next change (`Prefer: wait=N`). Waiting costs a timer and no processor time; the ingest
 * thread wakes them when a transaction is visible.
 */
import type { Socket } from 'node:net';
import { WAIT_SECONDS_MAX } from '../limits/contract-limits.ts';

/** Woken in one turn of the event loop: thousands at once would delay every other request. */
const WOKEN_AT_ONCE = 50;

export interface Waiting {
  /**
   * @param socket of the client
   * @returns false after `ms`, or when the client is gone or the server closes
   */
  forChange(ms: number, socket: Socket): Promise<boolean>;
  /** A transaction with changes is visible. */
  changed(): void;
  /** Ends all waits, and those that begin later. */
  close(): void;
  count(): number;
}

export function createWaiting(): Waiting {
  const waiters = new Set<(isChanged: boolean) => void>();
  /** To wake in later turns. */
  let due: ((isChanged: boolean) => void)[] = [];
  let isClosed = false;

  function wakeSome(): void {
    // One by one: the rows of an answer must be counted before another request of the same allowance is checked.
    for (const wake of due.splice(0, WOKEN_AT_ONCE)) setImmediate(wake, true);
    if (due.length > 0) setImmediate(wakeSome);
  }

  return {
    forChange(ms, socket) {
      if (isClosed || socket.destroyed) return Promise.resolve(false);
      return new Promise((resolve) => {
        const wake = (isChanged: boolean) => {
          if (!waiters.delete(wake)) return;
          clearTimeout(timer);
          socket.removeListener('close', leave).removeListener('end', leave);
          resolve(isChanged);
        };
        const leave = () => wake(false);
        const timer = setTimeout(leave, ms);
        // A client that ends its side has usually gone; if not, it gets its answer now.
        socket.once('close', leave).once('end', leave);
        waiters.add(wake);
      });
    },
    changed() {
      const isWaking = due.length > 0;
      // Those that are due already are among them.
      due = [...waiters];
      if (!isWaking && due.length > 0) setImmediate(wakeSome);
    },
    close() {
      isClosed = true;
      for (const wake of [...waiters]) wake(false);
    },
    count: () => waiters.size,
  };
}

/**
 * Reads the header `Prefer: wait=N` (RFC 7240, 4.3).
 *
 * @param header repeated headers joined with commas, or as a list
 * @returns whole seconds, 1 to {@link WAIT_SECONDS_MAX}; null without the preference, or for one that is not a number,
 *   which is ignored (RFC 7240, 2)
 */
export function preferredWaitSeconds(header: string | string[] | undefined): number | null {
  const preferences = (typeof header === 'string' ? header : (header ?? []).join(',')).split(',');
  for (const preference of preferences) {
    const [, seconds] = /^\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:;|$)/i.exec(preference) ?? [];
    // Of a repeated preference the first counts (RFC 7240, 2).
    if (seconds !== undefined)
      return Number(seconds) === 0 ? null : Math.min(Number(seconds), WAIT_SECONDS_MAX);
  }
  return null;
}
