/** Reads export files on the reader thread, under the settings and subscriptions of the moment. */
import { isDeepStrictEqual } from 'node:util';
import type { Worker } from 'node:worker_threads';
import { listSubscriptions } from '../../auth/subscriptions.ts';
import { type StreamName, streamParts } from '../../detection/content-type.ts';
import { startWorker } from '../../packed.ts';
import { callsTo, type ThreadCalls } from '../../thread-call.ts';
import type { Now } from '../../time.ts';
import type { RowBatch } from '../apply/row-batch.ts';
import { type ExportFileName, timesOf } from '../format/file-name.ts';
import type { ExportSource } from '../format/unpacking.ts';
import type { ReadingResult } from '../rules/read-export.ts';
import { readSubscribers, type Subscribers } from '../subscribers.ts';
import type { AccessConnection } from './access-connection.ts';
import type { IngestSettings } from './ingest-messages.ts';
import type { ReaderCalls, ReaderEvent, ReaderOrder, ReaderSettings } from './reader-messages.ts';

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

export interface ExportReaderOptions {
  readonly access: AccessConnection;
  readonly settings: ReaderSettings &
    Pick<IngestSettings, 'drop' | 'earliest_time' | 'require_trailer' | 'bad_rows' | 'enabled_exports'>;
  readonly now: Now;
  readonly onProgress: (label: string, rows: number, isDone: boolean) => void;
}

/** A reading whose result is still to come. */
interface Session {
  readonly queue: RowBatch[];
  readonly result: PromiseWithResolvers<ReadingResult>;
  readonly onProgress: (rows: number) => void;
  isOver: boolean;
  wake: () => void;
}

/** A small packed file can hold millions of bad rows. */
export const ERRORS_READ_MAX = 100;

export class ExportReader {
  readonly #options: ExportReaderOptions;
  /** Started with the first file: most commands, and a start before any file comes, never need it. */
  #worker: Worker | null = null;
  #thread: ThreadCalls<ReaderCalls> | null = null;
  readonly #sessions = new Map<number, Session>();
  #lastSession = 0;

  constructor(options: ExportReaderOptions) {
    this.#options = options;
  }

  isEnabled({ export: exportName }: Pick<ExportFileName, 'export'>): boolean {
    return this.#options.settings.enabled_exports.includes(exportName);
  }

  /**
   * The streams of a file that was first applied at a time, epoch milliseconds.
   *
   * @param removed subscriptions that were removed, perhaps to be added again
   * @returns `former`: the streams of such subscriptions that were added later
   */
  streamsAt(removed: ReadonlySet<number>, ms: number): Record<'streams' | 'former', StreamName[]> {
    const added = new Map(
      this.#options.access.use(listSubscriptions).map(({ id, created_at }) => [id, created_at]),
    );
    const isFormer = (stream: StreamName) => {
      const { subscription_id } = streamParts(stream);
      return removed.has(subscription_id) && (added.get(subscription_id) ?? 0) > ms;
    };
    const { streams } = this.#subscribers();
    return {
      streams: streams.filter((stream) => !isFormer(stream)),
      former: streams.filter(isFormer),
    };
  }

  /** @param label what the progress calls the file */
  read(
    source: ExportSource,
    file: ExportFileName,
    label: string,
    options: Partial<ReaderOrder> = {},
  ): Reading {
    this.#lastSession += 1;
    const number = this.#lastSession;
    const subscribers = this.#subscribers();
    const order = { ...this.#order(source, file), ...subscribers, ...options };
    const { onProgress } = this.#options;
    const session: Session = {
      queue: [],
      result: Promise.withResolvers(),
      onProgress: (rows) => onProgress(label, rows, false),
      isOver: false,
      wake: () => {},
    };
    this.#sessions.set(number, session);
    const thread = this.#running();
    thread.call('read', { session: number, order }).then(
      (result) => {
        onProgress(label, result.counts.rows, true);
        this.#end(number, session, () => session.result.resolve(result));
      },
      (error) => this.#end(number, session, () => session.result.reject(error)),
    );
    // A caller that stops half-way never awaits it.
    session.result.promise.catch(() => {});
    return {
      order,
      batches: this.#batches(number, session),
      result: session.result.promise,
      isOutdated: () => !isDeepStrictEqual(subscribers, this.#subscribers()),
      cancel: () => thread.post('cancel', number),
    };
  }

  /** Ends all readings with this error. */
  abort(error: Error): void {
    for (const [number, session] of this.#sessions) {
      this.#thread?.post('cancel', number);
      session.queue.length = 0;
      this.#end(number, session, () => session.result.reject(error));
    }
  }

  async close(): Promise<void> {
    await this.#worker?.terminate();
  }

  #subscribers(): Subscribers {
    const { access, settings } = this.#options;
    return access.use((db) => readSubscribers(db, (name) => settings.enabled_exports.includes(name)));
  }

  #order(source: ExportSource, file: ExportFileName): Omit<ReaderOrder, keyof Subscribers> {
    const { settings, now } = this.#options;
    return {
      source,
      file,
      ...timesOf(file, now()),
      earliest: settings.earliest_time,
      require_trailer: settings.require_trailer,
      bad_rows: settings.bad_rows,
      errors_max: ERRORS_READ_MAX,
      rows_to_skip: 0,
      check_only: false,
      drop: settings.drop,
      skipped_path: null,
    };
  }

  async *#batches(number: number, session: Session): AsyncGenerator<RowBatch> {
    for (;;) {
      const batch = session.queue.shift();
      if (batch !== undefined) {
        yield batch;
        const memory = batch.lines.buffer;
        this.#thread?.post('credit', { session: number, memory }, [memory]);
      } else if (session.isOver) return;
      else await new Promise<void>((resolve) => (session.wake = resolve));
    }
  }

  #onEvent(event: ReaderEvent): void {
    const session = this.#sessions.get(event.session);
    if (event.kind === 'progress') session?.onProgress(event.rows);
    else {
      session?.queue.push(event.batch);
      session?.wake();
    }
  }

  #end(number: number, session: Session, settleResult: () => void): void {
    this.#sessions.delete(number);
    session.isOver = true;
    settleResult();
    session.wake();
  }

  #running(): ThreadCalls<ReaderCalls> {
    if (this.#thread !== null) return this.#thread;
    const { photo_key } = this.#options.settings;
    this.#worker = startWorker({ role: 'reader', settings: { photo_key } satisfies ReaderSettings });
    this.#thread = callsTo<ReaderCalls, ReaderEvent>(this.#worker, 'the reader thread', (event) =>
      this.#onEvent(event),
    );
    return this.#thread;
  }
}
