/**
 * History outside any window: a backfill is checked to its end first, then applied in bounded transactions.
 *
 * Each transaction records how many rows of the file it brought; a restart continues behind them. During the check and
 * between transactions waiting windows are read, so that years of history do not delay current windows.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { counted, grouped } from '../../counted.ts';
import { isThereIn } from '../../drop/own-folder.ts';
import { recordedFile, switchedOff } from '../../exports/file-name.ts';
import type { Operation } from '../../log/format.ts';
import { applyingFiles, type FileRecord, saveFile, takenBy } from '../files/file-record.ts';
import { chooseDestination, finishFile, type Ingest, nextNumber } from '../files/finished-file.ts';
import type { Reading } from '../reading/export-reader.ts';
import type { ReadingResult } from '../reading/read-export.ts';
import type { UnknownRows } from '../reading/row-batch.ts';
import { type Applier, type ApplyCounts, NO_COUNTS, sumOf } from './apply-rows.ts';
import { fileOperation, putAway, recordOf, type WaitingExport, whyNot } from './window-file.ts';

const TRANSACTION_ROWS = 20_000;
/** How often waiting windows are read while a backfill is checked. */
const TURN_EVERY_MS = 500;

export async function ingestBackfill(files: Ingest, waiting: WaitingExport): Promise<FileRecord | null> {
  const { drop, writer, exports, between } = files;
  const { name, file } = waiting;
  const checking = exports.read(drop.source(waiting), file, `${name} (checking)`, { check_only: true });
  const result = await finished(checking, between);
  const { mapping, earliest, latest } = checking.order;
  const why = whyNot(files, waiting, mapping, result);
  if (why === 'it may be growing') return null;
  if (why !== null) return putAway(files, waiting, why, result.skipped);
  const number = nextNumber(files);
  if (!drop.take(waiting, number, result.skipped)) return null;
  const { sha256, ...counts } = result.counts;
  // Subscriptions may change before the rows are applied: then other rows are left out.
  const report = { ...counts, ...NO_COUNTS, unknown_rows: {} };
  const applying = { outcome: 'applying', sha256, mapping, bounds: { earliest, latest }, report } as const;
  const record = { ...recordOf(files, waiting, number, applying), finished_at: null, destination: null };
  writer.write(fileOperation(record), () => saveFile(writer.db, record));
  return applyBackfill(files, record);
}

async function finished(checking: Reading, between: Ingest['between']): Promise<ReadingResult> {
  const over = Promise.allSettled([checking.result]);
  try {
    while (!(await Promise.race([over, sleep(TURN_EVERY_MS, false, { ref: false })]))) await between();
    return await checking.result;
  } finally {
    checking.cancel();
  }
}

/** Applies what is left of backfills, as after a crash, a stop or a full disk. */
export async function resumeBackfills(ingest: Ingest): Promise<void> {
  const { drop, writer, exports, stuck, log, onProcessed } = ingest;
  for (const record of applyingFiles(writer.db)) {
    const { number, name, rows_applied, export: exportName } = record;
    await stuck.attempt('backfill', number, name, async () => {
      // As after a restore: where its file was applied since, that is read again by itself.
      if (!isThereIn(drop.root, drop.takenPath(number, name)))
        return onProcessed(end(ingest, record, 'the file is gone', AGAIN));
      // Its rows would all be left out.
      if (exportName !== null && !exports.isEnabled(exportName))
        throw Object.assign(new Error(switchedOff(exportName)), { code: 'ENOTSUP' });
      log('info', 'backfill resumed', { file: name, rows_applied });
      onProcessed(await applyBackfill(ingest, record));
    });
  }
}

/** Applies the rest of a backfill that was checked and taken. The notes of skipped rows are those of the check. */
async function applyBackfill(files: Ingest, record: FileRecord): Promise<FileRecord> {
  const { number, name, report } = record;
  let current = record;
  const path = files.drop.takenPath(number, name);
  const inTransaction = (rows_applied: number, counts: ApplyCounts, unknownRows: UnknownRows) => {
    const before = current.report;
    const unknown_rows = sumOf(before.unknown_rows ?? {}, unknownRows);
    const applied = sumOf({ ...NO_COUNTS, ...before }, counts);
    current = { ...current, rows_applied, report: { ...before, ...applied, unknown_rows } };
    saveFile(files.writer.db, current);
  };
  const operation = fileOperation(record);
  const result = await applyAgain(files, record, path, record.rows_applied, operation, inTransaction);
  const { sha256, bad_rows } = result.counts;
  const isUnfinished = result.kind === 'bad' && sha256 === '';
  // Its writer may still have it open.
  if (sha256 !== record.sha256 && !isUnfinished)
    return end(files, current, 'the file was changed while it was being applied', AGAIN);
  const all = { ...current.report, bad_rows: Math.max(report.bad_rows ?? 0, bad_rows) };
  if (result.kind !== 'bad') return end(files, { ...current, report: all });
  // After another version of the program checked the file, rows may be invalid that were valid then.
  const { errors, errors_total, error_groups } = result;
  const bad = { ...all, errors, errors_total, error_groups };
  return end(files, { ...current, report: bad }, 'the file no longer matches the export format');
}

const AGAIN = ': drop it again';

/** @param failure why it failed; null: it was applied. @param next what to do, behind how many rows were applied */
function end(files: Ingest, record: FileRecord, failure: string | null = null, next = ''): FileRecord {
  const { drop, writer } = files;
  const { number, name, rows_applied, report } = record;
  const applied = `${grouped(rows_applied)} of ${counted(report.rows ?? 0, 'row')} were applied`;
  const outcome = failure === null ? 'applied' : 'failed';
  const isThere = isThereIn(drop.root, drop.takenPath(number, name));
  const ended: FileRecord = {
    ...record,
    outcome,
    finished_at: files.now(),
    report: failure === null ? report : { ...report, reason: `${failure}; ${applied}${next}` },
    destination: isThere ? chooseDestination(files, outcome, name, number) : null,
  };
  writer.write(fileOperation(ended), () => saveFile(writer.db, ended));
  finishFile(files, ended);
  return ended;
}

/**
 * Applies a recorded file in transactions of bounded size, as it was first read, whatever the settings and the clock are
 * now: it must not fail half-way, and the same rows are skipped again. When subscriptions or licences change, it is read
 * again behind the last transaction: what is written from then on is as they say.
 * @param path where it is in the drop folder
 * @param inTransaction called in each. @param through rows of the file so far
 */
export async function applyAgain(
  ingest: Ingest,
  record: FileRecord,
  path: string,
  rowsToSkip: number,
  operation: Operation,
  inTransaction: (through: number, counts: ApplyCounts, unknownRows: UnknownRows) => void,
): Promise<ReadingResult> {
  const { drop, writer, exports, between } = ingest;
  const { name, mapping, taken_at } = record;
  const file = recordedFile(record);
  if (file === null) throw new Error(`${name} is not recorded as an export file`);
  const bounds = record.bounds ?? { earliest: exports.earliestAt(file, taken_at) };
  const { order, batches, result, isOutdated, cancel } = exports.read(drop.sourceAt(path), file, name, {
    ...{ bad_rows: 'skip', require_trailer: false, mapping, ...bounds, rows_to_skip: rowsToSkip },
    former: exports.formerAt(takenBy(writer.db, record)),
  });
  const licensed = new Set(order.licensed);
  let applier: Applier | null = null;
  let rowsThrough = rowsToSkip;
  let rowsCommitted = rowsThrough;
  let unknownRows: UnknownRows = {};
  const commit = (open: Applier) => {
    writer.commit(open, operation, () => inTransaction(rowsThrough, open.counts, unknownRows));
    rowsCommitted = rowsThrough;
    unknownRows = {};
  };
  try {
    for await (const batch of batches) {
      // Otherwise its rows were applied before.
      if (batch.rowsThrough > rowsCommitted) {
        applier ??= writer.begin(licensed);
        applier.apply(batch);
        rowsThrough = batch.rowsThrough;
        unknownRows = sumOf(unknownRows, batch.unknownRows);
        if (rowsThrough - rowsCommitted < TRANSACTION_ROWS) continue;
        commit(applier);
        applier = null;
      }
      await between();
      if (!isOutdated()) continue;
      cancel();
      return applyAgain(ingest, record, path, rowsCommitted, operation, inTransaction);
    }
    const { kind } = await result;
    if (applier !== null && kind === 'read') commit(applier);
    else writer.rollback();
    return result;
  } catch (error) {
    cancel();
    writer.rollback();
    throw error;
  }
}
