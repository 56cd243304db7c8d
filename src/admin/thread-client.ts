/**
 * The main thread's side of the operations thread, which the first request starts. If it dies, the next request starts
 * it again at once, or a timer if a console waits for changes.
 */
import type { Worker } from 'node:worker_threads';
import type { Actor } from '../auth/actor.ts';
import type { Denials } from '../auth/denials.ts';
import type { IngestClient } from '../ingest/threads/ingest-client.ts';
import type { Live, Way } from '../operations/operation.ts';
import { paced } from '../pace.ts';
import { startWorker } from '../packed.ts';
import { Refused, reasonOf } from '../refused.ts';
import { callsTo, type ThreadCalls } from '../thread-call.ts';
import { SECOND_MS } from '../time.ts';
import { EVENTS, type EventName } from './console/api.ts';
import {
  type Ask,
  type AskLab,
  type LabSaid,
  type OperationsCalls,
  type OperationsEvent,
  type OperationsSettings,
  problem,
  type Told,
} from './thread-messages.ts';

/** More than all open consoles send at once; further requests are refused at once. */
const WAITING_MAX = 100;
const STOP_MS = 2 * SECOND_MS;
const AGAIN_AFTER_MS = paced(SECOND_MS);
const CHANGES = EVENTS.filter((name) => name !== 'end');

export interface OperationsOptions {
  readonly settings: OperationsSettings;
  readonly ingest: Pick<IngestClient, 'ask' | 'wake'>;
  readonly denials: Denials;
  /** Called when access.db could not take what was denied. */
  readonly onDenied: () => void;
  /** Null unless it is a lab. @throws Refused */
  readonly lab: ((asked: AskLab) => Promise<unknown>) | null;
  readonly live: () => Live;
  /** Why detections.db must not be read now; null when it may. */
  readonly unreadable: () => string | null;
  /** Called when something failed that was not refused. */
  /** Called when the spare copy of access.db could not be brought up to date. */
  readonly onSpareStale: (reason: string) => void;
  readonly onFault: (fault: { readonly message: string; readonly isDamage: boolean }) => void;
}

export interface Asking {
  /** As it stands in an address: `key-create`. */
  readonly path: string;
  /** Its members, as JSON. */
  readonly given: unknown;
  readonly way: Way;
  readonly by: Actor;
  readonly isQuestion?: boolean;
  readonly isAsync?: boolean;
  readonly onProgress?: (text: string) => void;
}

export class Operations {
  readonly settings: OperationsSettings;
  readonly #options: OperationsOptions;
  readonly #startThread: () => Worker;
  readonly #progress = new Map<number, (text: string) => void>();
  #worker: Worker | null = null;
  #thread: ThreadCalls<OperationsCalls> | null = null;
  #again: NodeJS.Timeout | undefined;
  #onChanged: ((names: readonly EventName[]) => void) | null = null;
  #lastId = 0;
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

  /** Runs an operation, or asks what has to be confirmed before it. Never rejects. */
  async run({ isQuestion = false, isAsync = false, onProgress, ...asking }: Asking): Promise<Told> {
    this.#lastId += 1;
    const id = this.#lastId;
    if (onProgress !== undefined) this.#progress.set(id, onProgress);
    try {
      const kind = isQuestion ? 'question' : 'operation';
      return await this.#ask({ kind, id, ...asking, isAsync, ...this.#asked() });
    } finally {
      this.#progress.delete(id);
    }
  }

  /** Reads a view of the console. Never rejects. */
  view(path: string, query: string, mayAct: boolean): Promise<Told> {
    return this.#ask({ kind: 'view', path, query, mayAct, ...this.#asked() });
  }

  /** @param onChanged called with what changed; null: nobody listens any more */
  watch(onChanged: ((names: readonly EventName[]) => void) | null): void {
    this.#onChanged = onChanged;
    if (this.#thread !== null) this.#thread.post('watch', onChanged !== null);
    else if (onChanged !== null) this.#thread = this.#start();
  }

  /** What a console shows has changed. */
  changed(names: readonly EventName[]): void {
    this.#onChanged?.(names);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#onChanged = null;
    clearTimeout(this.#again);
    if (this.#thread === null) return;
    this.#thread.post('stop');
    const late = setTimeout(() => void this.#worker?.terminate(), STOP_MS);
    await this.#thread.ended;
    clearTimeout(late);
  }

  #asked() {
    return { unreadable: this.#options.unreadable(), live: this.#options.live() };
  }

  async #ask(ask: Ask): Promise<Told> {
    if (this.#isClosed) return BUSY;
    this.#thread ??= this.#start();
    if (this.#thread.unanswered() >= WAITING_MAX) return BUSY;
    const told = await this.#thread
      .call('ask', ask)
      .catch((error) => ({ ...BUSY, fault: { message: reasonOf(error), isDamage: false } }));
    if (told.fault !== undefined) this.#options.onFault(told.fault);
    return told;
  }

  #start(): ThreadCalls<OperationsCalls> {
    this.#worker = this.#startThread();
    const started = callsTo<OperationsCalls, OperationsEvent>(
      this.#worker,
      'the operations thread',
      (event) => this.#receive(event, started),
    );
    void started.ended.then((fault) => {
      this.#thread = null;
      if (fault !== null && started.unanswered() === 0)
        this.#options.onFault({ message: fault.message, isDamage: false });
      if (this.#onChanged !== null) this.#again = setTimeout(() => this.#startAgain(), AGAIN_AFTER_MS);
    });
    if (this.#onChanged !== null) started.post('watch', true);
    return started;
  }

  #startAgain(): void {
    if (this.#onChanged === null) return;
    this.#thread ??= this.#start();
    // Changes in between were missed.
    this.#onChanged(CHANGES);
  }

  /** Never rejects. */
  async #askLab(asked: AskLab): Promise<LabSaid> {
    try {
      return { kind: 'done', value: await this.#options.lab?.(asked) };
    } catch (error) {
      const code = error instanceof Refused ? error.code : null;
      return { kind: 'failed', code, reason: reasonOf(error) };
    }
  }

  #receive(event: OperationsEvent, thread: ThreadCalls<OperationsCalls>): void {
    const { ingest, denials, onDenied, onSpareStale } = this.#options;
    switch (event.kind) {
      case 'changed':
        this.#onChanged?.(event.names);
        break;
      case 'progress':
        this.#progress.get(event.id)?.(event.text);
        break;
      case 'access':
        ingest.wake();
        break;
      case 'stale':
        onSpareStale(event.reason);
        break;
      case 'deny':
        for (const denied of event.denied) denials.deny(denied);
        onDenied();
        break;
      case 'forget':
        for (const denied of event.denied) denials.forget(denied);
        break;
      case 'ingest': {
        const { id, request } = event;
        const tell = (text: string) => thread.post('ingestSaid', { id, said: { kind: 'progress', text } });
        void ingest
          .ask(request, tell)
          .then((outcome) => thread.post('ingestSaid', { id, said: { kind: 'outcome', outcome } }));
        break;
      }
      case 'lab':
        void this.#askLab(event.asked).then((said) => thread.post('labSaid', { id: event.id, said }));
    }
  }
}

const BUSY = problem(503, 'Wirewatch is busy with other operations. Try again in a moment.', 'unavailable');
