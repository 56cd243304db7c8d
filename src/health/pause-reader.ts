/** Whether ingest is paused, at this moment: read for every answer about health, so that a pause holds at once. */
import { statSync } from 'node:fs';
import { readPause } from '../ingest/subscribers.ts';
import { type Database, openReader } from '../store/database.ts';

export interface PauseReader {
  /** @throws when access.db cannot be read */
  isPaused(): boolean;
  close(): void;
}

/** @param path of access.db; another file that comes to stand there is opened in its turn */
export function createPauseReader(path: string): PauseReader {
  let open: { readonly db: Database; readonly ino: number } | null = null;
  const close = () => {
    const closing = open;
    open = null;
    closing?.db.close();
  };
  return {
    isPaused() {
      try {
        const { ino } = statSync(path);
        if (open !== null && open.ino !== ino) close();
        open ??= { db: openReader(path), ino };
        return readPause(open.db) !== null;
      } catch (error) {
        close();
        throw error;
      }
    },
    close,
  };
}
