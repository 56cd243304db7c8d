/**
 * Writes the counts of used rows, the uses of keys and their networks, once a second and at a clean stop. A crash loses the counts since
 * the last write: those rows do not count against the allowance.
 */
import type { Worker } from 'node:worker_threads';
import { startWorker } from '../packed.ts';
import { callsTo, type ThreadCalls } from '../thread-call.ts';
import { SECOND_MS } from '../time.ts';
import type { DailyRows } from './daily-rows.ts';
import type { KeyUses } from './key-uses.ts';
import type { RequestCounts, UnwrittenCounts } from './request-counts.ts';
import type { SeenKeys } from './seen-keys.ts';
import type { Usage } from './usage.ts';
import type { UsageCalls, UsageSettings } from './usage-thread.ts';

export interface UsageKeeper {
  /** Never rejects. A call during a write waits for that write. */
  write(): Promise<void>;
  /** Writes the rest and ends the thread. */
  close(): Promise<void>;
}

export interface UsageKeeperOptions {
  readonly rows: DailyRows;
  readonly uses: KeyUses;
  readonly seen: Pick<SeenKeys, 'unwritten' | 'markWritten'>;
  /** Null: requests are not counted. */
  readonly requests: Pick<RequestCounts, 'take' | 'giveBack'> | null;
  readonly writer: UsageWriter;
  /** Called at the first of several failures in a row, and with null when a write succeeds again. No count is lost. */
  readonly onFailure: (error: Error | null) => void;
  /** Null: writes only when `write` is called. */
  readonly everyMs?: number | null;
}

export interface UsageWriter {
  write(usage: Usage): Promise<void>;
  close(): Promise<void>;
}

const NOTHING_COUNTED: UnwrittenCounts = { minutes: [], refusals: [] };

export function createUsageKeeper(options: UsageKeeperOptions): UsageKeeper {
  const { rows, uses: keyUses, seen: seenKeys, requests, writer, onFailure, everyMs = SECOND_MS } = options;
  let underWay: Promise<void> | null = null;
  let isFailing = false;

  async function writeNow(): Promise<void> {
    const counts = rows.unwritten();
    const uses = keyUses.unwritten();
    const seen = seenKeys.unwritten();
    const counted = requests?.take() ?? NOTHING_COUNTED;
    const news = [counts, uses, seen, counted.minutes, counted.refusals];
    if (news.every(({ length }) => length === 0)) return;
    try {
      await writer.write({ counts, days: rows.days(), uses, seen, requests: counted });
      rows.markWritten(counts);
      keyUses.markWritten(uses);
      seenKeys.markWritten(seen);
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
      // A write in progress lacks the counts made since it began.
      await underWay;
      await write();
      await writer.close();
    },
  };
}

/** The first write starts the thread; if it dies, the next write restarts it. */
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
