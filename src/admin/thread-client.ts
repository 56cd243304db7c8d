/**
 * The main thread's side of the operations thread, which the first request starts. If it dies, the next request starts
 * it again.
 */
import type { Worker } from 'node:worker_threads';
import { createSessions } from '../auth/console-sessions.ts';
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
  type AskView,
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
  readonly onSpareStale: (reason: string) => void;
  readonly onFault: (fault: { readonly message: string; readonly isDamage: boolean }) => void;
}

export type Operations = ReturnType<typeof createOperations>;

export function createOperations(
  options: OperationsOptions,
  startThread = () => startWorker({ role: 'operations', settings: options.settings }),
) {
  const { settings, ingest, denials, onFault } = options;
  const sessions = createSessions();
  let thread: (ThreadCalls<OperationsCalls> & { readonly worker: Worker }) | null = null;
  /** A request in the last moment would start the thread again, and the process would not end. */
  let isClosed = false;
  const served: Handlers<MainCalls> = {
    ingest: (request, tell) => ingest.ask(request, tell),
    promote: (by) => ingest.promote(by),
    lab: (asked) => options.lab?.(asked),
    link: (link) => sessions.addLink(link),
    endSessions: () => sessions.endAll(),
    written: () => ingest.wake(),
    stale: options.onSpareStale,
    deny(denied) {
      denials.deny(denied);
      options.onDenied();
    },
    forget(denied) {
      for (const denial of denied) denials.forget(denial);
    },
  };

  function start() {
    const worker = startThread();
    const calls = callsTo<OperationsCalls>(worker, 'the operations thread');
    serveCalls<MainCalls>(worker, served);
    void calls.ended.then((fault) => {
      thread = null;
      if (fault !== null && calls.unanswered() === 0) onFault({ message: fault.message, isDamage: false });
    });
    return { ...calls, worker };
  }

  async function ask(call: (calls: ThreadCalls<OperationsCalls>, live: Live) => Promise<Told>, max: number) {
    if (isClosed) return BUSY;
    thread ??= start();
    if (thread.unanswered() >= max) return BUSY;
    const told = await call(thread, options.live()).catch((error) => {
      return { ...BUSY, fault: { message: reasonOf(error), isDamage: false } };
    });
    if (told.fault !== undefined) onFault(told.fault);
    return told;
  }

  return {
    settings,
    sessions,
    /** Runs an operation. Never rejects. */
    run: (asked: AskOperation, tell: (progress: string) => void = () => {}) =>
      ask(
        ({ call }, live) => call('operate', { ...asked, live }, tell),
        asked.way === 'command' ? WAITING_MAX_OF_COMMANDS : WAITING_MAX,
      ),
    /** Reads a view of the console. Never rejects. */
    view: (asked: AskView) => ask(({ call }, live) => call('view', { ...asked, live }), WAITING_MAX),
    async close(): Promise<void> {
      isClosed = true;
      if (thread === null) return;
      const { worker, ended, post } = thread;
      post('stop');
      const late = setTimeout(() => void worker.terminate(), STOP_MS);
      await ended;
      clearTimeout(late);
    },
  };
}

const BUSY = problem(503, 'Wirewatch is busy with other operations. Try again in a moment.', 'unavailable');
