/** The thread that writes `usage.db`. A write waits for the disk: on the main thread every request would wait with it. */
import type { MessagePort } from 'node:worker_threads';
import { reasonOf } from '../refused.ts';
import type { Database } from '../store/database.ts';
import { openUsage, type Usage, writeUsage } from './usage.ts';

export interface UsageSettings {
  /** Of usage.db. */
  readonly path: string;
}

/** Each message is one write, answered when it is done. */
export type ToUsage = Usage;
/** Null: it is written. */
export type FromUsage = { readonly failure: string | null };

export function runUsageWriter(port: MessagePort, { path }: UsageSettings): void {
  let db: Database | null = null;
  port.on('message', (usage: ToUsage) => {
    let failure: string | null = null;
    try {
      db ??= openUsage(path);
      writeUsage(db, usage);
    } catch (error) {
      failure = reasonOf(error);
      // The next write opens it again.
      db?.close();
      db = null;
    }
    const answer: FromUsage = { failure };
    port.postMessage(answer);
  });
}
