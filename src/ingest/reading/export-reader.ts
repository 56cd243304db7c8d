/** Reads export files on the reader thread, under the settings and subscriptions of the moment. */
import { addAbortListener, on } from 'node:events';
import { isDeepStrictEqual } from 'node:util';
import { MessageChannel, type Worker } from 'node:worker_threads';
import { addedAgain } from '../../auth/removal.ts';
import type { ExportName } from '../../detection/content-type.ts';
import { type ExportFileName, timesOf } from '../../exports/file-name.ts';
import type { ExportSource } from '../../exports/unpacking.ts';
import { startWorker } from '../../packed.ts';
import { callsTo, type ThreadCalls } from '../../thread-call.ts';
import type { Now } from '../../time.ts';
import { type AccessConnection, readSubscribers } from '../threads/access-connection.ts';
import type { IngestSettings, ToMain } from '../threads/ingest-messages.ts';
import type { ReadingResult } from './read-export.ts';
import type { ReaderCalls, ReaderOrder } from './reader-thread.ts';
import type { RowBatch } from './row-batch.ts';

/** A small packed file can hold millions of bad rows. */
export const ERRORS_READ_MAX = 100;

export type ExportReader = ReturnType<typeof exportReader>;
export type Reading = ReturnType<ExportReader['read']>;

/** `stopped` ends all readings with its reason, also those that would begin later. */
export function exportReader(
  { settings, stopped, send }: Readonly<{ settings: IngestSettings; stopped: AbortSignal; send: ToMain }>,
  access: AccessConnection,
  now: Now,
) {
  const { enabled_exports, earliest_time, require_trailer, bad_rows, mappings, photo_key } = settings;
  /** Started with the first file: most commands, and a start before any file comes, never need it. */
  let worker: Worker | null = null;
  let thread: ThreadCalls<ReaderCalls> | null = null;

  function running(): ThreadCalls<ReaderCalls> {
    worker ??= startWorker({ role: 'reader', photo_key });
    thread ??= callsTo<ReaderCalls>(worker, 'the reader thread');
    return thread;
  }

  const readNow = () => access.use((db) => readSubscribers(db, enabled_exports));

  return {
    isEnabled: (exportName: ExportName): boolean => enabled_exports.includes(exportName),
    /**
     * The subscriptions whose rows are left out of a file: those that were added again after it was taken. Rows have the
     * number of a subscription alone, so these may be those of another customer.
     * @param takenBy epoch milliseconds; null: it was never taken before
     */
    formerAt: (takenBy: number | null): number[] =>
      takenBy === null ? [] : access.use((db) => addedAgain(db, takenBy)),
    /** The earliest time of a file that was first read then, epoch milliseconds. */
    earliestAt: (file: ExportFileName, ms: number): string => timesOf(file, ms, earliest_time).earliest,
    /** @param label what the progress calls the file @throws the reason of `stopped` once it is aborted */
    read(source: ExportSource, file: ExportFileName, label: string, options: Partial<ReaderOrder> = {}) {
      stopped.throwIfAborted();
      const subscribers = readNow();
      const order: ReaderOrder = {
        ...{ source, file, mapping: mappings[file.export], require_trailer, bad_rows },
        ...{ errors_max: ERRORS_READ_MAX, former: [], rows_to_skip: 0, check_only: false },
        ...timesOf(file, now(), earliest_time),
        ...subscribers,
        ...options,
      };
      const tell = (rows: number, isDone: boolean) => send('progress', { file: label, rows, isDone });
      const result = Promise.withResolvers<ReadingResult>();
      // A caller that stops half-way never awaits it.
      result.promise.catch(() => {});
      const { port1: port, port2 } = new MessageChannel();
      const messages: AsyncIterable<RowBatch[]> = on(port, 'message', { close: ['close'] });
      const abort = (error: Error) => {
        result.reject(error);
        port.close();
      };
      // A file without any valid row could be read for minutes.
      const listening = addAbortListener(stopped, () => abort(stopped.reason));
      running()
        .call('read', { port: port2, order }, (rows) => tell(rows, false), [port2])
        .finally(() => {
          listening[Symbol.dispose]();
          tell(0, true);
        })
        .then(result.resolve, abort);
      async function* batches(): AsyncGenerator<RowBatch> {
        for await (const [batch] of messages) {
          if (batch === undefined) continue;
          yield batch;
          const memory = batch.lines.buffer;
          port.postMessage(memory, [memory]);
        }
      }
      return {
        order,
        /** The batches, in file order; asking for the next one acknowledges the one before. */
        batches: batches(),
        /** Resolves when the file was read to its end. */
        result: result.promise,
        /** Whether subscriptions or licences have changed since the reading began. */
        isOutdated: () => !isDeepStrictEqual(subscribers, readNow()),
        cancel: () => port.close(),
      };
    },
    async close(): Promise<void> {
      await worker?.terminate();
    },
  };
}
