/** How `detections.db` is opened for writing: by the thread that ingests alone. */
import { randomBytes } from 'node:crypto';
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type Database, open } from './database.ts';
import { DETECTIONS_SCHEMA } from './detections-schema.ts';
import { makeSchema } from './schema.ts';
import { openWriter } from './writer.ts';

/**
 * `synchronous=NORMAL`: what a power cut takes from it, the log gives back.
 *
 * @throws UnknownSchema; SQLite's errors where it is damaged
 */
export function openDetections(path: string): Database {
  const db = openWriter(path, DETECTIONS_SCHEMA);
  db.pragma('synchronous = NORMAL');
  return db;
}

const SCRATCH = /^scratch-[0-9a-f]+\.db$/;
const SCRATCH_CACHE_KIB = 32 * 1024;

/**
 * Opens a new database of the same tables that is needed for a while only, in the data folder, where the room is. It has
 * no name any more once it is open, so that a crash leaves nothing; where the system keeps the name of an open file, the
 * next one removes it.
 */
export function openScratch(root: string): { readonly db: Database; readonly close: () => void } {
  for (const name of readdirSync(root)) if (SCRATCH.test(name)) tryRemove(join(root, name));
  const path = join(root, `scratch-${randomBytes(8).toString('hex')}.db`);
  const db = open(path, {});
  const close = () => {
    db.close();
    tryRemove(path);
  };
  try {
    // Nothing of it has to survive anything.
    db.pragma('journal_mode = OFF');
    db.pragma('synchronous = OFF');
    db.pragma('locking_mode = EXCLUSIVE');
    db.pragma(`cache_size = -${SCRATCH_CACHE_KIB}`);
    makeSchema(db, DETECTIONS_SCHEMA);
    tryRemove(path);
    return { db, close };
  } catch (error) {
    close();
    throw error;
  }
}

function tryRemove(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // It is open, or not ours to remove.
  }
}
