/**
 * Writes the rows and keys that were used, every second in which there are any and at a clean stop. A crash loses what
 * came after the last write: the client has those rows again.
 */
import type { Worker } from 'node:worker_threads';
import { startWorker } from '../packed.ts';
import { callsTo, type ThreadCalls } from '../thread-call.ts';
import { SECOND_MS } from '../time.ts';
import type { DailyRows } from './daily-rows.ts';
import type { KeyUses } from './key-uses.ts';
import type { RequestCounts, UnwrittenCounts } from './request-counts.ts';
import type { Usage } from './usage.ts';
import type { UsageCalls, UsageSettings } from './usage-thread.ts';

export interface UsageKeeper {
  /** Never rejects. During a write, a second call only waits for that one. */
  write(): Promise<void>;
  /** Writes all that is left, and ends the thread. */
  close(): Promise<void>;
}

export interface UsageKeeperOptions {
  readonly rows: DailyRows;
  readonly uses: KeyUses;
  /** Null: requests are not counted. */
  readonly requests: Pick<RequestCounts, 'take' | 'giveBack'> | null;
  readonly writer: UsageWriter;
  /** Called for the first of a row of failures, and with null when a write succeeds again. No count is lost. */
  readonly onFailure: (error: Error | null) => void;
  /** Null: only when `write` is called. */
  readonly everyMs?: number | null;
}

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

/** The first write starts the thread, and the next write restarts one that died. */
export function createUsageWriter(settings: UsageSettings): UsageWriter {
  let worker: Worker | null = null;
  let thread: ThreadCalls<UsageCalls> | null = null;

  function start(): ThreadCalls<UsageCalls> {
    worker = startWorker({ role: 'usage', settings });
    const started = callsTo<UsageCalls>(worker, 'the thread that stores row counts');
    void started.ended.then(() => {
      thread = null;
    });
    return started;
  }

  return {
    write(usage) {
      thread ??= start();
      return thread.call('write', usage);
    },
    async close() {
      await worker?.terminate();
    },
  };
}
