/**
 * The main thread's side of the console thread, which the first request starts. If it dies, the next request starts it
 * again at once, or a timer if a console waits for changes.
 */
import type { Worker } from 'node:worker_threads';
import { paced } from '../../pace.ts';
import { startWorker } from '../../packed.ts';
import { reasonOf } from '../../refused.ts';
import { callsTo, type ThreadCalls } from '../../thread-call.ts';
import { SECOND_MS } from '../../time.ts';
import { EVENTS, type EventName } from './api.ts';
import { type Ask, type ConsoleCalls, type ConsoleSettings, problem, type Told } from './thread-messages.ts';

export interface ConsoleThread {
  /** Never rejects. */
  ask(ask: Ask): Promise<Told>;
  /** Whether to report changes. */
  watch(on: boolean): void;
  close(): Promise<void>;
}

/** More than all open consoles send at once; further requests are refused at once. */
const WAITING_MAX = 100;
const STOP_MS = 2 * SECOND_MS;
const AGAIN_AFTER_MS = paced(SECOND_MS);
const CHANGES = EVENTS.filter((name) => name !== 'end');

export function createConsoleThread(
  settings: ConsoleSettings,
  onChanged: (events: readonly EventName[]) => void,
  /** Called when the thread dies while no request waits. */
  onFault: (error: Error) => void,
  startThread = () => startWorker({ role: 'console', settings }),
): ConsoleThread {
  let worker: Worker | null = null;
  let thread: ThreadCalls<ConsoleCalls> | null = null;
  let again: NodeJS.Timeout | undefined;
  let isWatched = false;

  function start(): ThreadCalls<ConsoleCalls> {
    worker = startThread();
    const started = callsTo<ConsoleCalls, readonly EventName[]>(worker, 'the console thread', onChanged);
    void started.ended.then((fault) => {
      thread = null;
      if (fault !== null && started.unanswered() === 0) onFault(fault);
      if (isWatched) again = setTimeout(startAgain, AGAIN_AFTER_MS);
    });
    if (isWatched) started.post('watch', true);
    return started;
  }

  function startAgain(): void {
    if (!isWatched) return;
    thread ??= start();
    // Changes in between were missed.
    onChanged(CHANGES);
  }

  return {
    async ask(ask) {
      thread ??= start();
      if (thread.unanswered() >= WAITING_MAX) return BUSY;
      try {
        return await thread.call('ask', ask);
      } catch (error) {
        return { ...BUSY, fault: { message: reasonOf(error), isDamage: false } };
      }
    },
    watch(on) {
      isWatched = on;
      if (thread !== null) thread.post('watch', on);
      else if (on) thread = start();
    },
    async close() {
      isWatched = false;
      clearTimeout(again);
      if (thread === null) return;
      thread.post('stop');
      const late = setTimeout(() => void worker?.terminate(), STOP_MS);
      await thread.ended;
      clearTimeout(late);
    },
  };
}

const BUSY = problem(503, 'The console is busy. Try again in a moment.');
