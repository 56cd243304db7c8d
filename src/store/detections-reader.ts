/** The connection that requests use to read `detections.db`: opened once the database has applied its whole log. */

import { Refused } from '../refused.ts';
import { type Database, openDatabase } from './database.ts';

export interface DetectionsReader {
  /** @throws Refused with the reason while the database cannot be read yet */
  readonly db: () => Database;
  /** Opens it. @throws SQLite's error */
  readonly open: () => void;
  /** Sets why it cannot be read yet. */
  readonly await: (reason: string) => void;
  readonly isOpen: () => boolean;
  readonly close: () => void;
}

/** When a client should try again while detections.db is made anew. */
export const DAMAGE_RETRY_SECONDS = 5;

export function createDetectionsReader(path: string): DetectionsReader {
  let db: Database | null = null;
  let reason = 'detections.db is not open yet';
  return {
    db() {
      if (db !== null) return db;
      throw new Refused('failed', reason, { retryAfterSeconds: DAMAGE_RETRY_SECONDS });
    },
    open() {
      db ??= openDatabase(path, 'read');
    },
    await(why) {
      reason = why;
    },
    isOpen: () => db !== null,
    close() {
      db?.close();
      db = null;
    },
  };
}
