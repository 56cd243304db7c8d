/** Bringing what stands in a database's log into the database (https://sqlite.org/wal.html#ckpt). */
import type { Database } from './database.ts';

const WAIT_MS = 250;

/**
 * A reader that takes long, as a backup does, is waited for only briefly: what is left is brought over another time.
 *
 * @param how TRUNCATE waits for readers and gives the log's space back; PASSIVE does what it can at once
 */
export function checkpoint(db: Database, how: 'PASSIVE' | 'TRUNCATE'): void {
  const { timeout } = db.prepare<[], { timeout: number }>('PRAGMA busy_timeout').get() ?? { timeout: 0 };
  db.pragma(`busy_timeout = ${WAIT_MS}`);
  try {
    db.pragma(`wal_checkpoint(${how})`);
  } finally {
    db.pragma(`busy_timeout = ${timeout}`);
  }
}
