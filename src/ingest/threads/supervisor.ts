/**
 * The thread that ingests, started again after a fault that passes: where access.db was what failed, and can be read
 * again. What was half done is rolled back, and completed as after a crash.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { paced } from '../../pace.ts';
import { SECOND_MS } from '../../time.ts';
import { type IngestClient, type IngestMessage, startIngest } from './ingest-client.ts';
import type { IngestSettings } from './ingest-settings.ts';

export interface Lasting {
  /** Whether the cause of a fault lies elsewhere at this moment, and is worth waiting for. */
  readonly isPassing: (fault: Error) => boolean;
  readonly onInterrupted: (fault: Error) => void;
  readonly onResumed: () => void;
}

const LOOK_EVERY_MS = paced(SECOND_MS);

/** @param thread for the first start; @returns a client whose `ready` is of the first start, and whose `ended` is of the last */
export function startLastingIngest(
  settings: IngestSettings,
  onMessage: (message: IngestMessage) => void,
  { isPassing, onInterrupted, onResumed }: Lasting,
  thread: Worker,
): IngestClient {
  let isStopping = false;
  let current = startIngest(settings, onMessage, thread);
  const { ready } = current;

  /** @returns the fault that ended the thread for good; null when it was asked to end */
  async function last(): Promise<Error | null> {
    let fault = await current.ended;
    while (fault !== null && !isStopping && isPassing(fault)) {
      onInterrupted(fault);
      while (isPassing(fault)) {
        await sleep(LOOK_EVERY_MS);
        if (isStopping) return null;
      }
      current = startIngest(settings, onMessage);
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
    endLost: (position) => current.endLost(position),
    rested: () => current.rested(),
    async stop() {
      isStopping = true;
      await current.stop();
      await ended;
    },
  };
}
