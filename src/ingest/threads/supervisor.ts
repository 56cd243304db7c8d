/**
 * Restarts the ingest thread after an error of access.db, once that can be read again. The new thread recovers as after a
 * crash.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { paced } from '../../pace.ts';
import { SECOND_MS } from '../../time.ts';
import { type IngestClient, type ReportedEvent, startIngest } from './ingest-client.ts';
import type { IngestSettings } from './ingest-messages.ts';

export interface Supervision {
  /** Whether the cause of a fault is one to wait for, at this moment. */
  readonly isPassing: (fault: Error) => boolean;
  readonly onInterrupted: (fault: Error) => void;
  readonly onResumed: () => void;
}

const CHECK_EVERY_MS = paced(SECOND_MS);

/** @param thread for the first start; @returns a client: `ready` is of the first start, `ended` of the last */
export function superviseIngest(
  settings: IngestSettings,
  onEvent: (event: ReportedEvent) => void,
  { isPassing, onInterrupted, onResumed }: Supervision,
  thread: Worker,
): IngestClient {
  let isStopping = false;
  let current = startIngest(settings, onEvent, thread);
  const { ready } = current;

  /** @returns the fault that ended the thread for good; null when it was asked to end */
  async function last(): Promise<Error | null> {
    let fault = await current.ended;
    while (fault !== null && !isStopping && isPassing(fault)) {
      onInterrupted(fault);
      while (isPassing(fault)) {
        await sleep(CHECK_EVERY_MS);
        if (isStopping) return null;
      }
      current = startIngest(settings, onEvent);
      const refusal = await current.ready.then(
        () => null,
        (error: Error) => error,
      );
      if (refusal === null) onResumed();
      fault = (await current.ended) ?? refusal;
    }
    return fault;
  }

  const ended = last();
  return {
    ready,
    ended,
    endLost: (cursor) => current.endLost(cursor),
    rested: () => current.rested(),
    async stop() {
      isStopping = true;
      await current.stop();
      await ended;
    },
  };
}
