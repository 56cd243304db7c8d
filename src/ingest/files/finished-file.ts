/**
 * After the commit: writes the notes beside a file and moves it to its folder. Every step can be repeated: a crash leaves the
 * file in `.taken` with its record.
 */
import { dirname, join } from 'node:path';
import { type DropFolder, shortName } from '../../drop/drop-folder.ts';
import { isFileError, plainError, unlessFileError } from '../../drop/file-errors.ts';
import {
  entriesIn,
  isDraft,
  isThereIn,
  makeOwnFolder,
  removeIn,
  renameIn,
  syncIn,
  writeIn,
} from '../../drop/own-folder.ts';
import { type KnownFiles, takenFiles } from '../../drop/waiting-names.ts';
import { numberedName } from '../../exports/file-name.ts';
import type { Database } from '../../store/database.ts';
import type { DataFolder } from '../../store/folder.ts';
import { formatMs, type Now, utcDay } from '../../time.ts';
import { findWindow, type HoldRules } from '../../windows/ledger.ts';
import { arrival } from '../../windows/window-states.ts';
import type { StreamWriter } from '../apply/stream-writer.ts';
import type { ExportReader } from '../reading/export-reader.ts';
import type { Reporting } from '../reporting.ts';
import type { AccessConnection } from '../threads/access-connection.ts';
import type { StuckFiles } from '../threads/retry-pauses.ts';
import { type FileOutcome, type FileRecord, findFile } from './file-record.ts';

/** What the work of the ingest thread needs. */
export interface Ingest extends Reporting, Pick<HoldRules, 'failed_windows'> {
  readonly drop: DropFolder;
  readonly writer: StreamWriter;
  /** Never before the end of a finished window: a clock that says so is wrong. */
  readonly now: Now;
  readonly folder: DataFolder;
  readonly access: AccessConnection;
  readonly exports: ExportReader;
  readonly stuck: StuckFiles;
  /** Lets more urgent work run between two steps of long work. @throws Stopping when the thread is to end */
  readonly between: () => Promise<void>;
  /** Called for each file that was read, put away, or moved to its folder. */
  readonly onProcessed: (record: FileRecord) => void;
}

/** The next ingest number. None is issued twice, even if the first file was not recorded. */
export function nextNumber({ drop, writer }: Ingest): number {
  const select = writer.db.prepare<[], number | null>('SELECT max(number) FROM ingest_file');
  return drop.nextNumber(select.pluck().get() ?? 0);
}

/** A file's future path in the drop folder: neither in use nor promised to another file. */
export function chooseDestination(files: Ingest, outcome: FileOutcome, name: string, number: number): string {
  const isPutAside = outcome === 'failed' || outcome === 'refused';
  const below = isPutAside ? outcome : join('archive', utcDay(files.now()));
  let destination = join(below, shortName(name));
  for (let again = 0; !isFree(files, destination); again += 1)
    destination = join(below, numberedName(shortName(name), `${number}${again === 0 ? '' : `.${again}`}`));
  return destination;
}

/** Whether a file in `.taken` waits to be moved or is applied. After a restore, its number may be that of another's record. */
export const recordedIn =
  (db: Database): KnownFiles['isRecorded'] =>
  (number, name) =>
    recordOfTaken(db, number, name) !== null;

function recordOfTaken(db: Database, number: number, name: string): FileRecord | null {
  const record = findFile(db, number);
  if (record === null || shortName(record.name) !== name) return null;
  // Otherwise the file of the record is gone.
  return record.destination !== null || record.outcome === 'applying' ? record : null;
}

/** The records of the files in `.taken`: committed, and not moved yet. */
export const recordsInTaken = ({ drop, writer }: Pick<Ingest, 'drop' | 'writer'>): FileRecord[] =>
  takenFiles(drop.root).flatMap(({ number, name }) => recordOfTaken(writer.db, number, name) ?? []);

/** Removes what an interrupted run left in `.taken`: drafts, and the skipped rows of files without a record. */
export function removeTemporary(files: Ingest): void {
  const { drop, log } = files;
  try {
    const kept = new Set(recordsInTaken(files).map(({ number }) => drop.skippedPath(number)));
    for (const { name } of entriesIn(drop.root, '.taken')) {
      const path = join('.taken', name);
      const isSkipped = /^skipped-\d+\.ndjson$/.test(name);
      if (isDraft(name) || (isSkipped && !kept.has(path))) removeIn(drop.root, path);
    }
  } catch (error) {
    if (!isFileError(error)) throw error;
    // The next start removes them.
    log('warn', 'cannot delete temporary files of an interrupted run', { err: plainError(error) });
  }
}

/** Applies what only the log has, and archives committed files. */
export async function finishTaken(ingest: Ingest): Promise<void> {
  const { writer, stuck, onProcessed } = ingest;
  writer.applyPending();
  // None if the drop folder cannot be read: its scan reports that.
  const taken = unlessFileError([], () => recordsInTaken(ingest));
  const records = taken.filter(({ outcome }) => outcome !== 'applying');
  const numbers = records.map(({ number }) => number);
  stuck.keepOnly('taken', numbers);
  for (const record of records)
    await stuck.attempt('taken', record.number, record.name, () => {
      finishFile(ingest, record);
      onProcessed(record);
    });
}

/** @param record committed; without a destination there is nothing to do */
export function finishFile(files: Ingest, record: FileRecord): void {
  const { drop } = files;
  const { destination } = record;
  if (destination === null) return;
  const { root } = drop;
  const taken = drop.takenPath(record.number, record.name);
  makeOwnFolder(root, dirname(destination));
  if (!isThereIn(root, taken)) return;
  // Never overwrites, not even what somebody else put there meanwhile.
  if (isThereIn(root, destination)) {
    const message = `EEXIST: ${join(root, destination)} already exists. Move it away`;
    throw Object.assign(new Error(message), { code: 'EEXIST' });
  }
  if (record.outcome === 'failed' || record.outcome === 'refused') writeReason(files, record, destination);
  const skipped = drop.skippedPath(record.number);
  // An interrupted reading may have left one under this number.
  const hasSkipped = (record.report.bad_rows ?? 0) > 0;
  if (hasSkipped && isThereIn(root, skipped)) renameIn(root, skipped, `${destination}.skipped.ndjson`);
  renameIn(root, taken, destination);
  syncIn(root, dirname(destination));
  syncIn(root, dirname(taken));
}

function writeReason(files: Ingest, record: FileRecord, destination: string): void {
  const { reason, errors, errors_total, error_groups } = record.report;
  const { export: exportName, window_start } = record;
  // JSON leaves out what is undefined.
  const note = {
    file: record.name,
    export: exportName ?? undefined,
    window_start: window_start === null ? undefined : formatMs(window_start),
    at: formatMs(record.finished_at ?? record.taken_at),
    reason,
    errors_total,
    error_groups,
    errors,
    next: nextStep(files, record),
  };
  writeIn(files.drop.root, `${destination}.reason.json`, `${JSON.stringify(note, null, 2)}\n`);
}

function nextStep({ writer, failed_windows }: Ingest, record: FileRecord): string {
  const { export: exportName, window_start } = record;
  if (record.outcome !== 'failed')
    return 'The file was not read. Fix the problem given as the reason, then drop the file again.';
  if (record.rows_applied > 0) return 'The rows that were applied stay. Fix the file and drop it again.';
  const again = 'No rows of this file were applied. Fix the file and drop it again';
  if (exportName === null || window_start === null) return `${again}.`;
  const status = findWindow(writer.db, exportName, window_start)?.status;
  // A window that was done before stays done: a file dropped for it is read without a reset.
  if (arrival(status, failed_windows) === 'read') return `${again}.`;
  return `${again}, then run: wirewatch window reset ${exportName} ${formatMs(window_start)}`;
}

function isFree(files: Ingest, destination: string): boolean {
  const names = [destination, `${destination}.reason.json`, `${destination}.skipped.ndjson`];
  return (
    !names.some((name) => isThereIn(files.drop.root, name)) &&
    !recordsInTaken(files).some((record) => record.destination === destination)
  );
}
