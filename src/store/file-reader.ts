/** A reader for a database that other processes create and replace: opened when needed. */
import { statSync } from 'node:fs';
import { type Database, openDatabase } from './database.ts';

export function createFileReader(path: string) {
  let open: { readonly db: Database; readonly ino: number } | null = null;
  const close = () => {
    const closing = open;
    open = null;
    closing?.db.close();
  };
  return {
    /** The database; null: there is none. Call it for each piece of work: a file may be replaced. @throws SQLite's error */
    db(): Database | null {
      const ino = statSync(path, { throwIfNoEntry: false })?.ino;
      if (open !== null && open.ino !== ino) close();
      if (ino === undefined) return null;
      open ??= { db: openDatabase(path, 'read'), ino };
      return open.db;
    },
    close,
    [Symbol.dispose]: close,
  };
}
