/** What the tests of crashes look at afterwards. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openReader } from '../../src/store/database.ts';
import type { Installation, LogLine } from './appliance.ts';
import { checkStreams } from './streams.ts';

export interface JournalEntry {
  readonly position?: number;
  readonly applied?: number;
  readonly archived?: string;
  readonly sha256?: string;
}

/** A fault, or word of a database that somebody put back. */
export function isComplaint({ level, msg }: LogLine): boolean {
  return level === 'error' || level === 'fatal' || /journal|raised/.test(msg);
}

/** Its lines; one that a crash cut off is none. */
export function journalEntries(data: string): JournalEntry[] {
  return readFileSync(join(data, 'journal'), 'utf8')
    .split('\n')
    .flatMap((line) => {
      try {
        return [JSON.parse(line)];
      } catch {
        return [];
      }
    });
}

/** Every detection, in order; its streams are checked on the way. */
export function detectionsOf({ data }: Installation): unknown[] {
  const db = openReader(join(data, 'detections.db'));
  try {
    checkStreams(db);
    return db.prepare('SELECT id, version, body FROM detection ORDER BY id').all();
  } finally {
    db.close();
  }
}
