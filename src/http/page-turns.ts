/**
 * Whose page is read next. A page takes milliseconds, and the system hands over one new connection in each turn of the
 * event loop: if a turn read a page for everybody who asks, a hundred requests would keep all others waiting for
 * seconds. So one turn reads for a moment only, from one queue in which each key has its place, however much it asks
 * for. What is no page never queues.
 */
import { Refused } from '../refused.ts';

/** Requests of one key whose page is not read yet. */
export const PAGES_PER_KEY_MAX = 100;
/** The same of all keys, as a share of `server.max_connections`. */
const PAGES_SHARE = 1 / 4;
/** Longer than a small page, so that a turn can read many of these, and shorter than a large one. */
const TURN_MS = 1;
/** Turns without a page while connections arrive: pages are read, too, when they never stop arriving. */
const ARRIVALS_MAX = 100;

type Asking = Pick<PromiseWithResolvers<void>, 'resolve' | 'reject'>;

export type PageTurns = ReturnType<typeof createPageTurns>;

/** @param connectionsMax that are open at once */
export function createPageTurns(connectionsMax: number) {
  const pagesMax = Math.ceil(connectionsMax * PAGES_SHARE);
  /** By key, in the order of their turns; none is empty. */
  const queues = new Map<string, Asking[]>();
  let size = 0;
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
    size -= 1;
    first?.resolve();
    isRunning = size > 0;
    if (!isRunning) return;
    // A tick that is asked for in a microtask comes after all others: by then the page is read, and its rows counted.
    queueMicrotask(() => process.nextTick(goOn, endMs));
  }

  function goOn(endMs: number): void {
    if (performance.now() < endMs) readOne(endMs);
    else setImmediate(turn);
  }

  /** @returns the key with most requests; the given one where none has more */
  function busiest(keyId: string): string {
    let [found, most] = [keyId, queues.get(keyId)?.length ?? 0];
    for (const [other, { length }] of queues) if (length > most) [found, most] = [other, length];
    return found;
  }

  /** Refuses the newest request of a key. */
  function refuseNewest(keyId: string): void {
    const queue = queues.get(keyId) ?? [];
    queue.pop()?.reject(tooMany());
    if (queue.length === 0) queues.delete(keyId);
    size -= 1;
  }

  return {
    /**
     * Resolves when the caller may read one page.
     * @throws Refused `rate_limited`, also later: with too many requests in all, those of the key that has most are refused
     */
    take(keyId: string): Promise<void> {
      if ((queues.get(keyId)?.length ?? 0) >= PAGES_PER_KEY_MAX) throw tooMany();
      if (size >= pagesMax) {
        const other = busiest(keyId);
        if (other === keyId) throw tooMany();
        refuseNewest(other);
      }
      const asking = Promise.withResolvers<void>();
      const queue = queues.get(keyId);
      if (queue === undefined) queues.set(keyId, [asking]);
      else queue.push(asking);
      size += 1;
      if (!isRunning) setImmediate(turn);
      isRunning = true;
      return asking.promise;
    },
    /** A connection was accepted: others may follow, and have their requests read before the next page. */
    arrived() {
      hasArrived = true;
    },
  };
}

function tooMany(): Refused {
  return new Refused(
    'rate_limited',
    'Too many requests for pages at once. Send the next one when the answer to the one before is there.',
  );
}
