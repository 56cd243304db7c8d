/**
 * History outside any window: checked to its end first, then applied in bounded transactions that resume.
 *
 * Each transaction records how many rows of the file it brought; a restart goes on behind them. While it is checked,
 * and between two transactions, waiting windows are read, so that years of history do not hold up what is happening now.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Operation } from '../../history/format.ts';
import { chooseDestination, settle } from '../drop/finished-file.ts';
import { type ExportFileName, judgeName, latestTime } from '../format/file-name.ts';
import type { ReadingResult } from '../rules/read-export.ts';
import type { ReaderOrder } from '../threads/reader-messages.ts';
import { readingOrder, type Workshop } from '../threads/workshop.ts';
import { type Applier, type ApplyCounts, NO_COUNTS, sumOf } from './apply-rows.ts';
import { type FileRecord, findFile, findSameContent, saveFile } from './file-record.ts';
import { type Dealt, fileOperation, putAway, recordOf, unread, type WaitingExport } from './window-file.ts';

export type BackfillName = Extract<ExportFileName, { kind: 'backfill' }>;
export type WaitingBackfill = WaitingExport & { readonly file: BackfillName };

const TRANSACTION_ROWS = 20_000;
/** How often windows get their turn while a backfill is checked; a stop is noticed then, too. */
const TURN_EVERY_MS = 500;

/** What was read to its end before must not fail half-way: what was left out once is left out again. */
export const REREAD = { bad_rows: 'skip', require_trailer: false } as const;

export async function ingestBackfill(workshop: Workshop, waiting: WaitingBackfill): Promise<Dealt> {
  const number = workshop.nextNumber();
  const { file } = waiting;
  const result = await checkWhole(workshop, waiting, number);
  if (result.kind !== 'read') return unread(workshop, waiting, number, result);
  const { sha256, bytes, ...counts } = result.counts;
  const same = findSameContent(workshop.db, file, sha256);
  if (same !== null) {
    const reason = `same content as file ${same}, which was already applied`;
    return putAway(workshop, waiting, number, { outcome: 'repeated', sha256, ...counts, reason });
  }
  if (!workshop.drop.take(waiting, number)) return null;
  const record: FileRecord = {
    ...recordOf(workshop, waiting, number, { outcome: 'applied', sha256, ...counts, ...NO_COUNTS }),
    outcome: 'applying',
    finished_at: null,
    destination: null,
  };
  workshop.writer.commit(workshop.writer.begin(), fileOperation(record), () => saveFile(workshop.db, record));
  return resumeBackfill(workshop, record, file);
}

/** Reads a backfill to its end, without applying it. Windows that wait are read beside it, by the same thread. */
async function checkWhole(
  workshop: Workshop,
  { name, path, file }: WaitingBackfill,
  number: number,
): Promise<ReadingResult> {
  const skipped_path = workshop.drop.skippedPath(number);
  const order = readingOrder(workshop, path, file, { check_only: true, skipped_path });
  const label = `${name} (checking)`;
  const checking = workshop.reader.read(order, (rows) => workshop.progress(label, rows, false));
  const over = checking.result.then(
    () => true,
    () => true,
  );
  try {
    while (!(await Promise.race([over, sleep(TURN_EVERY_MS, false, { ref: false })])))
      await workshop.between();
  } catch (error) {
    checking.cancel();
    throw error;
  }
  const result = await checking.result;
  workshop.progress(label, result.counts.rows, true);
  return result;
}

/** Applies what is left of a backfill that was checked and taken. */
async function resumeBackfill(
  workshop: Workshop,
  record: FileRecord,
  file: BackfillName,
): Promise<FileRecord> {
  // As when it was checked, whatever settings and clock are since. The check wrote down all rows that are left out.
  const order = readingOrder(workshop, workshop.drop.takenPath(record.number, record.name), file, {
    ...REREAD,
    rows_to_skip: record.rows_applied,
    latest: latestTime(record.taken_at),
  });
  let current = record;
  const result = await applyInBounds(
    workshop,
    record.name,
    order,
    fileOperation(record),
    (through, counts) => {
      current = withPart(current, through, counts);
      saveFile(workshop.db, current);
    },
  );
  if (result.kind !== 'read' || result.counts.sha256 !== record.sha256) {
    throw new Error(
      `${order.path} was changed while it was being applied. Restore the original file (SHA-256 ${record.sha256}) and restart.`,
    );
  }
  const applied: FileRecord = {
    ...current,
    outcome: 'applied',
    finished_at: workshop.now(),
    destination: chooseDestination(workshop, 'applied', record.name, record.number),
  };
  workshop.writer.commit(workshop.writer.begin(), fileOperation(applied), () =>
    saveFile(workshop.db, applied),
  );
  settle(workshop, applied);
  return applied;
}

/** Goes on with a backfill that a crash, a stop or a full disk interrupted; null: the record is of none. */
export async function resumeUnfinished(workshop: Workshop, record: FileRecord): Promise<FileRecord | null> {
  const judged = judgeName(record.name);
  if (judged.kind !== 'export' || judged.file.kind !== 'backfill') return null;
  workshop.log('info', 'backfill resumed', { file: record.name, rows_applied: record.rows_applied });
  // What an earlier run had committed stands in the record of this moment, not in the one read at the start.
  return resumeBackfill(workshop, findFile(workshop.db, record.number) ?? record, judged.file);
}

/** The record of a backfill with one part more. */
function withPart(record: FileRecord, through: number, counts: ApplyCounts): FileRecord {
  return {
    ...record,
    rows_applied: through,
    report: { ...record.report, ...sumOf({ ...NO_COUNTS, ...record.report }, counts) },
  };
}

/**
 * Applies a file in transactions of bounded size; other work gets its turn between them.
 *
 * @param inTransaction what belongs to each transaction besides its rows
 */
export async function applyInBounds(
  workshop: Workshop,
  name: string,
  order: ReaderOrder,
  operation: Operation,
  inTransaction: (through: number, counts: ApplyCounts) => void,
): Promise<ReadingResult> {
  const licensed = new Set(order.licensed);
  const reading = workshop.reader.read(order, (rows) => workshop.progress(name, rows, false));
  let applier = null;
  let rowsThrough = order.rows_to_skip;
  let rowsCommitted = rowsThrough;
  const commit = (open: Applier) => {
    workshop.writer.commit(open, operation, () => inTransaction(rowsThrough, open.counts));
    rowsCommitted = rowsThrough;
  };
  try {
    for await (const batch of reading.batches) {
      applier ??= workshop.writer.begin(licensed);
      applier.apply(batch);
      rowsThrough = batch.rowsThrough;
      if (rowsThrough - rowsCommitted < TRANSACTION_ROWS) continue;
      commit(applier);
      applier = null;
      await workshop.between();
    }
    const result = await reading.result;
    if (applier !== null && result.kind === 'read') commit(applier);
    else workshop.writer.rollback();
    workshop.progress(name, result.counts.rows, true);
    return result;
  } catch (error) {
    reading.cancel();
    workshop.writer.rollback();
    throw error;
  }
}
