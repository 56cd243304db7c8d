/** What the next start will make of a restored state, as far as it can be told from the journal and the archive. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { openReader } from '../store/database.ts';
import type { DataFolder } from '../store/folder.ts';
import { journalLines, numberIn, textIn } from './journal-lines.ts';
import type { JournalChoice } from './restored-journal.ts';

export interface Outlook {
  /** Files that were applied after the backup and are read again. */
  readonly files_to_read: number;
  /** Those of them that are not in the archive, relative to the drop folder. */
  readonly files_missing: readonly string[];
  /** Whether versions come out as clients have seen them, or are raised by 1,000 so that clients keep nothing older. */
  readonly versions: 'same' | 'raised';
  /** Why they are raised; empty where they are not. */
  readonly reasons: readonly string[];
}

const KNOWN_FILES = "SELECT number FROM ingest_file WHERE outcome = 'applied'";

/** @param stage the state that is to be put in place, with its journal */
export function outlook(stage: DataFolder, drop: string, journal: JournalChoice): Outlook {
  const db = openReader(stage.detections);
  let known: Set<number>;
  try {
    const rows = db.prepare<unknown[], { number: number }>(KNOWN_FILES).all();
    known = new Set(rows.map(({ number }) => number));
  } finally {
    db.close();
  }
  const missing: string[] = [];
  let files = 0;
  for (const { entry } of journalLines(stage.journal)) {
    const number = numberIn(entry, 'applied');
    if (number === null || known.has(number)) continue;
    files += 1;
    const archived = textIn(entry, 'archived') ?? '';
    if (statSync(join(drop, archived), { throwIfNoEntry: false })?.isFile() !== true) missing.push(archived);
  }
  const reasons = [
    ...(journal.kind === 'broken' ? [journal.reason] : []),
    ...(missing.length > 0 ? ['files that were applied since are not in the archive'] : []),
  ];
  return {
    files_to_read: files,
    files_missing: missing,
    versions: reasons.length === 0 ? 'same' : 'raised',
    reasons,
  };
}
