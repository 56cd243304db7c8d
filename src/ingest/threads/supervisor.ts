/**
 * Restarts the ingest thread after an error of access.db, until that can be read again. The new thread recovers as after a
 * crash.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { paced } from '../../pace.ts';
import { SECOND_MS } from '../../time.ts';
import { type IngestClient, type ReportedEvent, startIngest } from './ingest-client.ts';
import type { IngestSettings } from './ingest-messages.ts';

export interface Supervision {
  /** Whether the thread shall be started again after this fault. */
  readonly isPassing: (fault: Error) => boolean;
  /** Whether the cause is over, as far as can be seen from outside. */
  readonly isOver: () => boolean;
  readonly onInterrupted: (fault: Error) => void;
  readonly onResumed: () => void;
}

const CHECK_EVERY_MS = paced(SECOND_MS);
/** A thread that works for so long has resumed: damage that only it reads ends it at once again. */
const RESUMED_AFTER_MS = paced(10 * SECOND_MS);

/** @param thread for the first start; @returns a client: `ready` is of the first start, `ended` of the last */
export function superviseIngest(
  settings: IngestSettings,
  onEvent: (event: ReportedEvent) => void,
  { isPassing, isOver, onInterrupted, onResumed }: Supervision,
  thread: Worker,
): IngestClient {
  let isStopping = false;
  let current = startIngest(settings, onEvent, thread);
  const { ready } = current;

  /** @returns the fault that ended the thread for good; null when it was asked to end */
  async function last(): Promise<Error | null> {
    let fault = await current.ended;
    let isInterrupted = false;
    while (fault !== null && !isStopping && isPassing(fault)) {
      if (!isInterrupted) onInterrupted(fault);
      isInterrupted = true;
      do {
        await sleep(CHECK_EVERY_MS);
        if (isStopping) return null;
      } while (!isOver());
      current = startIngest(settings, onEvent);
      const { ready, ended } = current;
      const works = ready.then(() => sleep(RESUMED_AFTER_MS, true, { ref: false }));
      if (await Promise.race([works.catch(() => false), ended.then(() => false)])) {
        onResumed();
        isInterrupted = false;
      }
      fault = await ended;
    }
    return fault;
  }

  const ended = last();
  return {
    ready,
    ended,
    endLost: (cursor) => current.endLost(cursor),
    ask: (request, tell) => current.ask(request, tell),
    wake: () => current.wake(),
    rested: () => current.rested(),
    async stop() {
      isStopping = true;
      await current.stop();
      await ended;
    },
  };
}
