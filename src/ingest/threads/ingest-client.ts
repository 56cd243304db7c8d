/** The main thread's end of the ingest thread. */
import type { Worker } from 'node:worker_threads';
import type { Mark } from '../../log/format.ts';
import type { StreamPosition } from '../../log/version-epoch.ts';
import { startWorker } from '../../packed.ts';
import { nativeBinding } from '../../store/addon.ts';
import { callsTo } from '../../thread-call.ts';
import { type IngestRequest, type RequestOutcome, unserved } from '../requests/requests.ts';
import { createDecidedEntry, endDecisions, noteDecided } from './decisions.ts';
import type { IngestCalls, IngestEvent, IngestSettings } from './ingest-messages.ts';

export type ReportedEvent = Exclude<IngestEvent, { kind: 'ready' | 'told' | 'proposed' }>;

/** Resolves once the copy has an entry, for which the thread stands still. */
export type Decide = (entry: Mark) => Promise<void>;

export type IngestClient = ReturnType<typeof startIngest>;

/** Starts to load the code of the thread, early in a start, and opens no file: {@link startIngest} does. */
export function bootIngestThread(): Worker {
  // First on this thread: see nativeBinding.
  nativeBinding();
  return startWorker({ role: 'ingest' });
}

export function startIngest(
  settings: IngestSettings,
  onEvent: (event: ReportedEvent) => void,
  decide: Decide,
  worker: Worker = bootIngestThread(),
) {
  const decided = createDecidedEntry();
  const ready = Promise.withResolvers<void>();
  const tells = new Map<number, (progress: string) => void>();
  let asked = 0;
  const thread = callsTo<IngestCalls, IngestEvent>(worker, 'the ingest thread', (event) => {
    if (event.kind === 'ready') ready.resolve();
    else if (event.kind === 'proposed')
      void decide(event.entry).then(() => noteDecided(decided, event.entry));
    else if (event.kind === 'told') tells.get(event.number)?.(event.progress);
    else onEvent(event);
  });
  ready.promise.catch(() => {});
  void thread.ended.then((fault) =>
    ready.reject(fault ?? new Error('the ingest thread ended before it was ready')),
  );
  thread.post('start', { settings, decided });
  return {
    /** Resolves when both databases are open; rejects with Refused when they or the drop folder cannot be used. */
    ready: ready.promise,
    /** Resolves when the thread has ended: with null after `stop`, else with the error, or Refused, that ended it. */
    ended: thread.ended,
    /** Reports an authentic cursor that the log never issued: it proves that the end of the log is lost. */
    endLost: (cursor: StreamPosition) => thread.post('endLost', cursor),
    /**
     * Serves a request, after those before it and the file that is being read. Never rejects: if the thread ends first,
     * the outcome says so. @param tell called with the progress, in words
     */
    async ask(request: IngestRequest, tell: (progress: string) => void): Promise<RequestOutcome> {
      asked += 1;
      const number = asked;
      tells.set(number, tell);
      try {
        return await thread.call('ask', { number, request });
      } catch {
        const fault = await thread.ended;
        const why = fault === null ? 'Wirewatch stopped' : `Ingest ended with an error (${fault.message})`;
        return unserved(request, why);
      } finally {
        tells.delete(number);
      }
    },
    /** Says that access.db was changed: call it after each change. */
    wake: () => thread.post('wake'),
    /** Resolves when all files and requests of this moment are processed and missing windows were searched for. */
    rested: () => thread.call('rested').catch(() => {}),
    promote: (by: object) => thread.call('promote', by),
    /** Rolls back unfinished work and ends the thread. */
    async stop(): Promise<void> {
      endDecisions(decided);
      thread.post('stop');
      await thread.ended;
    },
  };
}
