/**
 * Has used rows, and which keys were used, written every second in which any were, and once more at a clean stop. A crash forgets what came
 * after the last write, which the client then has again.
 */
import type { Worker } from 'node:worker_threads';
import { startWorker } from '../packed.ts';
import { SECOND_MS } from '../time.ts';
import type { DailyRows } from './daily-rows.ts';
import type { KeyUses } from './key-uses.ts';
import type { RequestCounts, UnwrittenCounts } from './request-counts.ts';
import type { Usage } from './usage.ts';
import type { FromUsage, ToUsage, UsageSettings } from './usage-thread.ts';

export interface UsageKeeper {
  /** Writes what is not written; never rejects. While a write is under way, another waits for that one only. */
  write(): Promise<void>;
  /** Writes all that is left, and ends the thread. */
  close(): Promise<void>;
}

export interface UsageKeeperOptions {
  readonly rows: DailyRows;
  readonly uses: KeyUses;
  /** Requests over time; null: nobody counts them. */
  readonly requests: Pick<RequestCounts, 'take' | 'giveBack'> | null;
  readonly writer: UsageWriter;
  /** Told of the first failure of a row of them; null: it works again. Counts are kept and written then. */
  readonly onFailure: (error: Error | null) => void;
  /** Null: only on demand. */
  readonly everyMs?: number | null;
}

/** What writes; usage-thread.ts on a thread of its own. */
export interface UsageWriter {
  write(usage: Usage): Promise<void>;
  close(): Promise<void>;
}

const NOTHING_COUNTED: UnwrittenCounts = { minutes: [], refusals: [] };

export function createUsageKeeper(options: UsageKeeperOptions): UsageKeeper {
  const { rows, uses: keyUses, requests, writer, onFailure, everyMs = SECOND_MS } = options;
  let underWay: Promise<void> | null = null;
  let isFailing = false;

  async function writeNow(): Promise<void> {
    const counts = rows.unwritten();
    const uses = keyUses.unwritten();
    const counted = requests?.take() ?? NOTHING_COUNTED;
    const news = [counts, uses, counted.minutes, counted.refusals];
    if (news.every(({ length }) => length === 0)) return;
    try {
      await writer.write({ counts, days: rows.days(), uses, requests: counted });
      rows.markWritten(counts);
      keyUses.markWritten(uses);
      if (isFailing) onFailure(null);
      isFailing = false;
    } catch (error) {
      requests?.giveBack(counted);
      if (!isFailing) onFailure(error instanceof Error ? error : new Error(String(error)));
      isFailing = true;
    }
  }

  function write(): Promise<void> {
    underWay ??= writeNow().finally(() => {
      underWay = null;
    });
    return underWay;
  }

  const timer = everyMs === null ? null : setInterval(() => void write(), everyMs);
  timer?.unref();
  return {
    write,
    async close() {
      if (timer !== null) clearInterval(timer);
      // What was counted while a write was under way is not in it.
      await underWay;
      await write();
      await writer.close();
    },
  };
}

/** The thread is started by the first write: without anybody who reads there is none. One that died is started again. */
export function createUsageWriter(settings: UsageSettings): UsageWriter {
  let thread: Worker | null = null;
  let waiting: PromiseWithResolvers<void> | null = null;

  function settle(failure: string | null): void {
    if (failure === null) waiting?.resolve();
    else waiting?.reject(new Error(failure));
    waiting = null;
  }

  function start(): Worker {
    const worker = startWorker({ role: 'usage', settings });
    worker.on('message', ({ failure }: FromUsage) => settle(failure));
    worker.on('error', (error) => settle(error.message));
    worker.on('exit', () => {
      thread = null;
      settle('the thread that stores row counts has ended');
    });
    return worker;
  }

  return {
    write(usage) {
      const message: ToUsage = usage;
      waiting = Promise.withResolvers<void>();
      const { promise } = waiting;
      thread ??= start();
      thread.postMessage(message);
      return promise;
    },
    async close() {
      await thread?.terminate();
    },
  };
}
