/** The record of every processed file: `ingest_file`, by ingest number. */
import { isDeepStrictEqual } from 'node:util';
import type { ExportName } from '../../detection/content-type.ts';
import type { TimeBounds } from '../../exports/check-row.ts';
import type { FileErrors } from '../../exports/error-groups.ts';
import type { Mapping } from '../../exports/mapping.ts';
import type { Database } from '../../store/database.ts';
import { formatMs } from '../../time.ts';
import type { ApplyCounts } from '../apply/apply-rows.ts';
import type { ReadingCounts } from '../reading/read-export.ts';

export const FILE_OUTCOMES = ['applying', 'applied', 'repeated', 'failed', 'refused'] as const;
export type FileOutcome = (typeof FILE_OUTCOMES)[number];

/** The outcome of a file's rows, and the reason. */
export interface FileReport extends Partial<ApplyCounts & Omit<ReadingCounts, 'sha256'> & FileErrors> {
  /** Why the file failed or was refused, in plain English. */
  readonly reason?: string;
}

export interface FileRecord {
  readonly number: number;
  readonly name: string;
  readonly export: ExportName | null;
  /** Epoch milliseconds. */
  readonly window_start: number | null;
  readonly label: string | null;
  readonly sha256: string | null;
  readonly bytes: number;
  readonly outcome: FileOutcome;
  readonly taken_at: number;
  readonly finished_at: number | null;
  readonly rows_applied: number;
  readonly report: FileReport;
  /** With which the file was applied; null: it was in our own form. A replay reads it with that again. */
  readonly mapping: Mapping | null;
  /** The same of its times; null: it was not applied, or by a version that did not keep them. */
  readonly bounds: TimeBounds | null;
  /** Relative to the drop folder; null while a backfill is applied, and when the file is gone. */
  readonly destination: string | null;
}

type Row = Omit<FileRecord, 'report' | 'mapping' | 'bounds'> & { readonly report: string };

const COLUMNS = `number, name, export, window_start, label, sha256, bytes, outcome, taken_at, finished_at, rows_applied,
  report, destination`;
const SELECT = `SELECT ${COLUMNS} FROM ingest_file`;

const UPSERT_FILE = `
  INSERT INTO ingest_file (${COLUMNS})
  VALUES (:number, :name, :export, :window_start, :label, :sha256, :bytes, :outcome, :taken_at, :finished_at,
    :rows_applied, :report, :destination)
  ON CONFLICT (number) DO UPDATE SET outcome = excluded.outcome, finished_at = excluded.finished_at,
    rows_applied = excluded.rows_applied, report = excluded.report, destination = excluded.destination`;

/** Whoever writes the drop folder could have any number made. */
export const REFUSED_RECORDS_MAX = 1000;

const DELETE_REFUSED = `
  DELETE FROM ingest_file WHERE number IN (
    SELECT number FROM ingest_file INDEXED BY ingest_file_by_outcome
    WHERE outcome = 'refused' ORDER BY number DESC LIMIT -1 OFFSET :records)
    AND number NOT IN (SELECT value FROM json_each(:kept))`;

/** The newest first; it reads a bounded number of records, however few match. */
export const SELECT_FILES = `${SELECT} WHERE number < :before ORDER BY number DESC LIMIT :scanned`;

/** There are few of them, and an index leads to them. */
export const SELECT_FILES_NOT_APPLIED = `
  SELECT ${COLUMNS} FROM (
    SELECT number AS found FROM ingest_file INDEXED BY ingest_file_by_outcome
    WHERE outcome IN ('applying', 'repeated', 'failed', 'refused') AND number < :before
    ORDER BY number DESC LIMIT :scanned) CROSS JOIN ingest_file ON number = found
  ORDER BY found DESC`;

/** Of so many is enough: the clock was right again when one of them was read. */
const SELECT_FINISHED_AFTER = `
  SELECT min(finished_at) FROM (
    SELECT finished_at FROM ingest_file WHERE number > :number ORDER BY number LIMIT 1000)`;

/** @param clauses what follows FROM ingest_file */
export function selectFiles(db: Database, clauses: string, ...values: unknown[]): FileRecord[] {
  const rows = db.prepare<unknown[], Row>(`${SELECT} ${clauses}`).all(...values);
  return rows.map(fromRow);
}

export function saveFile(db: Database, { mapping, bounds, report, ...record }: FileRecord): void {
  const all = { ...report, mapping: mapping ?? undefined, bounds: bounds ?? undefined };
  db.prepare(UPSERT_FILE).run({ ...record, report: JSON.stringify(all) });
}

/** Deletes the oldest records of refused files. @param kept files that are still to be moved */
export function forgetRefused(db: Database, kept: readonly Pick<FileRecord, 'number'>[]): void {
  const numbers = JSON.stringify(kept.map(({ number }) => number));
  db.prepare(DELETE_REFUSED).run({ kept: numbers, records: REFUSED_RECORDS_MAX });
}

export const clearDestination = (db: Database, number: number): void =>
  void db.prepare('UPDATE ingest_file SET destination = NULL WHERE number = ?').run(number);

/** Backfills that are partly applied. */
export const applyingFiles = (db: Database): FileRecord[] =>
  selectFiles(db, "WHERE outcome = 'applying' ORDER BY number");

/** Applied files that were finished since, epoch milliseconds, the newest first. */
export function appliedSince(db: Database, since: number, limit: number): FileRecord[] {
  const clauses = "WHERE outcome = 'applied' AND finished_at >= ? ORDER BY finished_at DESC LIMIT ?";
  return selectFiles(db, clauses, since, limit);
}

export const newestFiles = (db: Database, limit: number): FileRecord[] =>
  selectFiles(db, 'ORDER BY number DESC LIMIT ?', limit);

/** Files that failed or were refused since, epoch milliseconds, the newest first; not if their window was done later. */
export function filesNotApplied(db: Database, since: number, limit: number): FileRecord[] {
  const clauses = `
    WHERE outcome IN ('failed', 'refused') AND finished_at > ? AND NOT EXISTS (
      SELECT 1 FROM export_window AS own
      WHERE own.export = ingest_file.export AND own.window_start = ingest_file.window_start
        AND own.status = 'done' AND own.since > finished_at)
    ORDER BY number DESC LIMIT ?`;
  return selectFiles(db, clauses, since, limit);
}

const PAGE_FILES = 50;
const SCANNED_FILES_MAX = 5000;

/**
 * The newest matching files, at most 50. It reads a bounded number of records: a page with fewer files can still have a
 * next one. @param wanted null wants all; `part`: of the name; `before`: only files with smaller numbers
 * @returns `next`: the `before` of the next page; null when there is none
 */
export function filesPage(
  db: Database,
  wanted: Readonly<Record<'export' | 'part', string | null>> &
    Readonly<{ outcomes: readonly string[] | null; before: number | null }>,
): { files: FileRecord[]; next: number | null } {
  const { outcomes, part, before } = wanted;
  const isFiltered = outcomes !== null || part !== null || wanted.export !== null;
  const scanned = isFiltered ? SCANNED_FILES_MAX : PAGE_FILES;
  const sql = outcomes?.includes('applied') === false ? SELECT_FILES_NOT_APPLIED : SELECT_FILES;
  const isWanted = (row: Row) =>
    (outcomes === null || outcomes.includes(row.outcome)) &&
    (wanted.export === null || wanted.export === row.export) &&
    (part === null || row.name.includes(part));
  const values = { before: before ?? Number.MAX_SAFE_INTEGER, scanned };
  const files: FileRecord[] = [];
  let seen = 0;
  let last: number | null = null;
  for (const row of db.prepare<unknown[], Row>(sql).iterate(values)) {
    seen += 1;
    last = row.number;
    if (isWanted(row)) files.push(fromRow(row));
    if (files.length === PAGE_FILES) break;
  }
  return { files, next: seen === scanned || files.length === PAGE_FILES ? last : null };
}

export function filesOfWindow(db: Database, exportName: ExportName, windowStart: number, limit: number) {
  const clauses = 'WHERE export = ? AND window_start = ? ORDER BY number DESC LIMIT ?';
  return selectFiles(db, clauses, exportName, windowStart, limit);
}

export const findFile = (db: Database, number: number): FileRecord | null =>
  selectFiles(db, 'WHERE number = ?', number)[0] ?? null;

/** By when a file, or its content before it, was taken, epoch milliseconds; if the clock was ahead, by the files after it. */
export function takenBy(db: Database, record: FileRecord): number {
  const { number, taken_at } = withSameContent(db, record)[0] ?? record;
  const after = db.prepare<unknown[], number | null>(SELECT_FINISHED_AFTER).pluck().get({ number });
  return Math.min(taken_at, after ?? taken_at);
}

export const filesNamed = (db: Database, name: string): FileRecord[] =>
  selectFiles(db, 'WHERE name = ? ORDER BY number DESC LIMIT 20', name);

type Content = Pick<FileRecord, 'export' | 'window_start' | 'label' | 'sha256'>;

/** The applied files with the same content for this window or label, the oldest first. */
export function withSameContent(db: Database, content: Content): FileRecord[] {
  const { sha256, export: exportName, window_start, label } = content;
  const clauses = `
    WHERE sha256 = ? AND outcome = 'applied' AND export = ? AND window_start IS ? AND label IS ? ORDER BY number`;
  return selectFiles(db, clauses, sha256, exportName, window_start, label);
}

/** The number of one of these with the same mapping, and without bad rows, which other settings may read; null: none. */
export function findSameContent(db: Database, content: Content & Pick<FileRecord, 'mapping'>): number | null {
  const isSame = (record: FileRecord) =>
    isDeepStrictEqual(record.mapping, content.mapping) && !record.report.bad_rows;
  return withSameContent(db, content).find(isSame)?.number ?? null;
}

/** Files of a window that lie in failed/, the newest first: it can be read from them again. */
export function filesLeft(db: Database, exportName: ExportName, windowStart: number): FileRecord[] {
  const clauses = `
    WHERE export = ? AND window_start = ? AND outcome = 'failed' AND destination IS NOT NULL ORDER BY number DESC`;
  return selectFiles(db, clauses, exportName, windowStart);
}

function fromRow(row: Row): FileRecord {
  const { mapping = null, bounds = null, ...report } = JSON.parse(row.report);
  return { ...row, report, mapping, bounds };
}

export type FileDocument = Readonly<ReturnType<typeof fileDocument>>;

export function fileDocument({ name, window_start, taken_at, finished_at, ...record }: FileRecord) {
  const { number, outcome, export: exportName, label, destination, sha256, bytes, report } = record;
  return {
    number,
    file: name,
    outcome,
    export: exportName,
    window_start: window_start === null ? null : formatMs(window_start),
    label,
    taken_at: formatMs(taken_at),
    finished_at: finished_at === null ? null : formatMs(finished_at),
    destination,
    sha256,
    bytes,
    report,
  };
}

/** `left_out`: bad, or of a stream that does not exist. */
export const ROW_OUTCOMES = ['created', 'updated', 'rescored', 'unchanged', 'left_out'] as const;

export type ProcessedFile = Readonly<ReturnType<typeof processedFile>>;

/** For metrics. */
export function processedFile(record: FileRecord) {
  const { created = 0, updated = 0, rescored = 0, unchanged = 0, bad_rows = 0, unknown_rows } = record.report;
  const unknown = Object.values(unknown_rows ?? {}).reduce((sum, rows) => sum + rows, 0);
  return {
    export: record.export,
    outcome: record.outcome,
    rows: { created, updated, rescored, unchanged, left_out: bad_rows + unknown },
  };
}
