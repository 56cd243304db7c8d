/** The journal by itself, against the records of files, and against what the databases know of it. */
import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs';
import { ROOT } from '../ingest/survey.ts';
import type { Database } from '../store/database.ts';
import { journalLines, numberIn, parseLine, whyNotFrom } from '../store/journal-lines.ts';
import { readMark } from '../store/journal-mark.ts';
import { parseInstant } from '../time.ts';
import type { Findings } from './findings.ts';

interface AppliedRecord {
  readonly number: number;
  readonly name: string;
  readonly sha256: string;
  readonly finished_at: number;
}

const APPLIED = `
  SELECT number, name, sha256, finished_at FROM ingest_file
  WHERE outcome = 'applied' AND settled = 1 AND sha256 IS NOT NULL ORDER BY number`;
const HAS_MARK = "SELECT 1 FROM sqlite_schema WHERE name = 'journal_mark'";

/** What cannot be read is looked at up to here; the rest of it says no more. */
const UNREADABLE_BYTES_MAX = 1024 * 1024;

/** @param db a reader on detections.db, with a transaction that is older than what is read of the journal here */
export function checkJournal(db: Database, path: string, findings: Findings): void {
  const applied = new Map<number, string>();
  let beganAt: number | null = null;
  let end = 0;
  for (const line of journalLines(path)) {
    if (line.start > end) checkUnreadable(path, end, line.start, findings);
    end = line.end;
    const { at, sha256 } = line.entry;
    if (typeof at === 'string') beganAt ??= parseInstant(at);
    // Versions were raised because what it says before is not of this database.
    if (line.entry.raised !== undefined && line.entry.after === ROOT) {
      beganAt = numberIn(line.entry, 'raised_at');
      applied.clear();
    }
    const number = numberIn(line.entry, 'applied');
    if (number > 0) applied.set(number, String(sha256));
  }
  if (existsSync(path)) checkUnreadable(path, end, null, findings);
  const records = db.prepare<unknown[], AppliedRecord>(APPLIED).all();
  if (end === 0 && records.length > 0) {
    findings.add('journal', `${path} is missing or empty, and ${records.length} files were applied`);
    return;
  }
  for (const { number, name, sha256, finished_at } of records) {
    const named = applied.get(number);
    // A journal that was begun later tells nothing of what was before it.
    if (named === undefined && finished_at < (beganAt ?? 0)) continue;
    if (named === undefined)
      findings.add('journal', `it does not name file ${number}, ${name}, which was applied`);
    else if (named !== sha256)
      findings.add('journal', `it names another content for file ${number}, ${name}, than its record`);
  }
}

/** Whether the journal goes on from where a database stands; one of an earlier version does not know. */
export function checkMark(
  db: Database,
  name: 'detections.db' | 'access.db',
  journal: string,
  findings: Findings,
): void {
  if (db.prepare(HAS_MARK).get() === undefined) return;
  const mark = readMark(db);
  const reason = mark === null ? null : whyNotFrom(journal, mark);
  if (reason !== null) findings.add('journal mark', `${name}: ${reason}`);
}

/** @param to null: the end of the file, where lines may have come since, and one may be being written */
function checkUnreadable(path: string, from: number, to: number | null, findings: Findings): void {
  const file = openSync(path, 'r');
  try {
    const length = Math.min((to ?? fstatSync(file).size) - from, UNREADABLE_BYTES_MAX);
    const bytes = Buffer.alloc(Math.max(0, length));
    const read = readSync(file, bytes, 0, bytes.length, from);
    let at = from;
    for (const line of bytes.toString('latin1', 0, read).split('\n').slice(0, -1)) {
      if (!isCutOff(line) && parseLine(line) === null)
        findings.add('journal', `the line that begins at byte ${at} cannot be read`);
      at += line.length + 1;
    }
  } finally {
    closeSync(file);
  }
}

/** What a crash leaves of a line has no end: the beginning of an object, or room that was never written. */
function isCutOff(line: string): boolean {
  return !line.endsWith('}') && /^(\{[^\0]*)?\0*$/.test(line);
}
