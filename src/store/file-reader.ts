/** A reader on a database that other processes make and replace: opened when it is asked for. */

import { statSync } from 'node:fs';
import { type Database, openDatabase } from './database.ts';

export interface FileReader {
  /**
   * The database that lies at the path now; null where there is none. A file that was put in the place of another is
   * opened in its turn: ask anew for each piece of work.
   *
   * @throws SQLite's error
   */
  db(): Database | null;
  close(): void;
}

export function createFileReader(path: string): FileReader {
  let open: { readonly db: Database; readonly ino: number } | null = null;
  const close = () => {
    const closing = open;
    open = null;
    closing?.db.close();
  };
  return {
    db() {
      const ino = statSync(path, { throwIfNoEntry: false })?.ino;
      if (open !== null && open.ino !== ino) close();
      if (ino === undefined) return null;
      open ??= { db: openDatabase(path, 'read'), ino };
      return open.db;
    },
    close,
  };
}
