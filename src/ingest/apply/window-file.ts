/**
 * One window's file: whole or not at all, once.
 *
 * Its rows, its record and its window are one transaction. The file is taken, by a rename, after it was read to
 * its end and found unchanged, and before the commit: what is committed is what lies in the archive.
 */
import type { Operation } from '../../history/format.ts';
import { findWindow, setWindow } from '../../windows/ledger.ts';
import { arrival, statusAfter, statusPhrase } from '../../windows/transitions.ts';
import type { Waiting } from '../drop/drop-folder.ts';
import { chooseDestination, retireFailed, settle } from '../drop/finished-file.ts';
import type { ExportFileName } from '../format/file-name.ts';
import type { ReadingResult } from '../rules/read-export.ts';
import { readingOrder, type Workshop } from '../threads/workshop.ts';
import {
  clearDestination,
  type FileOutcome,
  type FileRecord,
  type FileReport,
  findSameContent,
  saveFile,
} from './file-record.ts';

export type WaitingExport = Extract<Waiting, { kind: 'export' }>;
export type WaitingWindow = WaitingExport & { readonly file: Extract<ExportFileName, { kind: 'window' }> };

/** What came of a file; null: it changed while it was dealt with, and is looked at again. */
export type Dealt = FileRecord | null;

export async function ingestWindowFile(workshop: Workshop, waiting: WaitingWindow): Promise<Dealt> {
  const number = workshop.nextNumber();
  const { file } = waiting;
  const status = findWindow(workshop.db, file.export, file.window_start)?.status;
  if (waiting.replaces === undefined && arrival(status, workshop.settings.failed_windows) === 'hold') {
    const reason = `the window ${statusPhrase(status)}: the file is held until you ${status === 'abandoned' ? 'accept' : 'reset'} the window`;
    return putAway(workshop, waiting, number, { outcome: 'held', reason });
  }
  const skipped_path = workshop.drop.skippedPath(number);
  const order = readingOrder(workshop, waiting.path, file, { skipped_path });
  const applier = workshop.writer.begin(new Set(order.licensed));
  const reading = workshop.reader.read(order, (rows) => workshop.progress(waiting.name, rows, false));
  try {
    for await (const batch of reading.batches) {
      applier.apply(batch);
      workshop.check();
    }
    const result = await reading.result;
    workshop.progress(waiting.name, result.counts.rows, true);
    if (result.kind !== 'read') {
      workshop.writer.rollback();
      return unread(workshop, waiting, number, result);
    }
    const { sha256, bytes, ...counts } = result.counts;
    const same = findSameContent(workshop.db, file, sha256);
    if (same !== null) {
      workshop.writer.rollback();
      const reason = `same content as file ${same}, which was already applied`;
      return putAway(workshop, waiting, number, { outcome: 'repeated', sha256, ...counts, reason });
    }
    if (!workshop.drop.take(waiting, number)) {
      workshop.writer.rollback();
      return null;
    }
    const report = { ...applier.counts, ...counts };
    const record = recordOf(workshop, waiting, number, { outcome: 'applied', sha256, ...report });
    workshop.writer.commit(applier, fileOperation(record), () => save(workshop, record, waiting.replaces));
    settle(workshop, record);
    retireFailed(workshop, file);
    return record;
  } catch (error) {
    reading.cancel();
    workshop.writer.rollback();
    throw error;
  }
}

/** What the log says of a file. */
export function fileOperation({ number, name, outcome }: FileRecord): Operation {
  return { kind: 'file', file: number, name, outcome };
}

/** What belongs to the transaction of a file: its record, and its window where that changes. */
function save({ db }: Workshop, record: FileRecord, replaces: number | undefined): void {
  saveFile(db, record);
  if (replaces !== undefined) clearDestination(db, replaces);
  const { export: exportName, window_start, outcome } = record;
  if (exportName === null || window_start === null) return;
  if (outcome !== 'applied' && outcome !== 'failed') return;
  const before = findWindow(db, exportName, window_start)?.status;
  const status = statusAfter(before, outcome);
  if (outcome === 'failed' && status === before) return;
  setWindow(db, {
    export: exportName,
    window_start,
    status,
    since: record.finished_at ?? record.taken_at,
    file: record.number,
  });
}

/** A file that cannot be applied: given time if it may still be growing, failed otherwise. */
export function unread(
  workshop: Workshop,
  waiting: WaitingExport,
  number: number,
  result: Exclude<ReadingResult, { kind: 'read' }>,
): Dealt {
  if (result.kind === 'truncated' && !waiting.isFinal) {
    workshop.drop.noteTruncated(waiting);
    return null;
  }
  const { sha256, bytes, ...counts } = result.counts;
  const report: FileReport =
    result.kind === 'bad'
      ? {
          ...counts,
          reason: 'the file has rows or lines that do not match the export format',
          errors: result.errors,
          errors_total: result.errors_total,
          error_groups: result.error_groups,
        }
      : { ...counts, reason: result.reason };
  return putAway(workshop, waiting, number, { outcome: 'failed', sha256: sha256 || null, ...report });
}

/** What became of a file, with its report. */
interface Became<Outcome extends FileOutcome> extends FileReport {
  readonly outcome: Outcome;
  /** Null where it was not read to its end. */
  readonly sha256?: string | null;
}

/** Takes a file that is not applied, records it with its window, and moves it where it belongs. */
export function putAway(
  workshop: Workshop,
  waiting: Waiting,
  number: number,
  became: Became<Exclude<FileOutcome, 'applying' | 'applied'>>,
): Dealt {
  if (!workshop.drop.take(waiting, number)) return null;
  const record = recordOf(workshop, waiting, number, became);
  workshop.writer.commit(workshop.writer.begin(), fileOperation(record), () =>
    save(workshop, record, waiting.replaces),
  );
  settle(workshop, record);
  return record;
}

export function recordOf(
  workshop: Workshop,
  waiting: Waiting,
  number: number,
  { outcome, sha256 = null, ...report }: Became<Exclude<FileOutcome, 'applying'>>,
): FileRecord {
  const file = waiting.kind === 'export' ? waiting.file : null;
  const nowMs = workshop.now();
  return {
    number,
    name: waiting.name,
    export: file?.export ?? null,
    window_start: file?.kind === 'window' ? file.window_start : null,
    label: file?.kind === 'backfill' ? file.label : null,
    sha256,
    bytes: Number(waiting.look.size),
    outcome,
    taken_at: nowMs,
    finished_at: nowMs,
    rows_applied: 0,
    report,
    destination: chooseDestination(workshop, outcome, waiting.name, number),
  };
}
