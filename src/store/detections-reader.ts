/** The connection by which requests read `detections.db`: there once the database is at the end of its log. */

import { Refused } from '../refused.ts';
import { type Database, openDatabase } from './database.ts';

export interface DetectionsReader {
  /** @throws Refused while the database cannot be read yet, with what is being done to it */
  readonly db: () => Database;
  /** Opens it. @throws SQLite's error */
  readonly open: () => void;
  /** Why it cannot be read yet. */
  readonly await: (reason: string) => void;
  readonly isOpen: () => boolean;
  readonly close: () => void;
}

/** A client asks again after so long. */
const RETRY_AFTER_SECONDS = 5;

export function createDetectionsReader(path: string): DetectionsReader {
  let db: Database | null = null;
  let reason = 'detections.db is not open yet';
  return {
    db() {
      if (db !== null) return db;
      throw new Refused('failed', reason, { retryAfterSeconds: RETRY_AFTER_SECONDS });
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
