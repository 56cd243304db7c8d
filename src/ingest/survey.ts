/**
 * What the database lacks of the journal: the operations behind its mark, in their order.
 *
 * An operation names the one that it follows on. So one that was never committed, followed by another attempt, is
 * told from one that was, and a line that is gone is noticed.
 */
import { existsSync } from 'node:fs';
import type { Database } from '../store/database.ts';
import {
  type JournalLine,
  type JournalMark,
  journalLines,
  numberIn,
  whyNotFrom,
} from '../store/journal-lines.ts';
import { readMark } from '../store/journal-mark.ts';
import { isUnreadable, type Operation, operationOf } from './operations.ts';

const SELECT_IS_USED = `
  SELECT EXISTS (SELECT 1 FROM ingest_file) OR EXISTS (SELECT 1 FROM stream_row)
    OR EXISTS (SELECT 1 FROM export_window) AS used`;
const SELECT_APPLIED = "SELECT number FROM ingest_file WHERE outcome = 'applied'";

/** What a raise follows on that was made because the journal did not say what the database lacked. */
export const ROOT = 0;

/** An operation that the database lacks. */
export type Step = Operation & { readonly mark: JournalMark };

/**
 * Why it is not proven that versions come out as they were, and where in the journal. A raise that stands behind it
 * makes up for it.
 */
export interface Doubt {
  readonly at: number;
  readonly reason: string;
}

export type Survey =
  /** Nothing is lacking, and this is where the database is; null where there is no journal yet. */
  | { readonly kind: 'even'; readonly mark: JournalMark | null }
  | {
      readonly kind: 'behind';
      /** Where the database is. */
      readonly mark: JournalMark;
      readonly steps: readonly Step[];
      readonly doubts: readonly Doubt[];
      /** Where subscriptions or licences were changed in between. */
      readonly changes: readonly number[];
    }
  /** The journal does not say what the database lacks. */
  | { readonly kind: 'lost'; readonly reason: string };

/** @param db of detections.db */
export function surveyJournal(db: Database, journal: string): Survey {
  const isUsed = isInUse(db);
  const mark = readMark(db);
  const survey = mark === null ? surveyUnmarked(db, journal, isUsed) : surveyMarked(journal, mark);
  if (survey.kind !== 'behind' || isUsed) return survey;
  // There was nothing yet for which changes before the first operation could matter.
  const begin = survey.steps[0]?.mark.bytes ?? 0;
  return { ...survey, changes: survey.changes.filter((at) => at > begin) };
}

/** Whether anything was ever taken in. */
export function isInUse(db: Database): boolean {
  return db.prepare<unknown[], { used: number }>(SELECT_IS_USED).get()?.used === 1;
}

function surveyMarked(journal: string, mark: JournalMark): Survey {
  const reason = whyNotFrom(journal, mark);
  return reason === null ? surveyFrom(journal, mark) : { kind: 'lost', reason };
}

function surveyFrom(journal: string, from: JournalMark): Survey {
  const steps: Step[] = [];
  const doubts: Doubt[] = [];
  const changes: number[] = [];
  for (const line of journalLines(journal, from.bytes)) {
    const doubt = doubtIn(line);
    if (doubt !== null) doubts.push(doubt);
    if (line.entry.changed !== undefined) changes.push(line.end);
    const operation = operationOf(line.entry);
    if (operation === null) {
      if (isUnreadable(line.entry))
        doubts.push({ at: line.end, reason: 'a line of the journal cannot be understood' });
      continue;
    }
    const { after } = operation.line;
    if (after === ROOT) {
      doubts.push({ at: line.end, reason: 'the journal was begun again since' });
    } else {
      // What another attempt followed was not committed.
      while ((steps.at(-1)?.mark.bytes ?? 0) > after) steps.pop();
      if (after !== (steps.at(-1)?.mark.bytes ?? from.bytes))
        doubts.push({ at: line.start, reason: 'the journal lacks lines' });
    }
    steps.push({ ...operation, mark: line.mark });
  }
  const isEven = steps.length === 0 && doubts.length === 0;
  return isEven ? { kind: 'even', mark: from } : { kind: 'behind', mark: from, steps, doubts, changes };
}

/** A new database, or one of the first version, which had no marks. */
function surveyUnmarked(db: Database, journal: string, isUsed: boolean): Survey {
  if (!existsSync(journal)) {
    return isUsed ? { kind: 'lost', reason: 'the journal is missing' } : { kind: 'even', mark: null };
  }
  const [first] = journalLines(journal);
  if (!isUsed && (first === undefined || first.entry.journal !== undefined)) {
    return first === undefined ? { kind: 'even', mark: null } : surveyFrom(journal, first.mark);
  }
  const known = new Set(
    db
      .prepare<unknown[], { number: number }>(SELECT_APPLIED)
      .all()
      .map(({ number }) => number),
  );
  let last: JournalMark | null = null;
  let reason: string | null = null;
  for (const line of journalLines(journal)) {
    last = line.mark;
    const applied = numberIn(line.entry, 'applied');
    const lacks = applied > 0 && !known.has(applied);
    if (lacks)
      reason ??= `file ${applied} of the journal is not in the database, which is of an earlier version`;
    if (operationOf(line.entry)?.kind === 'raised') reason ??= 'versions were raised since';
    reason ??= doubtIn(line)?.reason ?? null;
  }
  if (reason !== null) return { kind: 'lost', reason };
  return last === null ? { kind: 'lost', reason: 'the journal is empty' } : { kind: 'even', mark: last };
}

/** What a restore said of itself. */
function doubtIn({ entry, end }: JournalLine): Doubt | null {
  if (entry.restored === undefined || entry.proven !== false) return null;
  const reason = typeof entry.reason === 'string' ? entry.reason : 'it was restored';
  return { at: end, reason };
}
