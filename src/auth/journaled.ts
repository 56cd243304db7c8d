/**
 * What the journal knows of access.db: each change that decides which rows are taken or what they show, and each key
 * that was revoked. An access.db that was put back is told by it what it lacks.
 */
import { dirname } from 'node:path';
import { type Database, writing } from '../store/database.ts';
import { isDiskFull } from '../store/database-errors.ts';
import { dataFolder } from '../store/folder.ts';
import { appendChanged, appendRestored } from '../store/journal.ts';
import { type JournalMark, journalLines, whyNotFrom } from '../store/journal-lines.ts';
import { readMark, setMark } from '../store/journal-mark.ts';
import { parseInstant } from '../time.ts';

const REVOKE = 'UPDATE api_key SET revoked_at = :revoked_at WHERE id = :id AND revoked_at IS NULL';

/** What an access.db that was put back lacked. */
export interface Lacking {
  /** Keys that are revoked again. */
  readonly keys: readonly string[];
  /** Changes, in words, that an operator must make again. */
  readonly changes: readonly string[];
}

/**
 * Writes a change into the journal, as the last step of the transaction that makes it.
 *
 * @param access a writer on access.db; the journal lies beside it
 * @param what in words
 */
export function noteChange(access: Database, what: string, nowMs: number): void {
  const { journal } = dataFolder(dirname(access.name));
  const mark = readMark(access);
  const lost = mark === null ? null : whyNotFrom(journal, mark);
  // The mark that is about to be replaced is the last witness that there was another one.
  if (lost !== null) appendRestored(journal, lost, nowMs);
  setMark(access, appendChanged(journal, what, nowMs));
}

/** Where a change is noted: {@link noteChange}, unless it may yet be given up. */
export type Note = typeof noteChange;

/** Runs `work`, which makes changes and may yet be given up: they are noted when it has come to its end. */
export function notingAtTheEnd<Result>(
  access: Database,
  nowMs: number,
  work: (note: Note) => Result,
): Result {
  const changes: string[] = [];
  const result = work((_, what) => changes.push(what));
  for (const what of changes) noteChange(access, what, nowMs);
  return result;
}

/**
 * Revokes again what the journal says is revoked, and notes how far in the journal access.db has come.
 *
 * On a full disk the note is left out, so that an appliance can start there: the next start reads the same lines
 * again. A revocation is never left out.
 *
 * @throws SQLITE_FULL when there is no room to revoke a key again
 */
export function catchUpAccess(access: Database, journal: string, nowMs: number): Lacking {
  try {
    return catchUp(access, journal, nowMs, setMark);
  } catch (error) {
    if (!isDiskFull(error)) throw error;
    return catchUp(access, journal, nowMs, () => {});
  }
}

function catchUp(access: Database, journal: string, nowMs: number, mark: typeof setMark): Lacking {
  return writing(access, () => {
    const before = readMark(access);
    // In a journal that this database does not know, only what is said of keys can be relied on.
    const isForeign = before !== null && whyNotFrom(journal, before) !== null;
    const from = before === null || isForeign ? 0 : before.bytes;
    const revoke = access.prepare(REVOKE);
    const keys: string[] = [];
    const changes: string[] = [];
    let last: JournalMark | null = null;
    for (const { entry, mark: place } of journalLines(journal, from)) {
      last = place;
      if (typeof entry.changed === 'string' && !isForeign) changes.push(entry.changed);
      if (typeof entry.key_revoked !== 'string') continue;
      const atMs = typeof entry.at === 'string' ? parseInstant(entry.at) : null;
      const { changes: revoked } = revoke.run({ id: entry.key_revoked, revoked_at: atMs ?? nowMs });
      if (revoked > 0) keys.push(entry.key_revoked);
    }
    // Of what a foreign one follows on nothing is known: ingest looks into that, and marks it.
    if (last !== null && !isForeign) mark(access, last);
    return { keys, changes };
  });
}
