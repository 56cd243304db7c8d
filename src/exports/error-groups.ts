/** Counts the errors in an export file by kind, and shortens their values. Pure. */
import { counted } from '../counted.ts';
import type { RowError } from './check-row.ts';

/** `line` 0: the file as a whole. */
export type LineError = RowError & { readonly line: number };

/** Errors of one kind: with the same column and the same expectation. */
export interface ErrorGroup extends RowError {
  readonly count: number;
  /** The first lines with this error; `value` is that on the first one. */
  readonly lines: readonly number[];
}

const GROUPS_MAX = 20;
const GROUP_LINES_MAX = 5;
const VALUE_CHARACTERS_MAX = 200;

/** What is wrong with an export file. */
export interface FileErrors {
  /** The first ones. */
  readonly errors: readonly LineError[];
  readonly errors_total: number;
  /** All errors by kind, up to a limit of kinds. */
  readonly error_groups: readonly ErrorGroup[];
}

const ERRORS_MAX = 20;

/** Notes of so many bytes are enough to find the cause. A small file can unpack to millions of bad rows. */
const NOTES_BYTES_MAX = 4 * 1024 * 1024;

/** The bad rows of a file, and their errors with short values. */
export class BadRows {
  rows = 0;
  errors = 0;
  readonly #first: LineError[] = [];
  readonly #groups = new Map<string, ErrorGroup & { count: number; readonly lines: number[] }>();
  #notes = '';
  #notesBytes = 0;
  #unnoted = 0;

  /** @param row as the file has it */
  add(line: number, errors: readonly RowError[], row: unknown): void {
    this.rows += 1;
    this.errors += errors.length;
    const short = errors.map(shortened);
    for (const error of short) this.#group(line, error);
    this.#note({ line, errors: short, row });
  }

  #group(line: number, error: RowError): void {
    if (this.#first.length < ERRORS_MAX) this.#first.push({ line, ...error });
    const key = `${error.column} ${error.expected}`;
    const group = this.#groups.get(key);
    if (group !== undefined) {
      group.count += 1;
      if (group.lines.length < GROUP_LINES_MAX) group.lines.push(line);
    } else if (this.#groups.size < GROUPS_MAX) this.#groups.set(key, { ...error, count: 1, lines: [line] });
  }

  #note(bad: { readonly line: number; readonly errors: readonly RowError[]; readonly row: unknown }): void {
    const isRoom = this.#notesBytes < NOTES_BYTES_MAX;
    const note = isRoom ? `${jsonText(bad) ?? jsonText({ ...bad, row: NESTED_TOO_DEEPLY })}\n` : '';
    this.#notesBytes += Buffer.byteLength(note);
    if (isRoom && this.#notesBytes <= NOTES_BYTES_MAX) this.#notes += note;
    // All rows after it are left out, too: the notes have no gaps.
    else this.#unnoted += 1;
  }

  /**
   * The notes that come to lie beside a file whose bad rows were skipped, as `NAME.skipped.ndjson`: a JSON object a line; the
   * rows beyond the limit are only counted. Empty without bad rows.
   */
  notes(): string {
    return this.#unnoted === 0 ? this.#notes : `${this.#notes}{"more_rows":${this.#unnoted}}\n`;
  }

  /** @param ofFile what is wrong with the file as a whole; it comes before its rows */
  all(ofFile: readonly LineError[]): FileErrors {
    const groups = ofFile.map(({ line, ...error }) => ({ ...error, count: 1, lines: [line] }));
    return {
      errors: [...ofFile, ...this.#first].slice(0, ERRORS_MAX),
      errors_total: ofFile.length + this.errors,
      error_groups: [...groups, ...this.#groups.values()],
    };
  }
}

/**
 * An error in words, with the file's own column and value where a mapping gives them others.
 * @param example what stands before the value if it is one of several
 */
export function errorText(error: RowError, example = ''): string {
  const { expected, value, value_in_file } = error;
  const column = columnText(error);
  const place = column === null ? '' : `${column}: `;
  const given = value_in_file === undefined ? '' : `${jsonText(value_in_file)}, read as `;
  return `${place}expected ${expected}${value === null ? '' : `, found ${example}${given}${jsonText(value)}`}`;
}

/** The column of an error, behind the file's own name for it; null: it is about the whole line. */
export const columnText = ({ column, column_in_file }: RowError): string | null =>
  column === null || column_in_file === undefined ? column : `${column_in_file} (${column})`;

/** `line 1, strength_score: expected a number from 0 to 100, found "high"; 5 more errors`; null without errors. */
export function firstErrorText({ errors = [], errors_total = errors.length }: Partial<FileErrors>) {
  const [first] = errors;
  if (first === undefined) return null;
  const more = errors_total > 1 ? `; ${counted(errors_total - 1, 'more error')}` : '';
  const line = first.line === 0 ? '' : `line ${first.line}${first.column === null ? ': ' : ', '}`;
  return `${line}${errorText(first)}${more}`;
}

/** Truncates a long value: it is shown only so that a person can find the row. */
export function shortened(error: RowError): RowError {
  const value = shortValue(error.value);
  if (error.value_in_file === undefined) return value === error.value ? error : { ...error, value };
  return { ...error, value, value_in_file: shortValue(error.value_in_file) };
}

/** A value that is short, and can be written as JSON. */
export function shortValue(value: unknown): unknown {
  const text = typeof value === 'string' ? value : jsonText(value);
  if (text === null) return NESTED_TOO_DEEPLY;
  if (text === undefined || text.length <= VALUE_CHARACTERS_MAX) return value;
  return `${text.slice(0, VALUE_CHARACTERS_MAX)}…`;
}

/** Shown for a value that {@link jsonText} cannot write. */
const NESTED_TOO_DEEPLY = '(nested too deeply to show)';

/** A value as JSON; null if it is nested too deeply: JSON.parse accepts deeper nesting than JSON.stringify. */
function jsonText(value: unknown): string | null | undefined {
  try {
    return JSON.stringify(value);
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}
