/** The main thread's end of the thread that ingests. */
import type { Worker } from 'node:worker_threads';
import { startWorker } from '../../packed.ts';
import { Refused } from '../../refused.ts';
import { nativeBinding } from '../../store/addon.ts';
import type { FromIngest, IngestSettings, ToIngest } from './ingest-settings.ts';

/** What the thread says while it works. */
export type IngestMessage = Exclude<FromIngest, { kind: 'ready' | 'rested' | 'refused' }>;
type OnMessage = (message: IngestMessage) => void;

export interface IngestClient {
  /** Settles when both databases are open; rejects with Refused when they or the drop folder cannot be used. */
  readonly ready: Promise<void>;
  /** Settles when the thread has ended: with null when it was asked to, else with the fault, or the Refused, that ended it. */
  readonly ended: Promise<Error | null>;
  /** Told of an authentic cursor that the log never gave out, which proves that its end is lost. */
  endLost(position: number): void;
  /** Settles when all files and requests that are there by now are processed, and windows were looked for. */
  rested(): Promise<void>;
  /** Rolls back what is half done and ends the thread. */
  stop(): Promise<void>;
}

/**
 * Begins to load the code of the thread, and nothing else: no file is opened before {@link startIngest}. A start that
 * boots it early has it ready by the time that its own modules are loaded.
 */
export function bootIngestThread(): Worker {
  // First on this thread: see nativeBinding.
  nativeBinding();
  return startWorker({ role: 'ingest' });
}

export function startIngest(
  settings: IngestSettings,
  onMessage: OnMessage,
  worker: Worker = bootIngestThread(),
): IngestClient {
  const ready = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<Error | null>();
  ready.promise.catch(() => {});
  const send = (message: ToIngest) => worker.postMessage(message);
  const resting: (() => void)[] = [];
  let isReady = false;
  let fault: Error | null = null;
  worker.on('message', (message: FromIngest) => {
    if (message.kind === 'ready') {
      isReady = true;
      ready.resolve();
    } else if (message.kind === 'rested') resting.shift()?.();
    else if (message.kind === 'refused') {
      fault = new Refused(message.code, message.detail);
      if (!isReady) ready.reject(fault);
    } else onMessage(message);
  });
  worker.on('error', (error) => {
    fault = error;
    ready.reject(error);
  });
  worker.on('exit', () => {
    ready.reject(fault ?? new Error('the ingest thread ended before it was ready'));
    ended.resolve(fault);
  });
  send({ kind: 'start', settings });
  return {
    ready: ready.promise,
    ended: ended.promise,
    endLost: (position) => send({ kind: 'end lost', position }),
    rested: () =>
      new Promise((resolve) => {
        resting.push(resolve);
        // One that has ended processes nothing more.
        void ended.promise.then(() => resolve());
        send({ kind: 'rest' });
      }),
    stop: async () => {
      send({ kind: 'stop' });
      await ended.promise;
    },
  };
}
