/**
 * After the commit: the notes beside the file, and the file to where it belongs.
 *
 * Every step can be done again. A crash between any two of them leaves the file in `.taken` and its record
 * unsettled; the next start goes through the same steps.
 */
import { renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ExportName } from '../../detection/content-type.ts';
import { isDiskFull } from '../../store/database-errors.ts';
import { isThere, syncFolder, writeWhole } from '../../store/folder.ts';
import { formatMs, utcDay } from '../../time.ts';
import { findWindow, type WindowStatus } from '../../windows/ledger.ts';
import { type FileOutcome, type FileRecord, filesLeft, findFile, saveFile } from '../apply/file-record.ts';
import { numberedName } from '../format/file-name.ts';
import { isFileError, plainError } from '../threads/thread-errors.ts';
import type { Workshop } from '../threads/workshop.ts';
import { shortName } from './drop-folder.ts';

const FOLDER_OF_OUTCOME: Readonly<Record<Exclude<FileOutcome, 'applying'>, string>> = {
  applied: 'archive',
  repeated: 'archive',
  failed: 'failed',
  refused: 'refused',
  held: 'held',
};

/** Where a file will lie, relative to the drop folder; never a name that is taken, or promised to another. */
export function chooseDestination(
  workshop: Workshop,
  outcome: Exclude<FileOutcome, 'applying'>,
  name: string,
  number: number,
): string {
  const folder = FOLDER_OF_OUTCOME[outcome];
  const day = folder === 'archive' ? join(folder, utcDay(workshop.now())) : folder;
  let destination = join(day, shortName(name));
  for (let again = 0; !isFree(workshop, destination); again += 1) {
    destination = join(day, numberedName(shortName(name), again === 0 ? `${number}` : `${number}.${again}`));
  }
  return destination;
}

/** The records of the files in `.taken`: what is committed, and not moved to where it belongs. */
export function recordsInTaken({ db, drop }: Pick<Workshop, 'db' | 'drop'>): FileRecord[] {
  return drop.takenNumbers().flatMap((number) => {
    const record = findFile(db, number);
    return record !== null && isThere(drop.takenPath(number, record.name)) ? record : [];
  });
}

/** Removes the rows that a reading had left out which was given up. @param kept what is in `.taken` with a record */
export function removeSkipped({ drop, log }: Workshop, kept: readonly FileRecord[]): void {
  try {
    drop.removeSkipped(new Set(kept.map(({ number }) => number)));
  } catch (error) {
    if (!isFileError(error)) throw error;
    // The next start removes them.
    log('warn', 'cannot delete temporary files of interrupted readings', { err: plainError(error) });
  }
}

/** @param record committed, with a destination */
export function settle(workshop: Workshop, record: FileRecord): void {
  const { drop } = workshop;
  const { destination } = record;
  const taken = drop.takenPath(record.number, record.name);
  if (destination !== null) {
    const target = join(drop.root, destination);
    drop.ensureFolder(dirname(destination));
    if (isThere(taken)) {
      requireFree(target);
      if (record.outcome === 'failed' || record.outcome === 'refused' || record.outcome === 'held') {
        writeNote(`${target}.reason.json`, reasonOf(record, windowStatus(workshop, record)));
      }
      const skipped = drop.skippedPath(record.number);
      // A reading that was given up may have left one under this number.
      const hasSkipped = (record.report.bad_rows ?? 0) > 0;
      if (hasSkipped && isThere(skipped)) renameSync(skipped, `${target}.skipped.ndjson`);
      renameSync(taken, target);
      syncFolder(dirname(target));
      syncFolder(dirname(taken));
    }
  }
}

/**
 * Moves the files that failed for a window out of `failed/` once it was read from another one: into the archive, under
 * names that no replay takes for exports.
 *
 * Each goes by way of `.taken`, so a crash leaves it in `failed/` or in the archive, as its record says.
 */
export function retireFailed(workshop: Workshop, window: { export: ExportName; window_start: number }): void {
  const { db, drop, writer, log } = workshop;
  for (const record of filesLeft(db, window.export, window.window_start)) {
    const { number, name, outcome, destination } = record;
    if (outcome !== 'failed' || destination === null || !isThere(join(drop.root, destination))) continue;
    try {
      const taken = drop.takenPath(number, name);
      renameSync(join(drop.root, destination), taken);
      // Where a power cut took the rename, it would lie in failed/ for good: its record says otherwise.
      syncFolder(dirname(taken));
      rmSync(join(drop.root, `${destination}.reason.json`), { force: true });
      const retired = {
        ...record,
        destination: chooseDestination(workshop, 'applied', `${name}.failed`, number),
      };
      writer.commit(writer.begin(), { kind: 'failed file archived', file: number, name }, () =>
        saveFile(db, retired),
      );
      settle(workshop, retired);
    } catch (error) {
      if (!isFileError(error) && !isDiskFull(error)) throw error;
      // Its window was read: where the file lies does not matter to that.
      log('warn', 'cannot move a failed file to the archive after its window was read', {
        file: destination,
        err: plainError(error),
      });
    }
  }
}

/** Writes the note beside a file anew, after its window has come into another status. */
export function noteAgain(workshop: Workshop, record: FileRecord): void {
  const target = join(workshop.drop.root, record.destination ?? '');
  if (record.destination === null || !isThere(target)) return;
  writeNote(`${target}.reason.json`, reasonOf(record, windowStatus(workshop, record)));
}

/** What a person reads beside a file that was not applied. */
/** The line of the program's log about a processed file. */
export function logOutcome({ log, settings }: Workshop, record: FileRecord): void {
  const { errors: _, error_groups: __, ...report } = record.report;
  const { number, name, destination } = record;
  const isBad = record.outcome === 'failed' || record.outcome === 'refused';
  // A command that does the work itself prints the outcome.
  const level = isBad && settings.mode === 'serve' ? 'warn' : 'info';
  log(level, `file ${record.outcome}`, { number, file: name, destination, ...report });
}

function reasonOf(record: FileRecord, status: WindowStatus | undefined): object {
  const { reason, errors, errors_total, error_groups } = record.report;
  return {
    file: record.name,
    ...(record.export === null ? {} : { export: record.export }),
    ...(record.window_start === null ? {} : { window_start: formatMs(record.window_start) }),
    at: formatMs(record.finished_at ?? record.taken_at),
    reason,
    ...(errors === undefined ? {} : { errors_total, error_groups, errors }),
    next: nextStep(record, status),
  };
}

function windowStatus({ db }: Workshop, record: FileRecord): WindowStatus | undefined {
  if (record.export === null || record.window_start === null) return undefined;
  return findWindow(db, record.export, record.window_start)?.status;
}

function nextStep(record: FileRecord, status: WindowStatus | undefined): string {
  const start = record.window_start === null ? '' : formatMs(record.window_start);
  switch (record.outcome) {
    case 'failed':
      if (record.destination?.startsWith('archive') === true)
        return 'Nothing needs to be done: the window was read from another file.';
      // A window that was done before stays done: what is dropped for it is read without more ado.
      return record.window_start === null || status === 'done'
        ? 'No rows of this file were applied. Fix the file and drop it again.'
        : `No rows of this file were applied. Fix the file and drop it again, then run: wirewatch window reset ${record.export} ${start}`;
    case 'held':
      if (status === 'done')
        return 'The window was read from another file. To read this file too, drop it again.';
      return `To read this file, run: wirewatch window ${status === 'abandoned' ? 'accept' : 'reset'} ${record.export} ${start}`;
    default:
      return 'The file was not read. Fix the problem given as the reason, then drop the file again.';
  }
}

function writeNote(path: string, note: object): void {
  writeWhole(path, `${JSON.stringify(note, null, 2)}\n`, 0o644);
}

/** Nothing is overwritten, not even what somebody else put there meanwhile. */
function requireFree(target: string): void {
  if (!isThere(target)) return;
  throw Object.assign(new Error(`EEXIST: ${target} already exists. Move it away`), { code: 'EEXIST' });
}

function isFree(workshop: Workshop, destination: string): boolean {
  const target = join(workshop.drop.root, destination);
  const names = [target, `${target}.reason.json`, `${target}.skipped.ndjson`];
  return (
    !names.some((name) => isThere(name)) &&
    !recordsInTaken(workshop).some((record) => record.destination === destination)
  );
}
