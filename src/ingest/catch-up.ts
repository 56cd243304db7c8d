/**
 * Catching up: at a start, before anything else, the database is led to where the journal is.
 *
 * Mostly nothing is lacking, or the one operation that a crash cut off. Where an older database was put back,
 * everything since is done again, in its order, so that versions come out as clients know them. Where that is not
 * proven, versions are raised once by 1,000 first: a line in the journal and a row in the database, before anything
 * that is not proven is committed. Every step is a transaction that moves the mark, so a crash goes on where it was.
 */
import { join } from 'node:path';
import { Refused } from '../refused.ts';
import { writing } from '../store/database.ts';
import { isThere } from '../store/folder.ts';
import { appendEntry, beginJournal } from '../store/journal.ts';
import { type JournalMark, journalLines, numberIn, whyNotFrom } from '../store/journal-lines.ts';
import { readMark, setMark } from '../store/journal-mark.ts';
import { formatMs } from '../time.ts';
import { isFileError, plainError } from './faults.ts';
import { type FileRecord, saveFile, unsettledFiles } from './file-record.ts';
import { operationOf } from './operations.ts';
import { readRaises, saveRaise } from './raises.ts';
import { ReadAgain } from './read-again.ts';
import { type Doubt, isInUse, ROOT, type Step, type Survey, surveyJournal } from './survey.ts';
import { takeUnrecorded } from './unrecorded.ts';
import type { Workshop } from './workshop.ts';

type Behind = Extract<Survey, { kind: 'behind' }>;

/**
 * Call it again when it was ended by a full disk that has room again.
 *
 * @param wait told of what keeps a file from being read; it is tried again then
 */
export async function catchUp(workshop: Workshop, wait: (trouble: string) => Promise<void>): Promise<void> {
  for (;;) {
    try {
      await catchUpAtOnce(workshop);
      return;
    } catch (error) {
      if (!isFileError(error)) throw error;
      const err = plainError(error);
      workshop.log('error', 'cannot read again what the journal names: check its rights', { err });
      await wait(err.message);
    }
  }
}

async function catchUpAtOnce(workshop: Workshop): Promise<void> {
  const { log } = workshop;
  let operations = 0;
  let isTold = false;
  for (;;) {
    const survey = surveyOf(workshop);
    if (survey.kind === 'even') {
      beginAt(workshop, survey.mark);
      if (markAccess(workshop)) {
        log(
          'warn',
          'access.db was made beside another journal: what was changed here since is not known',
          {},
        );
      }
      if (isTold) log('info', 'the database has caught up with the journal', { operations });
      return;
    }
    if (survey.kind === 'lost') {
      beginAgain(workshop, survey.reason);
      markAccess(workshop);
      continue;
    }
    isTold = tell(workshop, survey, isTold);
    operations += await lead(workshop, survey);
  }
}

/** Does what is lacking, up to its end or to the first thing that is not proven. @returns how many operations */
async function lead(workshop: Workshop, survey: Behind): Promise<number> {
  const { steps, mark } = survey;
  const end = steps.at(-1)?.mark.bytes ?? mark.bytes;
  const raisedAt = steps.findLast((step) => step.kind === 'raised')?.mark.bytes ?? 0;
  const doubt = doubtsIn(workshop, survey).find(({ at }) => at >= raisedAt);
  if (doubt !== undefined) {
    raise(workshop, doubt.reason, end);
    return 0;
  }
  noteRaises(workshop, steps);
  beginAt(workshop, mark);
  const again = new ReadAgain(workshop, steps);
  try {
    for (const [index, step] of steps.entries()) {
      const isRaised = step.mark.bytes < raisedAt;
      const isDone = await doStep(workshop, again, step, { isRaised, end });
      if (!isDone) return index;
      await workshop.between();
    }
    return steps.length;
  } finally {
    again.close();
  }
}

/** @returns false when versions had to be raised before it can be done */
async function doStep(
  workshop: Workshop,
  again: ReadAgain,
  step: Step,
  { isRaised, end }: { isRaised: boolean; end: number },
): Promise<boolean> {
  if (step.kind === 'raised') takeLeft(workshop);
  if (step.mark.bytes === end && (await again.isTakenAgain(step))) {
    again.pass(step.mark);
    return true;
  }
  const outcome = await again.doAgain(step, isRaised);
  if (outcome.kind === 'done') return true;
  const reason = outcome.kind === 'unproven' ? outcome.reason : `${outcome.file}: ${outcome.reason}`;
  if (outcome.kind !== 'unproven' && workshop.settings.mode === 'requests') {
    throw new Refused(
      'failed',
      `the database is older than the journal, and ${reason}. Nothing was done. Start the appliance on its drop folder first (wirewatch serve), or name that with --drop.`,
    );
  }
  if (!isRaised) {
    raise(workshop, reason, end);
    return false;
  }
  workshop.log('warn', 'a file that the journal names cannot be read again', { reason });
  again.pass(step.mark);
  return true;
}

/** Everything that makes it unproven that versions come out the same, but for what only reading shows. */
function doubtsIn(workshop: Workshop, survey: Behind): Doubt[] {
  const { steps, doubts, changes } = survey;
  const known = readRaises(workshop.db).length;
  const acrossRaises = steps
    .slice(0, -1)
    .filter((step) => step.kind === 'raised' && step.line.raised > known)
    .map(({ mark }) => ({ at: mark.bytes, reason: 'versions were raised since' }));
  const lastRead = steps.findLast((step) => step.kind !== 'raised')?.mark.bytes ?? 0;
  const changed = changes
    .filter((at) => at < lastRead && !isAfterCrash(workshop, steps))
    .map((at) => ({ at, reason: 'a subscription or a licence was changed since' }));
  return [...doubts, ...acrossRaises, ...changed];
}

/** Whether all that is lacking is an operation that a crash may have cut off. */
function isAfterCrash({ drop }: Workshop, steps: readonly Step[]): boolean {
  const [only, ...others] = steps;
  if (only === undefined || others.length > 0) return false;
  return only.kind !== 'applied' || !isThere(join(drop.root, only.line.archived));
}

function tell(workshop: Workshop, { steps }: Behind, isTold: boolean): boolean {
  if (isTold) return true;
  const { log } = workshop;
  const [only] = steps;
  if (only !== undefined && isAfterCrash(workshop, steps)) {
    log('info', 'what a crash cut off is done again', { operation: only.kind });
    return false;
  }
  log('warn', 'the database is older than the journal: what it lacks is done again', {
    operations: steps.length,
    files: steps.filter(({ kind }) => kind === 'applied').length,
  });
  return true;
}

/** Raises that this state of the database does not know hold for everything that is done again. */
function noteRaises(workshop: Workshop, steps: readonly Step[]): void {
  const { writer, db } = workshop;
  const known = readRaises(db).length;
  for (const step of steps) {
    if (step.kind !== 'raised' || step.line.raised <= known) continue;
    const { raised: number, raised_at: at, reason } = step.line;
    writer.commit(writer.begin(new Set()), () => saveRaise(db, { number, at, reason }));
  }
}

/**
 * Raises versions: in the journal first, so that no raise that a client may have seen is ever forgotten.
 *
 * @param after the operation that it follows on
 */
function raise(workshop: Workshop, reason: string, after: number): void {
  const { db, folder, writer, log, now } = workshop;
  let number = readRaises(db).length + 1;
  for (const { entry } of journalLines(folder.journal)) {
    number = Math.max(number, numberIn(entry, 'raised') + 1);
  }
  const at = now();
  const line = { raised: number, raised_at: at, at: formatMs(at), reason };
  const mark = appendEntry(folder.journal, { ...line, position: writer.lastPosition, after });
  // Where nothing in the journal leads here, this is the place from which on it does.
  const journaling = after === ROOT ? ({ kind: 'again', mark } as const) : undefined;
  writer.commit(writer.begin(new Set()), () => saveRaise(db, { number, at, reason }), journaling);
  log('warn', 'versions are raised by 1,000: that they come out as clients know them is not proven', {
    reason,
  });
}

/** The journal does not say what the database lacks: versions are raised, and what lies in the archive is read. */
function beginAgain(workshop: Workshop, reason: string): void {
  const { db, folder, writer } = workshop;
  takeLeft(workshop);
  const last = [...journalLines(folder.journal)].findLast(({ entry }) => operationOf(entry) !== null);
  const operation = last === undefined ? null : operationOf(last.entry);
  const isCutOff =
    operation?.kind === 'raised' &&
    operation.line.after === ROOT &&
    operation.line.raised === readRaises(db).length + 1;
  if (!isCutOff || last === undefined) {
    raise(workshop, reason, ROOT);
    return;
  }
  // A crash came between the line and its commit.
  const { raised: number, raised_at: at } = operation.line;
  writer.commit(writer.begin(new Set()), () => saveRaise(db, { number, at, reason: operation.line.reason }), {
    kind: 'again',
    mark: last.mark,
  });
}

/** A new database beside an access.db that remembers another journal is lost, too: the old one is gone, and its journal. */
function surveyOf({ db, access, folder }: Workshop): Survey {
  const survey = surveyJournal(db, folder.journal);
  const theirs = readMark(access);
  if (survey.kind !== 'even' || theirs === null || isInUse(db)) return survey;
  const reason = whyNotFrom(folder.journal, theirs);
  return reason === null ? survey : { kind: 'lost', reason };
}

/**
 * Whoever came before has led access.db through what this journal says of it, but could not mark one of another journal.
 *
 * @returns whether it was of another
 */
function markAccess({ access, db, folder }: Workshop): boolean {
  const [mark, theirs] = [readMark(db), readMark(access)];
  if (mark === null || theirs === null || whyNotFrom(folder.journal, theirs) === null) return false;
  writing(access, () => setMark(access, mark));
  return true;
}

/** What no operation brings back: files of the archive without a record, and backfills without their file. */
function takeLeft(workshop: Workshop): void {
  const { db, drop, writer, log, now } = workshop;
  for (const record of unsettledFiles(db)) {
    const { number, name, outcome } = record;
    if (outcome !== 'applying' || isThere(drop.takenPath(number, name))) continue;
    const reason = 'it was not read to its end, and no longer lay where it was taken';
    const ended: FileRecord = {
      ...record,
      outcome: 'failed',
      finished_at: now(),
      report: { ...record.report, reason },
    };
    writer.commit(writer.begin(new Set()), () => saveFile(db, ended));
  }
  const files = takeUnrecorded(workshop);
  if (files > 0) log('warn', 'files of the archive that are in no record are read again', { files });
}

/** The place is noted where it was not yet: in a new database, or one of the first version. */
function beginAt(workshop: Workshop, mark: JournalMark | null): void {
  const { db, folder, writer } = workshop;
  if (readMark(db) !== null) return;
  if (mark === null) beginJournal(folder.journal);
  const lines = [...journalLines(folder.journal)];
  const named = new Set(lines.map(({ entry }) => numberIn(entry, 'applied')));
  for (const { number, outcome, sha256, destination } of unsettledFiles(db)) {
    // The first version wrote a file's line after its commit, and a crash came between them.
    if (outcome !== 'applied' || named.has(number)) continue;
    const position = writer.lastPosition;
    mark = appendEntry(folder.journal, { applied: number, archived: destination, sha256, position });
  }
  const place = mark ?? lines.at(-1)?.mark;
  if (place === undefined) return;
  writer.commit(writer.begin(new Set()), () => {}, { kind: 'again', mark: place });
}
