/** The ledger of windows against the records of files. */
import type { Database } from '../store/database.ts';
import { formatMs, WINDOW_MS } from '../time.ts';
import type { Findings } from './findings.ts';

interface WindowRow {
  readonly export: string;
  readonly window_start: number;
  readonly status: string;
  readonly file: number | null;
}

interface FileRow {
  readonly number: number;
  readonly name: string;
  readonly outcome: string;
}

const WINDOWS_OFF_GRID = `
  SELECT export, window_start, status, file FROM export_window WHERE window_start % ${WINDOW_MS} <> 0`;

/** A window that is done or failed was brought there by a file of its own. */
const WINDOWS_WITHOUT_FILE = `
  SELECT win.export, win.window_start, win.status, win.file
  FROM export_window AS win LEFT JOIN ingest_file AS file
    ON file.number = win.file AND file.export = win.export AND file.window_start = win.window_start
      AND file.outcome = iif(win.status = 'done', 'applied', 'failed')
  WHERE win.status IN ('done', 'failed') AND file.number IS NULL`;

const FILES_WITHOUT_WINDOW = `
  SELECT file.number, file.name, file.outcome
  FROM ingest_file AS file LEFT JOIN export_window AS win
    ON win.export = file.export AND win.window_start = file.window_start AND win.status = 'done'
  WHERE file.outcome = 'applied' AND file.window_start IS NOT NULL AND win.export IS NULL`;

const FILES_NOT_WHOLE = `
  SELECT number, name, outcome FROM ingest_file
  WHERE (outcome = 'applied' AND (sha256 IS NULL OR length(sha256) <> 64))
    OR (outcome <> 'applying' AND finished_at IS NULL)`;

const EXPORTS_WITHOUT_EXPECTATION = `
  SELECT DISTINCT win.export FROM export_window AS win
  WHERE win.status = 'done' AND NOT EXISTS (SELECT 1 FROM export_expectation AS own WHERE own.export = win.export)`;

/** @param db a reader with an open transaction */
export function checkLedger(db: Database, findings: Findings): void {
  const nameOf = ({ export: name, window_start }: WindowRow) => `${name} ${formatMs(window_start)}`;
  for (const row of db.prepare<unknown[], WindowRow>(WINDOWS_OFF_GRID).iterate())
    findings.add('windows', `the window ${nameOf(row)} does not begin at a multiple of ten minutes`);
  for (const row of db.prepare<unknown[], WindowRow>(WINDOWS_WITHOUT_FILE).iterate()) {
    const file = row.file === null ? 'without a file' : `by file ${row.file}, whose record says otherwise`;
    findings.add('windows', `the window ${nameOf(row)} is ${row.status} ${file}`);
  }
  for (const { number, name } of db.prepare<unknown[], FileRow>(FILES_WITHOUT_WINDOW).iterate())
    findings.add('windows', `file ${number}, ${name}, was applied, and its window is not done`);
  for (const { number, name, outcome } of db.prepare<unknown[], FileRow>(FILES_NOT_WHOLE).iterate())
    findings.add(
      'windows',
      `the record of file ${number}, ${name}, is ${outcome} and lacks what belongs to that`,
    );
  for (const row of db.prepare<unknown[], { export: string }>(EXPORTS_WITHOUT_EXPECTATION).iterate())
    findings.add('windows', `${row.export} has windows that are done, and none is expected of it`);
}
