/**
 * Has the counts of the appliance written every five seconds, and at a clean stop. A crash loses the counts since the
 * last write: those rows do not count against the allowance.
 */
import { paced } from '../pace.ts';
import { SECOND_MS } from '../time.ts';

export interface UsageKeeper {
  /** Never rejects. A call during a write waits for that write. */
  write(): Promise<void>;
  /** Writes the rest. */
  close(): Promise<void>;
}

export interface UsageKeeperOptions {
  /** The content of the file, as it is to be now. */
  readonly text: () => string;
  readonly write: (text: string) => Promise<void>;
  /** Called at the first of several failures in a row, and with null when a write succeeds again. No count is lost. */
  readonly onFailure: (error: Error | null) => void;
  /** Null: writes only when `write` is called. */
  readonly everyMs?: number | null;
}

const WRITE_EVERY_MS = paced(5 * SECOND_MS);

export function createUsageKeeper(options: UsageKeeperOptions): UsageKeeper {
  const { text, onFailure, everyMs = WRITE_EVERY_MS } = options;
  let underWay: Promise<void> | null = null;
  let isFailing = false;
  /** Compared as it is, since most runs of a quiet appliance change nothing. */
  let written: string | null = null;

  async function writeNow(): Promise<void> {
    const content = text();
    if (content === written) return;
    try {
      await options.write(content);
      written = content;
      if (isFailing) onFailure(null);
      isFailing = false;
    } catch (error) {
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
    },
  };
}
