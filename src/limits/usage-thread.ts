/** The thread that writes `usage.db`. A write waits for the disk: on the main thread every request would wait with it. */
import type { MessagePort } from 'node:worker_threads';
import type { Database } from '../store/database.ts';
import { serveCalls } from '../thread-call.ts';
import { openUsage, type Usage, writeUsage } from './usage.ts';

export interface UsageSettings {
  /** Of usage.db. */
  readonly path: string;
}

export interface UsageCalls {
  write(usage: Usage): void;
}

export function runUsageWriter(port: MessagePort, { path }: UsageSettings): void {
  let db: Database | null = null;
  serveCalls<UsageCalls>(port, {
    write(usage) {
      try {
        db ??= openUsage(path);
        writeUsage(db, usage);
      } catch (error) {
        // The next write opens it again.
        db?.close();
        db = null;
        throw error;
      }
    },
  });
}
