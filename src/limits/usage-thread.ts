/**
 * The thread that writes used rows to `access.db`. A commit waits for the disk, and for commands that write at the
 * same time: on the main thread every request would wait with it.
 */
import type { MessagePort } from 'node:worker_threads';
import { reasonOf } from '../refused.ts';
import { openAccess } from '../store/access.ts';
import { openReader } from '../store/database.ts';
import { dataFolder } from '../store/folder.ts';
import { readUsage, type Usage, writeUsage } from './usage.ts';

export interface UsageSettings {
  /** The data folder. */
  readonly data: string;
}

/** Each message is one write, answered when it is done. */
export type ToUsage = Usage;
/** Null: it is written. */
export type FromUsage = { readonly failure: string | null };

export function runUsageWriter(port: MessagePort, settings: UsageSettings): void {
  port.on('message', (usage: ToUsage) => {
    const answer: FromUsage = { failure: write(settings.data, usage) };
    port.postMessage(answer);
  });
}

/** @returns why it could not be written; null when it was */
function write(data: string, usage: Usage): string | null {
  try {
    requireStore(data);
    // Opened anew for each write: an operator may have put another file in the place of a broken one, and a handle
    // that stayed open would go on writing to what is no longer there.
    const db = openAccess(data);
    try {
      writeUsage(db, usage);
    } finally {
      db.close();
    }
    return null;
  } catch (error) {
    return reasonOf(error);
  }
}

/**
 * To open for writing makes a store of an empty file. Here that would turn "keys cannot be checked" into "no such
 * key", and clients would give up.
 */
function requireStore(data: string): void {
  const db = openReader(dataFolder(data).access);
  try {
    readUsage(db);
  } finally {
    db.close();
  }
}
