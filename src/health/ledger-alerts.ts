/** The alerts that follow from `detections.db`: windows, files, rows. Any process can determine them. */
import { counted } from '../counted.ts';
import { EXPORT_NAMES, type ExportName } from '../detection/content-type.ts';
import type { FileReport } from '../ingest/files/file-record.ts';
import type { Database } from '../store/database.ts';
import { DAY_MS, formatMs } from '../time.ts';
import { type HoldRules, type UnknownWindows, unknownWindows } from '../windows/ledger.ts';
import { lateAtMs, lateBeforeMs } from '../windows/window-states.ts';
import type { Alert } from './alert-texts.ts';

/** Nobody can do anything about most abandoned windows, so their alert ends after a week. */
const ABANDONED_SHOWN_MS = 7 * DAY_MS;
const FILES_SHOWN_MS = DAY_MS;
const STREAMS_SHOWN = 5;
/** A day's missing windows may come from one old file. */
const MANY_WINDOWS = 144;
const FILES_MAX = 1000;

type WindowsRow = UnknownWindows & Readonly<{ status: 'failed' | 'missing' | 'abandoned'; since: number }>;

interface FilesRow {
  readonly export: ExportName;
  readonly files: number;
  readonly since: number;
  /** The newest of them. */
  readonly name: string;
}

type SkippedRow = FilesRow & { readonly report: string };
type RefusedRow = Omit<FilesRow, 'export'> & { readonly reason: string | null };

/** Each half constrains the first columns of its index, so that SQLite reads only matching rows. */
const countWindows = (which: string) => `
  SELECT export, status, count(*) AS windows, min(since) AS since, min(window_start) AS first,
    max(window_start) AS last
  FROM export_window
  WHERE status <> 'done' AND export IN (${EXPORT_NAMES.map((name) => `'${name}'`).join(', ')}) AND ${which}
  GROUP BY export, status`;

export const WINDOWS_NOT_DONE = `
  ${countWindows("status IN ('failed', 'missing')")}
  UNION ALL
  ${countWindows("status = 'abandoned' AND since > :abandoned_since")}`;

export const FAILED_FILES = `
  SELECT export, count(*) AS files, min(finished_at) AS since, max(name) AS name FROM (
    SELECT file.export, file.finished_at, file.name FROM ingest_file AS file
    WHERE file.outcome = 'failed' AND file.finished_at > :since AND file.export IS NOT NULL
      AND (file.window_start IS NULL OR file.destination IS NOT NULL)
      AND NOT EXISTS (SELECT 1 FROM export_window AS win
        WHERE win.export = file.export AND win.window_start = file.window_start AND win.status = 'failed')
      AND NOT EXISTS (SELECT 1 FROM ingest_file AS later
        WHERE later.export = file.export AND later.window_start IS file.window_start
          AND later.label IS file.label AND later.number > file.number AND later.outcome IN ('applied', 'repeated'))
    LIMIT :limit)
  GROUP BY export`;

/** Columns beside max() are those of the row that has it (https://sqlite.org/lang_select.html, bare columns). */
export const FILES_WITH_SKIPPED_ROWS = `
  SELECT export, count(*) AS files, min(finished_at) AS since, max(number) AS newest, name, report
  FROM ingest_file INDEXED BY ingest_file_skipped
  WHERE rows_skipped = 1 AND outcome = 'applied' AND finished_at > :since AND export IS NOT NULL
  GROUP BY export`;

export const REFUSED_FILES = `
  SELECT count(*) AS files, min(finished_at) AS since, max(number) AS newest, name, report ->> '$.reason' AS reason
  FROM ingest_file WHERE outcome = 'refused' AND finished_at > :since`;

/** Exports that are switched off have none. */
export function ledgerAlerts(db: Database, rules: HoldRules, nowMs: number): Alert[] {
  const since = nowMs - FILES_SHOWN_MS;
  const isEnabled = (row: { readonly export: ExportName }) => rules.enabled_exports.includes(row.export);
  const windows = db
    .prepare<unknown[], WindowsRow>(WINDOWS_NOT_DONE)
    .all({ abandoned_since: nowMs - ABANDONED_SHOWN_MS });
  const failed = db.prepare<unknown[], FilesRow>(FAILED_FILES).all({ since, limit: FILES_MAX });
  const skipped = db.prepare<unknown[], SkippedRow>(FILES_WITH_SKIPPED_ROWS).all({ since });
  const refused = db.prepare<unknown[], RefusedRow>(REFUSED_FILES).all({ since });
  return [
    ...windows.filter(isEnabled).map((row) => windowsAlert(row, rules)),
    ...unknownWindows(db, lateBeforeMs(nowMs)).filter(isEnabled).map(lateAlert),
    ...failed.filter(isEnabled).map(failedAlert),
    ...refused.filter(({ files }) => files > 0).map(refusedAlert),
    ...skipped.filter(isEnabled).map(skippedAlert),
  ];
}

function windowsAlert(row: WindowsRow, { failed_windows }: HoldRules): Alert {
  const { export: exportName, status, windows, since, first } = row;
  const expect =
    windows < MANY_WINDOWS
      ? ''
      : `. If the export never had windows that old, set the first expected window: wirewatch window expect ${exportName} START`;
  const reset = `Then run: wirewatch window reset ${exportName} ${windows === 1 ? formatMs(first) : '--all'}`;
  const commands = {
    failed: failed_windows === 'hold' ? reset : undefined,
    missing: `To list the windows, run: wirewatch window list ${exportName} --status missing${expect}`,
    abandoned: `To accept, run: wirewatch window accept ${exportName} ${formatMs(first)}`,
  };
  const detail = windowsText(row, status);
  return { name: `${status} windows`, of: exportName, since, detail, command: commands[status] };
}

function lateAlert(late: UnknownWindows): Alert {
  const detail = `${windowsText(late, 'late')}: more than an hour overdue, but a later window was read`;
  return { name: 'late windows', of: late.export, since: lateAtMs(late.first), detail };
}

function windowsText({ export: exportName, windows, first, last }: UnknownWindows, kind: string): string {
  const to = windows === 1 ? '' : ` to ${formatMs(last)}`;
  return `${exportName}: ${counted(windows, `${kind} window`)}, ${formatMs(first)}${to}`;
}

function refusedAlert({ since, reason, ...row }: RefusedRow): Alert {
  return { name: 'refused files', of: '', since, detail: `refused ${filesText(row)}: ${reason}` };
}

function failedAlert({ export: exportName, since, ...row }: FilesRow): Alert {
  return { name: 'failed files', of: exportName, since, detail: `${exportName}: ${filesText(row)} failed` };
}

function skippedAlert({ export: exportName, since, report, ...row }: SkippedRow): Alert {
  const { unknown_rows = {}, bad_rows = 0 }: FileReport = JSON.parse(report);
  const skipped = Object.entries(unknown_rows).map(([stream, rows]) => {
    return `${counted(rows, 'row')} of ${stream.replace(/^(\d+):(.*)$/, 'subscription $1 ($2)')}`;
  });
  const more = skipped.splice(STREAMS_SHOWN).length;
  if (more > 0) skipped.push(counted(more, 'more subscription'));
  if (bad_rows > 0) skipped.push(counted(bad_rows, 'bad row'));
  return {
    name: 'rows skipped',
    of: exportName,
    since,
    detail: `${exportName}: rows were skipped in ${filesText(row)}: ${skipped.join(', ')}`,
    command: `For this file, run: wirewatch ingest explain ${row.name}`,
  };
}

const filesText = ({ files, name }: Pick<FilesRow, 'files' | 'name'>): string =>
  files === 1 ? name : `${name} and ${counted(files - 1, 'more file')}`;
