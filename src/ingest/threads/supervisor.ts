/**
 * Restarts the ingest thread after what passes: an error of access.db, until that can be read again, and damage of
 * detections.db, which the new thread makes anew from the log. The new thread recovers as after a crash.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { paced } from '../../pace.ts';
import { SECOND_MS } from '../../time.ts';
import { type Decide, type IngestClient, type ReportedEvent, startIngest } from './ingest-client.ts';
import type { IngestSettings } from './ingest-messages.ts';

/** A fault after which the thread is started again. */
export interface Passing {
  readonly isOver: () => boolean;
  readonly onInterrupted: () => void;
  /** How long the new thread must have worked, since it was ready, until the fault counts as over. */
  readonly worksMs: number;
  readonly onResumed: () => void;
}

const CHECK_EVERY_MS = paced(SECOND_MS);

/**
 * @param thread for the first start
 * @param passing what to do about a fault; null: it ends ingest
 * @returns a client: `ready` is of the first start, `ended` of the last; `interrupt` ends the thread as if it had failed,
 *   because of what another thread found
 */
export function superviseIngest(
  settings: IngestSettings,
  onEvent: (event: ReportedEvent) => void,
  decide: Decide,
  passing: (fault: Error) => Passing | null,
  thread: Worker,
): IngestClient & { readonly interrupt: (fault: Error) => void } {
  let isStopping = false;
  let interruption: Error | null = null;
  let current = startIngest(settings, onEvent, decide, thread);
  const { ready } = current;

  /** @returns the fault that ended the thread for good; null when it was asked to end */
  async function last(): Promise<Error | null> {
    let interrupted: string | null = null;
    for (;;) {
      const met = await current.ended;
      // What interrupted it must be made good, whatever it met while it stopped.
      const fault = interruption ?? met;
      const passes = fault === null || isStopping ? null : passing(fault);
      if (fault === null || passes === null) return isStopping ? null : fault;
      if (interrupted !== fault.message) passes.onInterrupted();
      interrupted = fault.message;
      do {
        await sleep(CHECK_EVERY_MS);
        if (isStopping) return null;
      } while (!passes.isOver());
      interruption = null;
      current = startIngest(settings, onEvent, decide);
      const { ended } = current;
      const works = current.ready.then(() => sleep(passes.worksMs, true, { ref: false }));
      if (await Promise.race([works.catch(() => false), ended.then(() => false)])) {
        passes.onResumed();
        interrupted = null;
      }
    }
  }

  const ended = last();
  return {
    ready,
    ended,
    endLost: (cursor) => current.endLost(cursor),
    ask: (request, tell) => current.ask(request, tell),
    wake: () => current.wake(),
    promote: (by) => current.promote(by),
    rested: () => current.rested(),
    interrupt(fault) {
      interruption ??= fault;
      void current.stop();
    },
    async stop() {
      isStopping = true;
      await current.stop();
      await ended;
    },
  };
}
