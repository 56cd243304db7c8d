/** The main thread's end of the thread that ingests. */
import type { Worker } from 'node:worker_threads';
import { startWorker } from '../packed.ts';
import { Refused } from '../refused.ts';
import { nativeBinding } from '../store/addon.ts';
import type { DealtWith, FromIngest, IngestSettings, LogLevel, ToIngest } from './ingest-settings.ts';
import type { TroubleName } from './troubles.ts';

export interface IngestListener {
  readonly onLog: (level: LogLevel, msg: string, fields: Record<string, unknown>) => void;
  readonly onDelivered: (firstPosition: number, deliveredAtMs: number) => void;
  /** Something keeps the thread from its work; detail null: no longer. */
  readonly onTrouble: (name: TroubleName, detail: string | null) => void;
  readonly onDealtWith: (file: DealtWith) => void;
  /** The database is brought to the end of its log before it can be read: it may take long. */
  readonly onRecovery: (reason: string) => void;
  readonly onProgress: (file: string, rows: number, isDone: boolean) => void;
}

export interface IngestClient {
  /** Settles when both databases are open; rejects with Refused when they or the drop folder cannot be used. */
  readonly ready: Promise<void>;
  /** Settles when the thread has ended: with null when it was asked to, else with the fault, or the Refused, that ended it. */
  readonly ended: Promise<Error | null>;
  /** Told of an authentic cursor that the log never gave out, which proves that its end is lost. */
  endLost(position: number): void;
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

/** What the progress of a recovery is shown as. */
const RECOVERY = 'the log';

export function startIngest(
  settings: IngestSettings,
  listener: IngestListener,
  worker: Worker = bootIngestThread(),
): IngestClient {
  const ready = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<Error | null>();
  ready.promise.catch(() => {});
  const send = (message: ToIngest) => worker.postMessage(message);
  let isReady = false;
  let fault: Error | null = null;
  worker.on('message', (message: FromIngest) => {
    switch (message.kind) {
      case 'ready':
        isReady = true;
        ready.resolve();
        break;
      case 'recovering':
        listener.onRecovery(message.reason);
        break;
      case 'recovered':
        listener.onProgress(
          RECOVERY,
          Math.floor((100 * message.done) / message.total),
          message.done === message.total,
        );
        break;
      case 'refused': {
        const refusal = new Refused(message.code, message.detail);
        fault = refusal;
        if (!isReady) ready.reject(refusal);
        break;
      }
      case 'log':
        listener.onLog(message.level, message.msg, message.fields);
        break;
      case 'delivered':
        listener.onDelivered(message.first_position, message.delivered_at);
        break;
      case 'trouble':
        listener.onTrouble(message.name, message.detail);
        break;
      case 'dealt_with':
        listener.onDealtWith(message.file);
        break;
      case 'progress':
        listener.onProgress(message.file, message.rows, message.isDone);
        break;
    }
  });
  worker.on('error', (error) => {
    fault = error;
    ready.reject(error);
  });
  worker.on('exit', () => {
    ready.reject(fault ?? new Error('the ingesting thread ended before it was ready'));
    ended.resolve(fault);
  });
  send({ kind: 'start', settings });
  return {
    ready: ready.promise,
    ended: ended.promise,
    endLost: (position) => send({ kind: 'end lost', position }),
    stop: async () => {
      send({ kind: 'stop' });
      await ended.promise;
    },
  };
}
