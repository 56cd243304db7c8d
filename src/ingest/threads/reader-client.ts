/** The writer's end of the thread that reads exports. */
import type { Worker } from 'node:worker_threads';
import { startWorker } from '../../packed.ts';
import type { RowBatch } from '../apply/row-batch.ts';
import type { ReadingResult } from '../rules/read-export.ts';
import type { FromReader, ReaderOrder, ReaderSettings, ToReader } from './reader-messages.ts';

/** The disk or the thread failed, not the file. */
export class ReadingFault extends Error {
  readonly code: string;
  /** The call of the system that failed; null where none did. */
  readonly syscall: string | null;

  constructor(code: string, message: string, syscall: string | null = null) {
    super(message);
    this.syscall = syscall;
    this.name = 'ReadingFault';
    this.code = code;
  }
}

export interface Reading {
  /** The batches, in file order; a batch is acknowledged when the next one is asked for. */
  readonly batches: AsyncIterable<RowBatch>;
  /** Settles when the file was read to its end. */
  readonly result: Promise<ReadingResult>;
  cancel(): void;
}

interface Session {
  readonly queue: RowBatch[];
  wake: () => void;
  isOver: boolean;
  readonly end: (outcome: { result: ReadingResult } | { fault: Error }) => void;
  readonly onProgress: (rows: number) => void;
}

export class ReaderClient {
  readonly #settings: ReaderSettings;
  /** Started with the first file: most commands, and a start before any file comes, never need it. */
  #worker: Worker | null = null;
  readonly #sessions = new Map<number, Session>();
  #lastSession = 0;
  #failure: ReadingFault | null = null;

  constructor(settings: ReaderSettings) {
    this.#settings = settings;
  }

  read(order: ReaderOrder, onProgress: (rows: number) => void = () => {}): Reading {
    this.#lastSession += 1;
    const session = this.#lastSession;
    const outcome = Promise.withResolvers<ReadingResult>();
    // Whoever stops half-way does not ask for the result, and that is no fault.
    outcome.promise.catch(() => {});
    const waiting: Session = {
      queue: [],
      wake: () => {},
      isOver: false,
      end: (end) => ('result' in end ? outcome.resolve(end.result) : outcome.reject(end.fault)),
      onProgress,
    };
    this.#sessions.set(session, waiting);
    if (this.#failure !== null) this.#end(session, { fault: this.#failure });
    else this.#send({ kind: 'read', session, order });
    return {
      batches: this.#batches(session, waiting),
      result: outcome.promise,
      cancel: () => this.#send({ kind: 'cancel', session }),
    };
  }

  /** Ends all that is being read, with this fault. */
  abort(fault: Error): void {
    for (const session of [...this.#sessions.keys()]) {
      this.#send({ kind: 'cancel', session });
      this.#end(session, { fault });
    }
  }

  async close(): Promise<void> {
    await this.#worker?.terminate();
  }

  async *#batches(session: number, waiting: Session): AsyncGenerator<RowBatch> {
    for (;;) {
      const batch = waiting.queue.shift();
      if (batch !== undefined) {
        yield batch;
        this.#giveBack(session, batch);
      } else if (waiting.isOver) {
        return;
      } else {
        await new Promise<void>((resolve) => {
          waiting.wake = resolve;
        });
      }
    }
  }

  /** With the memory of a batch that was applied, for the next one. */
  #giveBack(session: number, { lines }: RowBatch): void {
    this.#worker?.postMessage({ kind: 'credit', session, memory: lines.buffer } satisfies ToReader, [
      lines.buffer,
    ]);
  }

  #receive(message: FromReader): void {
    const waiting = this.#sessions.get(message.session);
    switch (message.kind) {
      case 'batch':
        waiting?.queue.push(message.batch);
        waiting?.wake();
        break;
      case 'progress':
        waiting?.onProgress(message.rows);
        break;
      case 'end':
        this.#end(message.session, { result: message.result });
        break;
      case 'fault':
        this.#end(message.session, {
          fault: new ReadingFault(message.code, message.message, message.syscall),
        });
        break;
    }
  }

  #end(session: number, outcome: { result: ReadingResult } | { fault: Error }): void {
    const waiting = this.#sessions.get(session);
    if (waiting === undefined) return;
    this.#sessions.delete(session);
    waiting.isOver = true;
    waiting.end(outcome);
    waiting.wake();
  }

  #fail(message: string): void {
    this.#failure ??= new ReadingFault('READER', message);
    for (const session of [...this.#sessions.keys()]) this.#end(session, { fault: this.#failure });
  }

  #send(message: ToReader): void {
    this.#worker ??= this.#start();
    this.#worker.postMessage(message);
  }

  #start(): Worker {
    const worker = startWorker({ role: 'reader', settings: this.#settings });
    worker.on('message', (received: FromReader) => this.#receive(received));
    worker.on('error', (error) => this.#fail(error.stack ?? error.message));
    worker.on('exit', () => this.#fail('the reader thread ended'));
    return worker;
  }
}
