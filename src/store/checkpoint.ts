/** Bringing what stands in a database's log into the database (https://sqlite.org/wal.html#ckpt). */
import type { Database } from './database.ts';

const WAIT_MS = 250;

interface Checkpointed {
  readonly busy: number;
  /** Frames of the log, and how many of them are in the database file. */
  readonly log: number;
  readonly checkpointed: number;
}

/**
 * A reader that takes long, as a backup does, is waited for only briefly: what is left is brought over another time.
 *
 * @param how TRUNCATE waits for readers and gives the log's space back; PASSIVE does what it can at once
 * @returns whether all of the log is in the database file
 */
export function checkpoint(db: Database, how: 'PASSIVE' | 'TRUNCATE'): boolean {
  const { timeout } = db.prepare<[], { timeout: number }>('PRAGMA busy_timeout').get() ?? { timeout: 0 };
  db.pragma(`busy_timeout = ${WAIT_MS}`);
  try {
    const [done] = db.prepare<[], Checkpointed>(`PRAGMA wal_checkpoint(${how})`).all();
    return done?.busy === 0 && done.log === done.checkpointed;
  } finally {
    db.pragma(`busy_timeout = ${timeout}`);
  }
}
