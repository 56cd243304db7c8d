/** The connection that requests use to read `detections.db`: opened once the database has applied its whole log. */
import { Refused } from '../refused.ts';
import { type Database, openDatabase } from './database.ts';

export type DetectionsReader = ReturnType<typeof createDetectionsReader>;

/** When a client should try again while detections.db is made anew. */
export const DAMAGE_RETRY_SECONDS = 5;

export function createDetectionsReader(path: string) {
  let db: Database | null = null;
  let reason = 'detections.db is not open yet';
  let code: 'failed' | 'unavailable' = 'failed';
  return {
    /** @throws Refused with the reason while the database cannot be read yet */
    db(): Database {
      if (db !== null) return db;
      // What has ended does not come back by waiting.
      throw new Refused(code, reason, code === 'failed' ? { retryAfterSeconds: DAMAGE_RETRY_SECONDS } : {});
    },
    /** @throws SQLite's error */
    open(): void {
      db ??= openDatabase(path, 'read');
    },
    await(why: string): void {
      reason = why;
    },
    /** Closes it for good: clients get 503. */
    end(why: string): void {
      reason = why;
      code = 'unavailable';
      this.close();
    },
    isOpen: () => db !== null,
    close(): void {
      db?.close();
      db = null;
    },
  };
}
