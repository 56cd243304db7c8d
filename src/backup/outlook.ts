/** What the next start will make of a restored state, as far as it can be told from the journal and the archive. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { shortName } from '../ingest/drop-folder.ts';
import { type Step, type Survey, surveyJournal } from '../ingest/survey.ts';
import { openReader } from '../store/database.ts';
import type { DataFolder } from '../store/folder.ts';
import type { JournalChoice } from './restored-journal.ts';

export interface Outlook {
  /** Files that were applied after the backup and are read again, as far as the journal tells. */
  readonly files_to_read: number;
  /** Those of them that are not in the archive, relative to the drop folder. */
  readonly files_missing: readonly string[];
  /** Whether versions come out as clients have seen them, or are raised by 1,000 so that clients keep nothing older. */
  readonly versions: 'same' | 'raised';
  /** Why they are raised; empty where they are not. */
  readonly reasons: readonly string[];
}

/** @param stage the state that is to be put in place, with its journal */
export function outlook(stage: DataFolder, drop: string, journal: JournalChoice): Outlook {
  const survey = surveyed(stage);
  const applied = survey?.kind === 'behind' ? survey.steps.filter(isApplied) : [];
  const missing = applied.filter((step) => !isThere(drop, step)).map(({ line }) => line.archived);
  const reasons = [
    ...(journal.kind === 'broken' ? [journal.reason] : reasonsOf(survey)),
    ...(missing.length > 0 ? ['files that were applied since are not in the archive'] : []),
  ];
  return {
    files_to_read: applied.length,
    files_missing: missing,
    versions: reasons.length === 0 ? 'same' : 'raised',
    reasons,
  };
}

/** @returns null where the backup is of an earlier version, which knew nothing of the journal */
function surveyed({ detections, journal }: DataFolder): Survey | null {
  const db = openReader(detections);
  try {
    const hasMark = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'journal_mark'").get();
    return hasMark === undefined ? null : surveyJournal(db, journal);
  } finally {
    db.close();
  }
}

function reasonsOf(survey: Survey | null): string[] {
  if (survey === null)
    return ['the backup is of an earlier version, which did not note where in the journal it stands'];
  if (survey.kind === 'even') return [];
  if (survey.kind === 'lost') return [survey.reason];
  // What was changed after the last file was read made no difference to any.
  const lastRead = survey.steps.findLast(({ kind }) => kind !== 'raised')?.mark.bytes ?? 0;
  const isChanged = survey.changes.some((at) => at < lastRead);
  const changed = isChanged ? ['a subscription or a licence was changed since'] : [];
  return [...new Set([...survey.doubts.map(({ reason }) => reason), ...changed])];
}

type AppliedStep = Extract<Step, { kind: 'applied' }>;

function isApplied(step: Step): step is AppliedStep {
  return step.kind === 'applied';
}

/** In the archive, or, where a crash came before that, where it was dealt with. */
function isThere(drop: string, { line }: AppliedStep): boolean {
  const taken = join(drop, '.taken', `${line.applied}.${shortName(line.record.name)}`);
  return [join(drop, line.archived), taken].some(
    (path) => statSync(path, { throwIfNoEntry: false })?.isFile() === true,
  );
}
