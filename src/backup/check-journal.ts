/** The journal by itself and against the records of files. */
import type { Database } from '../store/database.ts';
import { parseInstant } from '../time.ts';
import type { Findings } from './findings.ts';
import { type JournalLine, journalLines, numberIn, textIn } from './journal-lines.ts';

interface AppliedRecord {
  readonly number: number;
  readonly name: string;
  readonly sha256: string;
  readonly finished_at: number;
}

export const APPLIED = `
  SELECT number, name, sha256, finished_at FROM ingest_file
  WHERE outcome = 'applied' AND settled = 1 AND sha256 IS NOT NULL ORDER BY number`;

/** @param db a reader on detections.db, with a transaction that is older than what is read of the journal here */
export function checkJournal(db: Database, path: string, findings: Findings): void {
  const applied = new Map<number, string>();
  let beganAt: number | null = null;
  let lines = 0;
  for (const line of journalLines(path)) {
    lines += 1;
    if (line.entry === null) {
      if (!isCutOff(line)) findings.add('journal', `the line that begins at byte ${line.at} cannot be read`);
      continue;
    }
    beganAt ??= parseInstant(textIn(line.entry, 'at') ?? '');
    const number = numberIn(line.entry, 'applied');
    if (number !== null) applied.set(number, textIn(line.entry, 'sha256') ?? '');
  }
  const records = db.prepare<unknown[], AppliedRecord>(APPLIED).all();
  if (lines === 0 && records.length > 0) {
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

/** What a crash leaves of a line has no end: the beginning of an object, or room that was never written. */
function isCutOff({ text }: JournalLine): boolean {
  return !text.endsWith('}') && /^(\{[^\0]*)?\0*$/.test(text);
}
