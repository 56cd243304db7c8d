/**
 * Whose page is read next. A page takes milliseconds, and the system hands over one new connection in each turn of the
 * event loop. So one turn reads for a moment only, from one queue in which each key has its place, however much it asks
 * for. A connection has one request in it, so `max_connections` bounds it.
 */

/** Longer than a small page, so that a turn can read many of these, and shorter than a large one. */
const TURN_MS = 1;
/** Turns without a page while connections arrive: pages are read, too, when they never stop arriving. */
const ARRIVALS_MAX = 100;

export function createPageTurns() {
  /** By key, in the order of their turns; none is empty. */
  const queues = new Map<string, (() => void)[]>();
  let isRunning = false;
  let hasArrived = false;
  let postponed = 0;

  function turn(): void {
    postponed = hasArrived && postponed < ARRIVALS_MAX ? postponed + 1 : 0;
    hasArrived = false;
    if (postponed > 0) setImmediate(turn);
    else readOne(performance.now() + TURN_MS);
  }

  function readOne(endMs: number): void {
    const [keyId = '', queue = []] = queues.entries().next().value ?? [];
    const first = queue.shift();
    // Behind those of the others.
    queues.delete(keyId);
    if (queue.length > 0) queues.set(keyId, queue);
    first?.();
    isRunning = queues.size > 0;
    if (!isRunning) return;
    // A tick that is asked for in a microtask comes after all others: by then the page is read, and its rows counted.
    queueMicrotask(() => process.nextTick(goOn, endMs));
  }

  function goOn(endMs: number): void {
    if (performance.now() < endMs) readOne(endMs);
    else setImmediate(turn);
  }

  return {
    /** Resolves when the caller may read one page. */
    take(keyId: string): Promise<void> {
      const { promise, resolve } = Promise.withResolvers<void>();
      const queue = queues.get(keyId);
      if (queue === undefined) queues.set(keyId, [resolve]);
      else queue.push(resolve);
      if (!isRunning) setImmediate(turn);
      isRunning = true;
      return promise;
    },
    /** A connection was accepted: others may follow, and have their requests read before the next page. */
    arrived() {
      hasArrived = true;
    },
  };
}
