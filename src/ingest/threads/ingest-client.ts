/** The main thread's end of the ingest thread, which it starts again after what passes. A new one recovers as after a crash. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import type { Mark } from '../../log/format.ts';
import type { StreamPosition } from '../../log/version-epoch.ts';
import { paced } from '../../pace.ts';
import { startWorker } from '../../packed.ts';
import { failed } from '../../refused.ts';
import { nativeBinding } from '../../store/addon.ts';
import { callsTo, type Handlers, serveCalls } from '../../thread-call.ts';
import { SECOND_MS } from '../../time.ts';
import { INGEST_CONDITIONS } from '../reporting.ts';
import { createDecidedEntry, endDecisions, noteDecided } from './decisions.ts';
import type { AskIngest, IngestCalls, IngestEvents, IngestSettings } from './ingest-messages.ts';

/** What is done with what the thread tells. */
export type ReportedEvents = Handlers<Omit<IngestEvents, 'proposed'>>;

export type IngestClient = ReturnType<typeof startIngest>;

/** A fault after which the thread is started again. */
export interface Passing {
  readonly isOver: () => boolean;
  readonly onInterrupted: () => void;
  /** How long the new thread must have worked, since it was ready, until the fault counts as over. Default: 0. */
  readonly worksMs?: number;
  readonly onResumed?: () => void;
}

const CHECK_EVERY_MS = paced(SECOND_MS);

const REMOVAL_GOES_ON =
  'The remaining rows are deleted as soon as Wirewatch runs again. To wait for that, run the command again.';

/** Starts to load the code of the thread, early in a start, and opens no file: {@link startIngest} does. */
export function bootIngestThread(): Worker {
  // First on this thread: see nativeBinding.
  nativeBinding();
  return startWorker({ role: 'ingest' });
}

/**
 * @param decide resolves once the copy has an entry, for which the thread stands still
 * @param passing what to do about a fault; null: it ends ingest
 * @param worker for the first start
 */
export function startIngest(
  settings: IngestSettings,
  events: Partial<ReportedEvents>,
  decide: (entry: Mark) => Promise<void>,
  passing: (fault: Error) => Passing | null = () => null,
  worker: Worker = bootIngestThread(),
) {
  let isStopping = false;
  let interruption: Error | null = null;
  let current = begin(worker, false);
  const { ready } = current;

  function begin(thread: Worker, isAgain: boolean) {
    const decided = createDecidedEntry();
    const isReady = Promise.withResolvers<void>();
    isReady.promise.catch(() => {});
    const calls = callsTo<IngestCalls>(thread, 'the ingest thread');
    serveCalls<IngestEvents>(thread, {
      ...events,
      ready() {
        isReady.resolve();
        events.ready?.();
      },
      proposed: (entry) => decide(entry).then(() => noteDecided(decided, entry)),
    });
    void calls.ended.then((fault) => {
      isReady.reject(fault ?? new Error('the ingest thread ended before it was ready'));
      // The next thread does not know what this one has reported.
      for (const name of INGEST_CONDITIONS) events.condition?.({ name, detail: null });
    });
    calls.post('start', { settings, decided, isAgain });
    return {
      ...calls,
      ready: isReady.promise,
      async stop(): Promise<void> {
        endDecisions(decided);
        calls.post('stop');
        await calls.ended;
      },
    };
  }

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
      current = begin(bootIngestThread(), true);
      const { ended } = current;
      const works = current.ready.then(() => sleep(passes.worksMs ?? 0, true, { ref: false }));
      if (await Promise.race([works.catch(() => false), ended.then(() => false)])) {
        passes.onResumed?.();
        interrupted = null;
      }
    }
  }

  const ask: AskIngest = async (request, tell = () => {}) => {
    const { call, ended: threadEnded } = current;
    const served = await call('ask', request, tell).catch(async () => {
      const fault = await threadEnded;
      const why = fault === null ? 'Wirewatch stopped' : `Ingest ended with an error (${fault.message})`;
      const next = request.kind === 'remove' ? REMOVAL_GOES_ON : 'Run the command again.';
      throw failed(`${why} before this was completed. ${next}`);
    });
    if ('refused' in served) throw failed(served.refused);
    return served.answer as never;
  };

  const ended = last();
  return {
    ask,
    /** Resolves when both databases are open; rejects with Refused when they or the drop folder cannot be used. */
    ready,
    /** Resolves when the last thread has ended: with null after `stop`, else with the error, or Refused, that ended it. */
    ended,
    /** Reports an authentic cursor that the log never issued: it proves that the end of the log is lost. */
    endLost: (cursor: StreamPosition) => current.post('endLost', cursor),
    /** Call it after each change of access.db. */
    wake: () => current.post('wake'),
    /** Resolves when all files and requests of this moment are processed and missing windows were searched for. */
    rested: () => current.call('rested').catch(() => {}),
    promote: (by: object) => current.call('promote', by),
    /** Ends the thread as if it had failed, because of what another thread found. */
    interrupt(fault: Error): void {
      interruption ??= fault;
      void current.stop();
    },
    /** Rolls back unfinished work and ends the thread. */
    async stop(): Promise<void> {
      isStopping = true;
      await current.stop();
      await ended;
    },
  };
}
