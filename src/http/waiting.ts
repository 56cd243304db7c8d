/**
 * Requests that wait for the next change (`Prefer: wait=N`). Waiting costs a timer and no processor time; what wakes
 * them is the ingest thread's word that a transaction is visible.
 */
import type { Socket } from 'node:net';

/** How many are woken in one turn of the event loop: thousands at once would hold up every other request. */
const WOKEN_AT_ONCE = 50;

export interface Waiting {
  /**
   * @param socket of the client
   * @returns whether something changed; false when `ms` are over, the client is gone, or the server closes
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
  /** Those to wake in later turns. */
  let due: ((isChanged: boolean) => void)[] = [];
  let isClosed = false;

  function wakeSome(): void {
    // Each by itself: the rows of one answer are counted before another that shares its allowance is let in.
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
        // One that ends its side has mostly gone; if it only says that it has sent all, it is answered now.
        socket.once('close', leave).once('end', leave);
        waiters.add(wake);
      });
    },
    changed() {
      const isWaking = due.length > 0;
      // One that is due already is woken by that; one that began to wait since reads what is visible by then.
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
