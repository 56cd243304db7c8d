/**
 * The connection that requests use to read `detections.db`. They may once the database has applied its whole log; the first
 * of them opens it, and where that fails, the next one tries again.
 */
import { Refused, reasonOf } from '../refused.ts';
import { type Database, openDatabase } from './database.ts';

export type DetectionsReader = ReturnType<typeof createDetectionsReader>;

/** When a client should try again while detections.db is made anew. */
export const DAMAGE_RETRY_SECONDS = 5;

export function createDetectionsReader(path: string) {
  let db: Database | null = null;
  let isReleased = false;
  let reason = 'detections.db is not open yet';
  let hasEnded = false;
  /** @throws Refused `unavailable`: what has ended does not come back by waiting */
  function requireNotEnded(): void {
    if (hasEnded) throw new Refused('unavailable', reason);
  }
  return {
    /** @throws Refused with the reason while the database cannot be read yet; SQLite's error */
    db(): Database {
      requireNotEnded();
      if (isReleased) db ??= openDatabase(path, 'read');
      if (db !== null) return db;
      throw new Refused('failed', reason, { retryAfterSeconds: DAMAGE_RETRY_SECONDS });
    },
    requireNotEnded,
    /** Why the database cannot be read now; null when it can. */
    unreadable(): string | null {
      try {
        this.db();
        return null;
      } catch (error) {
        return `detections.db cannot be read yet: ${reasonOf(error)}`;
      }
    },
    release(): void {
      isReleased = true;
    },
    await(why: string): void {
      reason = why;
    },
    /** Closes it for good: clients get 503. */
    end(why: string): void {
      reason = why;
      hasEnded = true;
      this.close();
    },
    close(): void {
      isReleased = false;
      db?.close();
      db = null;
    },
  };
}
