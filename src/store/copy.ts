/**
 * A copy of a database as it is at one moment, made beside those who read and write it.
 *
 * It is made page by page, and not by VACUUM INTO, which is one call that nothing can interrupt or slow down: an
 * appliance that is to stop would wait for it. The read transaction that is held keeps the moment: without it every
 * commit of a writer would begin the copy anew (https://sqlite.org/backup.html).
 */
import { chmodSync, closeSync, fsyncSync, openSync } from 'node:fs';
import { openReader, openUnshared } from './database.ts';

/** A megabyte of our pages: a few milliseconds. */
const STEP_PAGES = 64;

/**
 * @param to no file, in a folder of the caller's own; the copy needs no log beside it, and is on disk afterwards
 * @param onStep told of each step; it may wait, to leave the disk to others
 * @throws SQLite's error, SQLITE_FULL where there is no room
 */
export async function copyDatabase(
  from: string,
  to: string,
  onStep: (pages: { readonly done: number; readonly total: number }) => void,
): Promise<void> {
  const source = openReader(from);
  try {
    source.exec('BEGIN');
    source.prepare('SELECT count(*) FROM sqlite_schema').get();
    await source.backup(to, {
      progress({ totalPages, remainingPages }) {
        onStep({ done: totalPages - remainingPages, total: totalPages });
        return STEP_PAGES;
      },
    });
    source.exec('COMMIT');
  } finally {
    source.close();
  }
  chmodSync(to, 0o600);
  const copy = openUnshared(to);
  try {
    // The log belongs to the original: a copy that stands for itself is opened by readers that may not write.
    copy.pragma('journal_mode = DELETE');
  } finally {
    copy.close();
  }
  syncFile(to);
}

/** Makes a file's content durable. */
export function syncFile(path: string): void {
  const file = openSync(path, 'r+');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
