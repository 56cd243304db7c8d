/** Checks one row of an export. Pure. */
import { grouped } from '../counted.ts';
import { BANDS, bandStep } from '../detection/band.ts';
import { CONTENT_TYPE_OF_EXPORT, type ExportName, TYPE_RULES } from '../detection/content-type.ts';
import { type ColumnKind, EMPTY_ROW, type ExportRow } from '../detection/fields.ts';
import { formatSeconds, parseSeconds } from '../time.ts';
import { Bad, hostOfDomain, readAddress, registrableDomain } from './article-address.ts';
import { type ColumnName, EXPORT_COLUMNS, exportColumn } from './columns.ts';

/** The bounds of the times in a file, in the form of the API. `earliest`: only of `first_detected_at`. */
export type TimeBounds = Readonly<Record<'earliest' | 'latest', string>>;

export interface RowLimits extends TimeBounds {
  readonly export: ExportName;
  /** The default of `first_detected_estimated`. */
  readonly estimated: boolean;
}

export interface RowError {
  readonly column: string | null;
  readonly value: unknown;
  readonly expected: string;
  /** The file's own name of the column, where a mapping gives it another. */
  readonly column_in_file?: string;
  /** The file's own value, where a mapping reads it as another. */
  readonly value_in_file?: unknown;
  /** If that is not just to correct the value. */
  readonly what_to_do?: string;
}

export type RawRow = Readonly<Record<string, unknown>>;

/** `isNameDropped`: that of the publisher, because the row has no publisher id. */
export type CheckedRow =
  | { readonly kind: 'row'; readonly row: ExportRow; readonly isNameDropped: boolean }
  | { readonly kind: 'bad'; readonly errors: readonly RowError[] };

/** Columns that Wirewatch derives: if an export has them, their values must match. */
const DERIVED_COLUMNS = ['content_type', 'match_type', 'strength_band'] as const;
const EARLIEST_TIME =
  'This bound is the setting [ingest] earliest_time (default: five years before the window, or before a backfill is read). For older detections, set it.';
const STRING_BYTES_MAX = 4 * 1024;
const REQUIRED = EXPORT_COLUMNS.filter((column) => column.required);
/** Longer names are truncated in a file's record. */
const COLUMN_NAME_MAX = 100;
/** So many unknown columns are named in a file's record. */
export const IGNORED_COLUMNS_MAX = 50;

/** @param ignored collects the names of unknown columns */
export function checkRow(raw: RawRow, limits: RowLimits, ignored: Set<string>): CheckedRow {
  const row = { ...EMPTY_ROW, first_detected_estimated: limits.estimated };
  const values: Record<ColumnName, unknown> = row;
  const errors: RowError[] = [];
  let hasDerived = false;
  for (const name in raw) {
    const column = exportColumn(name);
    if (column === undefined) {
      if (isDerived(name)) hasDerived = true;
      else if (ignored.size < IGNORED_COLUMNS_MAX) ignored.add(name.slice(0, COLUMN_NAME_MAX));
      continue;
    }
    if (!column.exports.includes(limits.export)) {
      const expected = `no column ${name} in ${limits.export} files`;
      errors.push({ column: name, value: raw[name], expected });
      continue;
    }
    const value = raw[name];
    if (isAbsent(value)) continue;
    // A mapping may not have been able to read it.
    const isRead = !(value instanceof Bad);
    const read = isRead ? readValue(value, column.kind, limits) : value;
    if (read instanceof Bad) errors.push(errorOf(name, isRead ? value : null, read));
    else values[column.name] = read;
  }
  for (const { name } of REQUIRED)
    if (isAbsent(raw[name]))
      errors.push({ column: name, value: raw[name] ?? null, expected: 'a value: this column is required' });
  if (hasDerived && errors.length === 0) errors.push(...checkDerived(raw, row, limits.export));
  if (errors.length > 0) return { kind: 'bad', errors };
  const domain = row.article_domain ?? (typeof raw.article_url === 'string' ? raw.article_url : '');
  row.article_domain = domain === '' ? null : registrableDomain(hostOfDomain(domain));
  const isNameDropped = row.article_publisher_id === null && row.article_publisher_name !== null;
  if (isNameDropped) row.article_publisher_name = null;
  return { kind: 'row', row, isNameDropped };
}

/** Whether a column means something in a row. */
export const isChecked = (name: string) => exportColumn(name) !== undefined || isDerived(name);

const isDerived = (name: string) => (DERIVED_COLUMNS as readonly string[]).includes(name);

const errorOf = (column: string, value: unknown, { expected, what_to_do }: Bad): RowError =>
  what_to_do === undefined ? { column, value, expected } : { column, value, expected, what_to_do };

/** @returns the value as it is stored, or {@link Bad} */
export function readValue(value: unknown, kind: ColumnKind, limits: Omit<RowLimits, 'estimated'>): unknown {
  switch (kind.type) {
    case 'integer':
      return typeof value === 'number' && Number.isInteger(value) && value >= kind.least && value <= kind.most
        ? value + 0
        : new Bad(`an integer from ${grouped(kind.least)} to ${grouped(kind.most)}`);
    case 'score': {
      const most = TYPE_RULES[CONTENT_TYPE_OF_EXPORT[limits.export]].score_max;
      return typeof value === 'number' && value >= 0 && value <= most
        ? value + 0
        : new Bad(`a number from 0 to ${most}`);
    }
    case 'boolean':
      return typeof value === 'boolean' ? value : new Bad('true or false');
    case 'timestamp':
      return readTimestamp(value, kind.bound, limits);
    case 'string':
      return readString(value, kind.characters_max, kind.trimmed);
    case 'address':
      return typeof value === 'string' && value.isWellFormed()
        ? readAddress(value)
        : new Bad('an absolute URL that begins with http:// or https://');
  }
}

function readTimestamp(value: unknown, bound: 'none' | 'latest' | 'both', limits: TimeBounds): string | Bad {
  const seconds = typeof value === 'string' ? parseSeconds(value) : null;
  if (seconds === null || typeof value !== 'string')
    return new Bad('an ISO 8601 time with Z or an offset, such as 2026-11-21T10:10:00Z');
  // Stored times are compared as text, so each has only one spelling. Most rows have it already.
  const text = value.length === 20 && value[10] === 'T' && value[19] === 'Z' ? value : formatSeconds(seconds);
  if (bound === 'both' && text < limits.earliest)
    return new Bad(`a time not before ${limits.earliest}`, EARLIEST_TIME);
  if (bound !== 'none' && text > limits.latest) return new Bad(`a time not after ${limits.latest}`);
  return text;
}

function readString(value: unknown, charactersMax = Number.POSITIVE_INFINITY, trimmed = false) {
  if (typeof value !== 'string' || !value.isWellFormed()) return new Bad('a string of valid Unicode');
  if (value.length * 3 > STRING_BYTES_MAX && Buffer.byteLength(value) > STRING_BYTES_MAX)
    return new Bad('a string of at most 4 KiB');
  if (value.length > charactersMax && [...value].length > charactersMax)
    return new Bad(`a string of at most ${charactersMax} characters`);
  return trimmed ? value.trim() || null : value;
}

const isAbsent = (value: unknown) => value === undefined || value === null || value === '';

function checkDerived(raw: RawRow, row: ExportRow, exportName: ExportName): RowError[] {
  const contentType = CONTENT_TYPE_OF_EXPORT[exportName];
  const expected: Record<(typeof DERIVED_COLUMNS)[number], string> = {
    content_type: contentType,
    match_type: TYPE_RULES[contentType].match_type,
    strength_band: BANDS[bandStep(contentType, row.strength_score)] ?? '',
  };
  return Object.entries(expected).flatMap(([column, wanted]) => {
    const value = raw[column];
    return isAbsent(value) || value === wanted
      ? []
      : [{ column, value, expected: `"${wanted}", or no value` }];
  });
}
