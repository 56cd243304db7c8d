/**
 * The main thread's side of the console thread, which the first request starts. If it dies, the next request starts it
 * again at once, or a timer if a console waits for changes.
 */
import type { Worker } from 'node:worker_threads';
import { paced } from '../../pace.ts';
import { startWorker } from '../../packed.ts';
import { SECOND_MS } from '../../time.ts';
import { EVENTS, type EventName } from './api.ts';
import {
  type Ask,
  type ConsoleSettings,
  type FromConsole,
  problem,
  type ToConsole,
  type Told,
} from './thread-messages.ts';

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
  const waiting = new Map<number, (told: Told) => void>();
  let thread: Worker | null = null;
  let again: NodeJS.Timeout | undefined;
  let isWatched = false;
  let last = 0;

  function start(): Worker {
    const worker = startThread();
    worker.on('message', (message: FromConsole) => {
      if (message.kind === 'changed') return onChanged(message.events);
      const { kind: _, id, ...told } = message;
      waiting.get(id)?.(told);
      waiting.delete(id);
    });
    let fault = 'the thread of the console has ended';
    worker.on('error', (error) => {
      fault = error.message;
      if (waiting.size === 0) onFault(error);
    });
    worker.on('exit', () => {
      thread = null;
      for (const settle of waiting.values()) settle({ ...BUSY, fault: { message: fault, isDamage: false } });
      waiting.clear();
      if (isWatched) again = setTimeout(startAgain, AGAIN_AFTER_MS);
    });
    if (isWatched) send(worker, { kind: 'watch', on: true });
    return worker;
  }

  function startAgain(): void {
    if (!isWatched) return;
    thread ??= start();
    // Changes in between were missed.
    onChanged(CHANGES);
  }

  return {
    ask(ask) {
      if (waiting.size >= WAITING_MAX) return Promise.resolve(BUSY);
      last += 1;
      const id = last;
      return new Promise((resolve) => {
        waiting.set(id, resolve);
        thread ??= start();
        send(thread, { kind: 'ask', id, ask });
      });
    },
    watch(on) {
      isWatched = on;
      if (thread !== null) send(thread, { kind: 'watch', on });
      else if (on) thread = start();
    },
    async close() {
      isWatched = false;
      clearTimeout(again);
      const ending = thread;
      if (ending === null) return;
      const ended = new Promise((resolve) => ending.once('exit', resolve));
      send(ending, { kind: 'stop' });
      const late = setTimeout(() => void ending.terminate(), STOP_MS);
      await ended;
      clearTimeout(late);
    },
  };
}

const BUSY = problem(503, 'The console is busy. Try again in a moment.');

function send(worker: Worker, message: ToConsole): void {
  worker.postMessage(message);
}
