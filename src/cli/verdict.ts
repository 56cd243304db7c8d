/** What `ingest validate` says of a file: the document, and its text. */
import { counted, grouped } from '../counted.ts';
import { EXPORT_COLUMNS } from '../exports/columns.ts';
import { type ErrorGroup, errorText } from '../exports/error-groups.ts';
import type { ExportFileName } from '../exports/file-name.ts';
import type { FirstRows, ReadValue } from '../ingest/reading/dry-run.ts';
import type { ReadingResult } from '../ingest/reading/read-export.ts';
import { nearest } from '../nearest.ts';
import { SHOW_URLS, withheldText } from '../operations/status-views.ts';
import { documentTable, joined } from '../text-layout.ts';
import { formatMs } from '../time.ts';

const COLUMN_NAMES = EXPORT_COLUMNS.map(({ name }) => name);

export type Verdict = ReturnType<typeof verdictOf>;

/** `unread`: why a file was not read. */
type Reading = { unread: string | null; mapped: boolean; first_rows: FirstRows['rows'] };

/**
 * @param named null if the name is not that of an export file
 * @param result null if the file was not read
 */
export function verdictOf(
  file: string,
  named: ExportFileName | null,
  result: ReadingResult | null,
  { unread = null, mapped = false, first_rows = [] }: Partial<Reading> = {},
) {
  const bad = result?.kind === 'bad' ? result : null;
  const start = named?.window_start ?? null;
  return {
    file,
    valid: result?.kind === 'read',
    export: named?.export ?? null,
    window_start: start === null ? null : formatMs(start),
    label: named?.label ?? null,
    rows: result?.counts.rows ?? 0,
    /** Why it is not valid, if the cause is not in single rows. */
    reason: result !== null && 'reason' in result ? result.reason : unread,
    errors_total: bad?.errors_total ?? 0,
    rows_with_errors: bad?.rows_with_errors ?? 0,
    errors: bad?.errors ?? [],
    /** All errors by column and kind. */
    error_groups: bad?.error_groups ?? [],
    ignored_columns: result?.counts.ignored_columns ?? [],
    /** Rows whose publisher name is ignored, because they have no article_publisher_id. */
    names_without_id: result?.counts.names_without_id ?? 0,
    /** Rows of print articles whose article_url customers do not see without a licence of their account. */
    urls_withheld: result?.counts.urls_withheld ?? 0,
    /** Whether the export has a mapping, by its settings. */
    mapped,
    /** What the columns of the first rows were read as. */
    first_rows,
  };
}

export function verdictText(verdict: Verdict): string {
  const about =
    verdict.export === null
      ? ''
      : ` (${verdict.export} ${verdict.window_start ?? `backfill ${verdict.label}`})`;
  const notes = [
    verdict.ignored_columns.length > 0 &&
      `ignored columns: ${verdict.ignored_columns.map(withSuggestion).join(', ')}`,
    verdict.names_without_id > 0 &&
      `${counted(verdict.names_without_id, 'row')} with article_publisher_name but without article_publisher_id: the name is ignored`,
    verdict.urls_withheld > 0 && `${withheldText(verdict.urls_withheld)}. ${SHOW_URLS}`,
  ];
  const read = verdict.mapped && firstRowsText(verdict.first_rows);
  if (verdict.valid) return joined('\n', [`valid: ${counted(verdict.rows, 'row')}${about}`, ...notes, read]);
  const errors = verdict.error_groups.map(groupText);
  const left = verdict.error_groups.reduce((rest, { count }) => rest - count, verdict.errors_total);
  const more = left > 0 && `  … ${counted(left, 'error')} of other kinds`;
  const { rows, rows_with_errors } = verdict;
  // If the file as a whole breaks the format, no row has errors.
  const some = rows_with_errors === 0 || rows === 1 ? '' : `${grouped(rows_with_errors)} of `;
  const why = verdict.reason ?? `${counted(verdict.errors_total, 'error')} in ${some}${counted(rows, 'row')}`;
  return joined('\n', [`invalid: ${why}${about}`, ...errors, more, ...notes, read]);
}

/** The columns of the first rows: where they are in the file, and what each was read as. */
function firstRowsText(rows: FirstRows['rows']): string | false {
  const names = [...new Set(rows.flatMap(({ columns }) => Object.keys(columns)))];
  if (names.length === 0) return false;
  const nameInFile = (name: string) => {
    const reads = rows.flatMap(({ columns }) => columns[name] ?? []);
    if (reads.every(({ constant }) => constant === true)) return '(constant)';
    return reads.find(({ column_in_file }) => column_in_file !== undefined)?.column_in_file ?? name;
  };
  const shown = names.map((column) => ({
    column,
    in_the_file: nameInFile(column),
    ...Object.fromEntries(rows.map(({ line, columns }) => [`line ${line}`, readText(columns[column])])),
  }));
  return `first rows:\n${documentTable(shown)}`;
}

/** `"62,5" as 62.5` */
function readText(read: ReadValue | undefined): string {
  if (read === undefined) return '';
  const value = JSON.stringify(read.value);
  if (read.value_in_file === undefined) return value;
  return `${JSON.stringify(read.value_in_file)}${read.unreadable ? ', unreadable' : ` as ${value}`}`;
}

function groupText({ count, lines, ...error }: ErrorGroup): string {
  const numbers = `${lines.length === 1 ? 'line' : 'lines'} ${lines.join(', ')}${count > lines.length ? ', …' : ''}`;
  const shown = lines[0] === 0 ? 'the whole file' : numbers;
  const where = count > 1 ? `${counted(count, 'time')}, ${shown}` : shown;
  const advice = error.what_to_do === undefined ? '' : `\n    ${error.what_to_do}`;
  return `  ${errorText(error, count > 1 ? 'for example ' : '')} (${where})${advice}`;
}

/** An ignored column may be a misspelt one. */
function withSuggestion(name: string): string {
  const column = nearest(name, COLUMN_NAMES, 3);
  return column === null ? name : `${name} (did you mean ${column}?)`;
}
