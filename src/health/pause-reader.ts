/** Whether ingest is paused, at this moment: read for every answer about health, so that a pause holds at once. */
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
        // Throws the system's own error, which the alert shows.
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
