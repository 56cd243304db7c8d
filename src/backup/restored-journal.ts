/**
 * Which journal a restored installation goes on with.
 *
 * The one that was kept in the data folder since the backup, where it begins with all that the backup's has: then it
 * tells what happened since, in its order. Otherwise the backup's, with a line that says that things may be missing,
 * so that the next start raises versions. What else is left of the old state is still a witness of what must not
 * happen again: its positions are not given out a second time, and the keys that it knows as revoked stay revoked.
 */
import { closeSync, copyFileSync, existsSync, fstatSync, openSync, readSync } from 'node:fs';
import { lastPosition } from '../ingest/apply.ts';
import { openReader } from '../store/database.ts';
import type { DataFolder } from '../store/folder.ts';
import { appendKeyRevoked, appendPosition, appendRestored, readJournalEnd } from '../store/journal.ts';
import { journalIdentity, journalLines } from '../store/journal-lines.ts';

const COMPARED_BYTES = 1024 * 1024;

const REVOKED = 'SELECT id FROM api_key WHERE revoked_at IS NOT NULL';
const NOT_REVOKED = 'SELECT id FROM api_key WHERE revoked_at IS NULL';

export type JournalChoice =
  /** The journal that was there goes on from the backup's. */
  | { readonly kind: 'continued' }
  /** What happened since the backup is not known. */
  | { readonly kind: 'broken'; readonly reason: string };

/**
 * Leaves in `stage` the journal that the restored installation goes on with.
 *
 * @param stage the unpacked backup
 * @param folder the data folder, as it is before anything is moved
 */
export function chooseJournal(stage: DataFolder, folder: DataFolder, nowMs: number): JournalChoice {
  const reason = whyBroken(folder.journal, stage.journal);
  if (reason === null) {
    copyFileSync(folder.journal, stage.journal);
    // A command that revoked a key may have been killed before it could say so in the journal.
    const { inDatabase, inJournal } = revokedSince(stage, folder);
    for (const id of inDatabase.difference(inJournal)) appendKeyRevoked(stage.journal, id, nowMs);
    return { kind: 'continued' };
  }
  const position = highestPosition(folder);
  if (position > readJournalEnd(stage.journal).position) appendPosition(stage.journal, position);
  const { inDatabase, inJournal } = revokedSince(stage, folder);
  for (const id of inDatabase.union(inJournal)) appendKeyRevoked(stage.journal, id, nowMs);
  appendRestored(stage.journal, reason, nowMs);
  return { kind: 'broken', reason };
}

/** @returns in words why the journal that is there does not go on from the backup's; null when it does */
function whyBroken(live: string, backedUp: string): string | null {
  if (!existsSync(live)) return 'the journal that was kept since the backup is not there';
  if (existsSync(backedUp) && journalIdentity(live) !== journalIdentity(backedUp))
    return 'the journal that is there is another one than that of the backup';
  if (!existsSync(backedUp) || beginsWith(live, backedUp)) return null;
  return 'the journal that is there does not go on from that of the backup';
}

function beginsWith(path: string, beginning: string): boolean {
  const file = openSync(path, 'r');
  const other = openSync(beginning, 'r');
  try {
    const { size } = fstatSync(other);
    if (fstatSync(file).size < size) return false;
    const [here, there] = [Buffer.alloc(COMPARED_BYTES), Buffer.alloc(COMPARED_BYTES)];
    for (let at = 0; at < size; ) {
      const length = Math.min(COMPARED_BYTES, size - at);
      const read = readSync(file, here, 0, length, at);
      if (read === 0 || readSync(other, there, 0, read, at) !== read) return false;
      if (!here.subarray(0, read).equals(there.subarray(0, read))) return false;
      at += read;
    }
    return true;
  } finally {
    closeSync(file);
    closeSync(other);
  }
}

/** Of what is left of the old state; a part that cannot be read tells nothing. */
function highestPosition(folder: DataFolder): number {
  const inJournal = readable(0, () => readJournalEnd(folder.journal).position);
  const inDatabase = readable(0, () => {
    if (!existsSync(folder.detections)) return 0;
    const db = openReader(folder.detections);
    try {
      return lastPosition(db);
    } finally {
      db.close();
    }
  });
  return Math.max(inJournal, inDatabase);
}

/** Keys that the backup still lets in, and that the old state, by its database or its journal, does not. */
function revokedSince(
  stage: DataFolder,
  folder: DataFolder,
): Record<'inDatabase' | 'inJournal', ReadonlySet<string>> {
  const alive = keyIds(stage.access, NOT_REVOKED);
  const ended = new Set(readable([], () => keyIds(folder.access, REVOKED)));
  const lines = readable([], () => [...journalLines(folder.journal)]);
  const named = new Set(lines.map(({ entry }) => entry.key_revoked));
  return {
    inDatabase: new Set(alive.filter((id) => ended.has(id))),
    inJournal: new Set(alive.filter((id) => named.has(id))),
  };
}

function keyIds(path: string, sql: string): string[] {
  if (!existsSync(path)) return [];
  const db = openReader(path);
  try {
    return db
      .prepare<unknown[], { id: string }>(sql)
      .all()
      .map(({ id }) => id);
  } finally {
    db.close();
  }
}

function readable<Value>(otherwise: Value, read: () => Value): Value {
  try {
    return read();
  } catch {
    return otherwise;
  }
}
