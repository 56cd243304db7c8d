/**
 * The ingest thread: brings the database to the end of its log, then works until it is stopped. What it is started with,
 * the calls that it serves, and its events.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { MessagePort } from 'node:worker_threads';
import { monotonicMs } from '../../clock.ts';
import { type Recovered, recoverDetections } from '../../history/recover.ts';
import type { StreamPosition } from '../../history/version-epoch.ts';
import { isDiskFull } from '../../store/database-errors.ts';
import { dataFolder } from '../../store/folder.ts';
import { sendEvent, serveCalls } from '../../thread-call.ts';
import type { HoldRules } from '../../windows/holding.ts';
import { DropFolder } from '../drop/drop-folder.ts';
import type { DropSettings } from '../drop/readiness.ts';
import type { ProcessedFile } from '../file-record.ts';
import { type IngestCondition, type Reporting, reportingBy } from '../reporting.ts';
import type { IngestRequest, RequestOutcome } from '../requests/requests.ts';
import type { ReadingOrder } from '../rules/read-export.ts';
import { waitForRoom } from './full-disk.ts';
import { Ingester, type IngesterOptions, Stopping } from './ingest-loop.ts';
import type { ReaderSettings } from './reader-thread.ts';
import { WakeableTimer } from './wakeable-timer.ts';

export interface IngestSettings
  extends DropSettings,
    HoldRules,
    ReaderSettings,
    Pick<ReadingOrder, 'require_trailer' | 'bad_rows'> {
  readonly data: string;
  readonly drop: string;
  readonly rescan_seconds: number;
  readonly archive_days: number;
  /** As the API writes times. */
  readonly earliest_time: string;
  /** The version of the program. */
  readonly program: string;
  /** `serve`: read the drop folder. `alone`: on a stopped installation, only do what is asked. */
  readonly mode: 'serve' | 'alone';
}

export interface IngestCalls {
  /** Until it comes, the thread has only loaded its code. */
  start(settings: IngestSettings): void;
  /** A cursor is one that the log never issued: see history/version-epoch.ts. */
  endLost(cursor: StreamPosition): void;
  /** Answered when it is done; `told` events with its number come before. */
  ask(asked: { readonly number: number; readonly request: IngestRequest }): RequestOutcome;
  /** access.db was changed: ingest was paused or resumed, or a removal was begun. */
  wake(): void;
  /** Answered when all that waits at this moment is processed, and missing windows were searched for. */
  rested(): void;
  stop(): void;
}

export type IngestEvent =
  /** Both databases are open. No answer to `start`, which would come only after what the thread does next. */
  | { readonly kind: 'ready' }
  /** The database must first be brought to the end of the log, which may take long. */
  | { readonly kind: 'recovering'; readonly reason: string }
  | {
      readonly kind: 'log';
      readonly level: Parameters<Reporting['log']>[0];
      readonly msg: string;
      readonly fields: Record<string, unknown>;
    }
  /** The progress of a request, in words. */
  | { readonly kind: 'told'; readonly number: number; readonly progress: string }
  /** A transaction became visible. */
  | { readonly kind: 'delivered'; readonly first_position: number; readonly delivered_at: number }
  | { readonly kind: 'processed'; readonly file: ProcessedFile }
  | { readonly kind: 'progress'; readonly file: string; readonly rows: number; readonly isDone: boolean }
  | { readonly kind: 'condition'; readonly name: IngestCondition; readonly detail: string | null };

export function runIngester(port: MessagePort): void {
  const send = (event: IngestEvent) => sendEvent(port, event);
  const begun = Promise.withResolvers<Ingester>();
  const stopped = new AbortController();
  let ingester: Ingester | null = null;

  async function run(settings: IngestSettings): Promise<void> {
    const timer = new WakeableTimer();
    stopped.signal.addEventListener('abort', () => timer.wake());
    const check = () => {
      if (stopped.signal.aborted) throw new Stopping();
    };
    const reporting = reportingBy(send);
    const options = { settings, send, timer, check, stopped: stopped.signal, ...reporting };
    try {
      const drop = new DropFolder(settings.drop, settings, monotonicMs);
      if (settings.mode === 'alone') drop.requireOf(dataFolder(settings.data));
      // Clients can read without it.
      drop.prepare(settings.mode === 'serve');
      const recovered = await recover(options);
      ingester = new Ingester(options, drop, recovered);
      begun.resolve(ingester);
      send({ kind: 'ready' });
      const { applied, madeAnew } = recovered;
      if (madeAnew !== null || applied > 0)
        reporting.log('warn', 'detections.db was brought up to date from the log', {
          applied,
          made_anew: madeAnew,
        });
      await ingester.run();
    } catch (error) {
      if (!(error instanceof Stopping)) throw error;
    } finally {
      await ingester?.close();
      port.close();
    }
  }

  serveCalls<IngestCalls>(port, {
    start: run,
    // Before the ingester exists it is lost: the client repeats its request.
    endLost: (cursor) => ingester?.lostEnd.note(cursor),
    ask: async ({ number, request }) =>
      (await begun.promise).ask(request, (progress) => send({ kind: 'told', number, progress })),
    // Before the ingester exists it has not read access.db.
    wake: () => ingester?.wake(),
    rested: async () => (await begun.promise).rested(),
    stop: () => stopped.abort(),
  });
}

/** Waits while the disk is full; clients can read meanwhile if the database was readable before. */
async function recover(options: IngesterOptions): Promise<Recovered> {
  const { settings, send, check, setCondition } = options;
  let isReadable = false;
  let shown = -1;
  for (;;) {
    try {
      const recovered = await recoverDetections({
        folder: dataFolder(settings.data),
        program: settings.program,
        onReadable: () => {
          isReadable = true;
          send({ kind: 'ready' });
        },
        onBegin: (reason) => send({ kind: 'recovering', reason }),
        onProgress: (done, total) => {
          const percent = Math.floor((100 * done) / total);
          // There may be many thousands of entries.
          if (percent === shown) return;
          shown = percent;
          send({ kind: 'progress', file: 'the log', rows: percent, isDone: done === total });
        },
        between: async () => {
          // A stop arrives only when the event loop turns.
          await nextTurn();
          check();
        },
      });
      setCondition('disk full', null);
      return recovered;
    } catch (error) {
      // The event lets the server start, so that the alert can be seen.
      if (isDiskFull(error) && !isReadable)
        send({ kind: 'recovering', reason: 'the disk is too full to bring it up to date' });
      await waitForRoom(error, options);
    }
  }
}
