/**
 * Files that lie in the archive and are in no record: what is left when the journal does not say what a database
 * lacks. They are taken out of the archive and read as if they had just been dropped, so nothing is lost.
 */
import { type Dirent, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { isErrorCode } from '../refused.ts';
import type { Database } from '../store/database.ts';
import { syncFolder } from '../store/folder.ts';
import { judgeName } from './export-name.ts';
import type { Workshop } from './workshop.ts';

const SELECT_DESTINATIONS = 'SELECT destination FROM ingest_file WHERE destination IS NOT NULL';

/** @returns how many */
export function takeUnrecorded(workshop: Workshop): number {
  const { db, drop, nextNumber } = workshop;
  const recorded = destinations(db);
  let count = 0;
  for (const day of entriesOf(join(drop.root, 'archive'))) {
    if (!day.isDirectory()) continue;
    const folder = join('archive', day.name);
    let isChanged = false;
    for (const entry of entriesOf(join(drop.root, folder))) {
      const name = droppedName(entry.name);
      if (!entry.isFile() || name === null || recorded.has(join(folder, entry.name))) continue;
      renameSync(join(drop.root, folder, entry.name), drop.takenPath(nextNumber(), name));
      count += 1;
      isChanged = true;
    }
    if (isChanged) syncFolder(join(drop.root, folder));
  }
  if (count > 0) syncFolder(join(drop.root, '.taken'));
  return count;
}

/** The notes of rows that were left out lie beside their file, and could pass for a backfill. */
const SKIPPED_NOTES = /\.(ndjson|csv)(\.(gz|zst))?\.skipped\.ndjson$/;

/** The name under which an archived file was dropped: without the number that it got where the name was taken. */
function droppedName(name: string): string | null {
  if (SKIPPED_NOTES.test(name)) return null;
  for (const candidate of [name, name.replace(/\.\d+(\.\d+)?(?=\.(ndjson|csv)(\.(gz|zst))?$)/, '')]) {
    if (judgeName(candidate).kind === 'export') return candidate;
  }
  return null;
}

function destinations(db: Database): ReadonlySet<string> {
  const rows = db.prepare<unknown[], { destination: string }>(SELECT_DESTINATIONS).all();
  return new Set(rows.map(({ destination }) => destination));
}

function entriesOf(path: string): Dirent[] {
  try {
    return readdirSync(path, { withFileTypes: true });
  } catch (error) {
    if (isErrorCode(error, 'ENOENT')) return [];
    throw error;
  }
}
