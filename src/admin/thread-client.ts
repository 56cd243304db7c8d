/**
 * The main thread's side of the operations thread, which the first request starts. If it dies, the next request starts
 * it again.
 */
import type { Worker } from 'node:worker_threads';
import { Sessions } from '../auth/console-sessions.ts';
import type { Denials } from '../auth/denials.ts';
import type { IngestClient } from '../ingest/threads/ingest-client.ts';
import type { Live } from '../operations/operation.ts';
import { startWorker } from '../packed.ts';
import { reasonOf } from '../refused.ts';
import { callsTo, type Handlers, serveCalls, type ThreadCalls } from '../thread-call.ts';
import { SECOND_MS } from '../time.ts';
import {
  type AskLab,
  type AskOperation,
  type MainCalls,
  type OperationsCalls,
  type OperationsSettings,
  problem,
  type Told,
} from './thread-messages.ts';

/** More than all open consoles send at once; further requests are refused at once. */
const WAITING_MAX = 100;
/** Commands have as many more: whatever consoles and scripts wait for, an operator can revoke a key. */
const WAITING_MAX_OF_COMMANDS = 2 * WAITING_MAX;
const STOP_MS = 2 * SECOND_MS;

export interface OperationsOptions {
  readonly settings: OperationsSettings;
  readonly ingest: Pick<IngestClient, 'ask' | 'wake' | 'promote'>;
  readonly denials: Denials;
  readonly onDenied: () => void;
  /** Null unless it is a lab. @throws Refused */
  readonly lab: ((asked: AskLab) => Promise<unknown>) | null;
  readonly live: () => Live;
  /** Why detections.db must not be read now; null when it may. */
  readonly unreadable: () => string | null;
  readonly onSpareStale: (reason: string) => void;
  readonly onFault: (fault: { readonly message: string; readonly isDamage: boolean }) => void;
}

export interface Asking extends Omit<AskOperation, 'unreadable' | 'live'> {
  readonly onProgress?: (text: string) => void;
}

export class Operations {
  readonly settings: OperationsSettings;
  readonly sessions = new Sessions();
  readonly #options: OperationsOptions;
  readonly #startThread: () => Worker;
  #worker: Worker | null = null;
  #thread: ThreadCalls<OperationsCalls> | null = null;
  /** A request in the last moment would start the thread again, and the process would not end. */
  #isClosed = false;

  constructor(
    options: OperationsOptions,
    startThread = () => startWorker({ role: 'operations', settings: options.settings }),
  ) {
    this.settings = options.settings;
    this.#options = options;
    this.#startThread = startThread;
  }

  /** Runs an operation. Never rejects. */
  run({ onProgress = () => {}, ...asking }: Asking): Promise<Told> {
    return this.#ask(
      (thread) => thread.call('operate', { ...asking, ...this.#asked() }, onProgress),
      asking.way === 'command' ? WAITING_MAX_OF_COMMANDS : WAITING_MAX,
    );
  }

  /** Reads a view of the console. Never rejects. */
  view(path: string, query: string, mayAct: boolean): Promise<Told> {
    return this.#ask((thread) => thread.call('view', { path, query, mayAct, ...this.#asked() }));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#thread === null) return;
    this.#thread.post('stop');
    const late = setTimeout(() => void this.#worker?.terminate(), STOP_MS);
    await this.#thread.ended;
    clearTimeout(late);
  }

  #asked() {
    return { unreadable: this.#options.unreadable(), live: this.#options.live() };
  }

  async #ask(call: (thread: ThreadCalls<OperationsCalls>) => Promise<Told>, waitingMax = WAITING_MAX) {
    if (this.#isClosed) return BUSY;
    this.#thread ??= this.#start();
    if (this.#thread.unanswered() >= waitingMax) return BUSY;
    const told = await call(this.#thread).catch((error) => {
      return { ...BUSY, fault: { message: reasonOf(error), isDamage: false } };
    });
    if (told.fault !== undefined) this.#options.onFault(told.fault);
    return told;
  }

  #start(): ThreadCalls<OperationsCalls> {
    const worker = this.#startThread();
    this.#worker = worker;
    const started = callsTo<OperationsCalls>(worker, 'the operations thread');
    serveCalls<MainCalls>(worker, this.#served());
    void started.ended.then((fault) => {
      this.#thread = null;
      if (fault !== null && started.unanswered() === 0)
        this.#options.onFault({ message: fault.message, isDamage: false });
    });
    return started;
  }

  #served(): Handlers<MainCalls> {
    const { ingest, denials, onDenied, onSpareStale, lab } = this.#options;
    return {
      ingest: (request, tell) => ingest.ask(request, tell),
      promote: (by) => ingest.promote(by),
      lab: (asked) => lab?.(asked),
      link: (link) => this.sessions.addLink(link),
      endSessions: () => this.sessions.endAll(),
      written: () => ingest.wake(),
      stale: onSpareStale,
      deny(denied) {
        denials.deny(denied);
        onDenied();
      },
      forget(denied) {
        for (const denial of denied) denials.forget(denial);
      },
    };
  }
}

const BUSY = problem(503, 'Wirewatch is busy with other operations. Try again in a moment.', 'unavailable');
