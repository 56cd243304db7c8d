/** Reads export files on the reader thread, under the settings and subscriptions of the moment. */
import { addAbortListener, on } from 'node:events';
import { isDeepStrictEqual } from 'node:util';
import { MessageChannel, type Worker } from 'node:worker_threads';
import { addedAgain } from '../../auth/removal.ts';
import { type ExportFileName, timesOf } from '../../exports/file-name.ts';
import type { ExportSource } from '../../exports/unpacking.ts';
import { startWorker } from '../../packed.ts';
import { callsTo, type ThreadCalls } from '../../thread-call.ts';
import type { Now } from '../../time.ts';
import { type AccessConnection, readSubscribers, type Subscribers } from '../threads/access-connection.ts';
import type { IngestSettings } from '../threads/ingest-messages.ts';
import type { ReadingResult } from './read-export.ts';
import type { ReaderCalls, ReaderOrder, ReaderSettings } from './reader-thread.ts';
import type { RowBatch } from './row-batch.ts';

export interface Reading {
  readonly order: ReaderOrder;
  /** The batches, in file order; asking for the next one acknowledges the one before. */
  readonly batches: AsyncIterable<RowBatch>;
  /** Resolves when the file was read to its end. */
  readonly result: Promise<ReadingResult>;
  /** Whether subscriptions or licences have changed since the reading began. */
  isOutdated(): boolean;
  cancel(): void;
}

interface ExportReaderOptions {
  readonly access: AccessConnection;
  readonly settings: IngestSettings;
  /** Ends all readings with its reason, also those that would begin later. */
  readonly stopped: AbortSignal;
  readonly now: Now;
  /** @param rows read so far; 0 once it is done */
  readonly onProgress: (label: string, rows: number, isDone: boolean) => void;
}

/** A small packed file can hold millions of bad rows. */
export const ERRORS_READ_MAX = 100;

export class ExportReader {
  readonly #options: ExportReaderOptions;
  /** Started with the first file: most commands, and a start before any file comes, never need it. */
  #worker: Worker | null = null;
  #thread: ThreadCalls<ReaderCalls> | null = null;

  constructor(options: ExportReaderOptions) {
    this.#options = options;
  }

  isEnabled({ export: exportName }: Pick<ExportFileName, 'export'>): boolean {
    return this.#options.settings.enabled_exports.includes(exportName);
  }

  /**
   * The subscriptions whose rows are left out of a file: those that were added again after it was taken. Rows have the
   * number of a subscription alone, so these may be those of another customer.
   * @param takenBy epoch milliseconds; null: it was never taken before
   */
  formerAt(takenBy: number | null): number[] {
    return takenBy === null ? [] : this.#options.access.use((db) => addedAgain(db, takenBy));
  }

  /** The earliest time of a file that was first read then, epoch milliseconds. */
  earliestAt(file: ExportFileName, ms: number): string {
    return timesOf(file, ms, this.#options.settings.earliest_time).earliest;
  }

  /** @param label what the progress calls the file @throws the reason of `stopped` once it is aborted */
  read(
    source: ExportSource,
    file: ExportFileName,
    label: string,
    options: Partial<ReaderOrder> = {},
  ): Reading {
    const { settings, stopped, now, onProgress } = this.#options;
    stopped.throwIfAborted();
    const subscribers = this.#subscribers();
    const { earliest_time, require_trailer, bad_rows, mappings } = settings;
    const times = timesOf(file, now(), earliest_time);
    const rules = { mapping: mappings[file.export], require_trailer, bad_rows, errors_max: ERRORS_READ_MAX };
    const whole = { former: [], rows_to_skip: 0, check_only: false };
    const order: ReaderOrder = { source, file, ...times, ...rules, ...whole, ...subscribers, ...options };
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
    this.#running()
      .call('read', { port: port2, order }, (rows) => onProgress(label, rows, false), [port2])
      .finally(() => {
        listening[Symbol.dispose]();
        onProgress(label, 0, true);
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
      batches: batches(),
      result: result.promise,
      isOutdated: () => !isDeepStrictEqual(subscribers, this.#subscribers()),
      cancel: () => port.close(),
    };
  }

  async close(): Promise<void> {
    await this.#worker?.terminate();
  }

  #subscribers(): Subscribers {
    const { access, settings } = this.#options;
    return access.use((db) => readSubscribers(db, settings.enabled_exports));
  }

  #running(): ThreadCalls<ReaderCalls> {
    if (this.#thread !== null) return this.#thread;
    const { photo_key } = this.#options.settings;
    this.#worker = startWorker({ role: 'reader', settings: { photo_key } satisfies ReaderSettings });
    this.#thread = callsTo<ReaderCalls>(this.#worker, 'the reader thread');
    return this.#thread;
  }
}
