/**
 * A copy of a database as it is at one moment, made beside those who read and write it (VACUUM INTO,
 * https://sqlite.org/lang_vacuum.html): written anew row by row, so nothing that was deleted is in it.
 */
import { chmodSync } from 'node:fs';
import { openReader } from './database.ts';
import { syncFile } from './folder.ts';

/**
 * One call, which nothing on its thread can interrupt.
 *
 * @param to no file, in a folder of the caller's own; the copy needs no log beside it, and is on disk afterwards
 * @throws SQLite's error, SQLITE_FULL where there is no room
 */
export function copyDatabase(from: string, to: string): void {
  const source = openReader(from);
  try {
    source.prepare('VACUUM INTO ?').run(to);
  } finally {
    source.close();
  }
  chmodSync(to, 0o600);
  syncFile(to);
}

/** How large a copy made now would be, about: what is in use, in bytes. */
export function copyBytes(from: string): number {
  const source = openReader(from);
  try {
    const pragma = (name: string) => Number(source.pragma(name, { simple: true }));
    return (pragma('page_count') - pragma('freelist_count')) * pragma('page_size');
  } finally {
    source.close();
  }
}
