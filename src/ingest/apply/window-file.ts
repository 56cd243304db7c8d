/**
 * Applies the file of one window, completely or not at all.
 *
 * Its rows, its record and its window are one transaction. The file is taken, by a rename, after it was read to
 * its end and found unchanged, and before the commit: so the archive holds exactly what was applied.
 */
import { isDeepStrictEqual } from 'node:util';
import { grouped } from '../../counted.ts';
import { shortName, type Waiting } from '../../drop/drop-folder.ts';
import { isThereIn } from '../../drop/own-folder.ts';
import { takenFiles } from '../../drop/waiting-names.ts';
import type { Mapping } from '../../exports/mapping.ts';
import type { Operation } from '../../log/format.ts';
import { findWindow, setWindow } from '../../windows/ledger.ts';
import {
  clearDestination,
  type FileRecord,
  type FileReport,
  filesLeft,
  findFile,
  findSameContent,
  forgetRefused,
  saveFile,
  takenBy,
  withSameContent,
} from '../files/file-record.ts';
import { chooseDestination, finishFile, type Ingest, nextNumber } from '../files/finished-file.ts';
import { hasHadOrphans } from '../files/orphaned.ts';
import { ERRORS_READ_MAX } from '../reading/export-reader.ts';
import type { ReadingResult } from '../reading/read-export.ts';

export type WaitingExport = Extract<Waiting, { kind: 'export' }>;

type Became = Pick<FileRecord, 'outcome' | 'report'> &
  Partial<Pick<FileRecord, 'sha256' | 'mapping' | 'bounds'>>;

/**
 * Reads the file whatever the status of its window is.
 * @param former whose rows are left out: that depends on the content, which few files have had before
 * @returns its record; null: it changed meanwhile, and stays for the next scan
 */
export async function ingestWindowFile(
  files: Ingest,
  waiting: WaitingExport,
  former: readonly number[] = [],
): Promise<FileRecord | null> {
  const { drop, writer, exports } = files;
  const reading = exports.read(drop.source(waiting), waiting.file, waiting.name, { former });
  try {
    const applier = writer.begin(new Set(reading.order.licensed));
    for await (const batch of reading.batches) applier.apply(batch);
    const result = await reading.result;
    const formerByContent = exports.formerAt(takenBefore(files, waiting, result.counts.sha256));
    if (!isDeepStrictEqual(formerByContent, former)) {
      writer.rollback();
      return await ingestWindowFile(files, waiting, formerByContent);
    }
    const { mapping, earliest, latest } = reading.order;
    const why = whyNot(files, waiting, mapping, result);
    if (why !== null) {
      writer.rollback();
      return why === 'it may be growing' ? null : putAway(files, waiting, why, result.skipped);
    }
    const number = nextNumber(files);
    if (!drop.take(waiting, number, result.skipped)) return null;
    const { sha256, ...counts } = result.counts;
    const report = { ...applier.counts, ...counts };
    const applied = { outcome: 'applied', sha256, mapping, bounds: { earliest, latest }, report } as const;
    const record = recordOf(files, waiting, number, applied);
    writer.commit(applier, fileOperation(record), () => save(files, record));
    finishFile(files, record);
    return record;
  } finally {
    reading.cancel();
    // What was not committed.
    writer.rollback();
  }
}

/**
 * By when it was first taken, if it failed then, or was changed since it was read; or its content, as soon as that is known;
 * null: it never was. A file without a record, which a lost end of the log may leave, was taken after its last change.
 * @param sha256 of its content; empty: not known
 */
function takenBefore(files: Ingest, waiting: Waiting, sha256 = ''): number | null {
  const { db } = files.writer;
  const { name, takenAs, snapshot } = waiting;
  const before = takenAs === undefined ? null : findFile(db, takenAs);
  if (before !== null && shortName(before.name) === shortName(name)) return takenBy(db, before);
  if (takenAs !== undefined && before === null && hasHadOrphans(db))
    return Math.min(Number(snapshot.mtimeNs / 1_000_000n), files.now());
  const [same] = waiting.kind === 'export' ? withSameContent(db, { ...waiting.file, sha256 }) : [];
  return same === undefined ? null : takenBy(db, same);
}

export function fileOperation({ number, name, outcome }: FileRecord): Operation {
  return { kind: 'file', file: number, name, outcome };
}

/** Within the file's transaction: its record, and its window if that changes. */
function save({ drop, writer: { db } }: Ingest, record: FileRecord): void {
  saveFile(db, record);
  const { export: exportName, window_start, outcome } = record;
  if (outcome === 'refused') forgetRefused(db, takenFiles(drop.root));
  if (exportName === null || window_start === null) return;
  // A failed file that is read again has an earlier record. It has been taken, so that it is no longer where that says.
  for (const { number, destination } of filesLeft(db, exportName, window_start))
    if (number !== record.number && !isThereIn(drop.root, destination ?? '')) clearDestination(db, number);
  if (outcome !== 'applied' && outcome !== 'failed') return;
  const before = findWindow(db, exportName, window_start)?.status;
  // A window that is done stays done.
  if (outcome === 'failed' && (before === 'failed' || before === 'done')) return;
  const status = outcome === 'applied' ? 'done' : 'failed';
  const since = record.finished_at ?? record.taken_at;
  setWindow(db, { export: exportName, window_start, status, since, file: record.number });
}

/** What becomes of a file that was read, in place of being applied; null: it is applied. */
export function whyNot(
  { drop, writer }: Ingest,
  waiting: WaitingExport,
  mapping: Mapping | null,
  result: ReadingResult,
): Became | 'it may be growing' | null {
  const { sha256, ...counts } = result.counts;
  if (result.kind === 'read') {
    const same = findSameContent(writer.db, { ...waiting.file, sha256, mapping });
    const reason = `same content as file ${same}, which was already applied`;
    return same === null ? null : { outcome: 'repeated', sha256, report: { ...counts, reason } };
  }
  if (result.kind === 'truncated' && !waiting.isFinal) {
    drop.noteTruncated(waiting);
    return 'it may be growing';
  }
  const failed = (report: FileReport): Became => {
    return { outcome: 'failed', sha256: sha256 || null, report: { ...counts, ...report } };
  };
  if (result.kind !== 'bad') return failed({ reason: result.reason });
  const { errors, errors_total, error_groups } = result;
  const isCut = sha256 === '' && errors_total >= ERRORS_READ_MAX;
  const end = `; reading ended at row ${grouped(counts.rows)}, with ${grouped(errors_total)} errors`;
  const reason = `the file has rows or lines that do not match the export format${isCut ? end : ''}`;
  return failed({ reason, errors, errors_total, error_groups });
}

/** Takes a file that is not applied, records it with its window, and moves it to its folder. @param notes of skipped rows */
export function putAway(files: Ingest, waiting: Waiting, became: Became, notes = ''): FileRecord | null {
  const { drop, writer } = files;
  const number = nextNumber(files);
  if (!drop.take(waiting, number, notes)) return null;
  const record = recordOf(files, waiting, number, became);
  writer.write(fileOperation(record), () => save(files, record));
  finishFile(files, record);
  return record;
}

export function recordOf(files: Ingest, waiting: Waiting, number: number, became: Became): FileRecord {
  const file = waiting.kind === 'export' ? waiting.file : null;
  const nowMs = files.now();
  return {
    number,
    name: waiting.name,
    export: file?.export ?? null,
    window_start: file?.window_start ?? null,
    label: file?.label ?? null,
    sha256: null,
    bytes: Number(waiting.snapshot.size),
    taken_at: takenBefore(files, waiting) ?? nowMs,
    finished_at: nowMs,
    rows_applied: 0,
    mapping: null,
    bounds: null,
    ...became,
    destination: chooseDestination(files, became.outcome, waiting.name, number),
  };
}
