/** Whether ingest is paused: read for every health response, so that a pause takes effect at once. */
import { statSync } from 'node:fs';
import { readPause } from '../ingest/pause.ts';
import { createFileReader } from '../store/file-reader.ts';

export interface PauseReader {
  /** @throws when access.db cannot be read */
  isPaused(): boolean;
  close(): void;
}

/** @param path of access.db */
export function createPauseReader(path: string): PauseReader {
  const reader = createFileReader(path);
  return {
    isPaused() {
      try {
        const db = reader.db();
        // Throws the error of the system, which the alert shows.
        if (db === null) statSync(path);
        return db !== null && readPause(db) !== null;
      } catch (error) {
        reader.close();
        throw error;
      }
    },
    close: reader.close,
  };
}
