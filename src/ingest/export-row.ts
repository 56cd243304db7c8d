/**
 * One row of an export: raw values in, a checked row or the reasons against it out. Pure.
 *
 * The row is walked once, by its own keys: a row has about twenty of them and there may be millions of rows.
 */
import { BANDS, bandStep } from '../detection/band.ts';
import { CONTENT_TYPE_OF_EXPORT, type ExportName, MATCH_TYPES } from '../detection/content-type.ts';
import type { ExportRow } from '../detection/match.ts';
import { formatSeconds, parseSeconds } from '../time.ts';
import { hostOfDomain, readAddress, registrableDomain } from './address.ts';
import {
  type CheckedColumn,
  type ColumnKind,
  EXPORT_COLUMNS,
  exportColumn,
  isCheckedColumn,
} from './export-columns.ts';

export interface RowLimits {
  readonly export: ExportName;
  /** The earliest `first_detected_at`, as the contract writes times. */
  readonly earliest: string;
  /** The latest `first_detected_at` and `last_scored_at`. */
  readonly latest: string;
  /** `first_detected_estimated` of a row that does not say. */
  readonly estimated: boolean;
}

export interface RowError {
  readonly column: string | null;
  readonly value: unknown;
  readonly expected: string;
}

export type RawRow = Readonly<Record<string, unknown>>;

export type CheckedRow =
  | {
      readonly kind: 'row';
      readonly row: ExportRow;
      /** A publisher's name was left out, since the row has no id for it. */
      readonly isNameLeftOut: boolean;
    }
  | { readonly kind: 'bad'; readonly errors: readonly RowError[] };

const STRING_BYTES_MAX = 4 * 1024;
const REQUIRED = EXPORT_COLUMNS.filter((column) => column.required);
/** A column names itself in a file's record at most this long. */
const COLUMN_NAME_MAX = 100;
const IGNORED_COLUMNS_MAX = 50;

/**
 * @param ignored collects the names of columns that mean nothing here
 */
export function checkRow(raw: RawRow, limits: RowLimits, ignored: Set<string>): CheckedRow {
  const row = emptyRow(limits);
  const errors: RowError[] = [];
  let requiredSeen = 0;
  let checked = false;
  let articleHost: string | null = null;
  for (const name in raw) {
    const column = exportColumn(name);
    if (column === undefined) {
      if (isCheckedColumn(name)) checked = true;
      else if (ignored.size < IGNORED_COLUMNS_MAX) ignored.add(name.slice(0, COLUMN_NAME_MAX));
      continue;
    }
    if (!column.exports.includes(limits.export)) {
      errors.push({
        column: name,
        value: raw[name],
        expected: `no column ${name} in a file of ${limits.export}`,
      });
      continue;
    }
    const value = raw[name];
    if (value === null || value === undefined || value === '') continue;
    if (column.required) requiredSeen += 1;
    const read = readValue(value, column.kind, limits);
    if (read.kind === 'bad') {
      errors.push({ column: name, value, expected: read.expected });
      continue;
    }
    if (name === 'article_url') articleHost = read.host ?? null;
    assign(row, name, read.value);
  }
  if (requiredSeen < REQUIRED.length) errors.push(...missing(raw));
  if (checked && errors.length === 0) errors.push(...checkGiven(raw, row, limits.export));
  if (errors.length > 0) return { kind: 'bad', errors };
  const isNameLeftOut = row.article_publisher_id === null && row.article_publisher_name !== null;
  finish(row, articleHost);
  return { kind: 'row', row, isNameLeftOut };
}

type ReadValue =
  | { readonly kind: 'value'; readonly value: unknown; readonly host?: string }
  | { readonly kind: 'bad'; readonly expected: string };

function readValue(value: unknown, kind: ColumnKind, limits: RowLimits): ReadValue {
  switch (kind.type) {
    case 'integer':
      return typeof value === 'number' && Number.isInteger(value) && value >= kind.least && value <= kind.most
        ? { kind: 'value', value: value + 0 }
        : bad(`an integer from ${kind.least} to ${kind.most}`);
    case 'score': {
      const most = limits.export === 'newswire' ? 100 : 99;
      return typeof value === 'number' && value >= 0 && value <= most
        ? { kind: 'value', value: value + 0 }
        : bad(`a number from 0 to ${most}`);
    }
    case 'boolean':
      return typeof value === 'boolean' ? { kind: 'value', value } : bad('true or false');
    case 'timestamp':
      return readTimestamp(value, kind.bound, limits);
    case 'string':
      return readString(value, kind.characters_max, kind.trimmed === true);
    case 'address': {
      if (typeof value !== 'string' || !value.isWellFormed()) return bad('an absolute http or https address');
      const address = readAddress(value);
      return address.kind === 'bad'
        ? bad(address.expected)
        : { kind: 'value', value: address.url, host: address.host };
    }
  }
}

function readTimestamp(value: unknown, bound: 'none' | 'latest' | 'both', limits: RowLimits): ReadValue {
  const seconds = typeof value === 'string' ? parseSeconds(value) : null;
  if (seconds === null || typeof value !== 'string') {
    return bad('an ISO 8601 time with Z or an offset, such as 2026-11-21T10:10:00Z');
  }
  const text = value.length === 20 ? value : formatSeconds(seconds);
  if (bound === 'both' && text < limits.earliest) return bad(`a time not before ${limits.earliest}`);
  if (bound !== 'none' && text > limits.latest) return bad(`a time not after ${limits.latest}`);
  return { kind: 'value', value: text };
}

function readString(value: unknown, charactersMax: number | undefined, trimmed: boolean): ReadValue {
  if (typeof value !== 'string' || !value.isWellFormed()) return bad('a string of Unicode text');
  if (value.length * 3 > STRING_BYTES_MAX && Buffer.byteLength(value) > STRING_BYTES_MAX) {
    return bad('a string of at most 4 KiB');
  }
  if (charactersMax !== undefined && value.length > charactersMax && [...value].length > charactersMax) {
    return bad(`a string of at most ${charactersMax} characters`);
  }
  return { kind: 'value', value: trimmed ? value.trim() || null : value };
}

function missing(raw: RawRow): RowError[] {
  return REQUIRED.filter(({ name }) => raw[name] === undefined || raw[name] === null || raw[name] === '').map(
    ({ name }) => ({ column: name, value: raw[name] ?? null, expected: `a value: ${name} is required` }),
  );
}

/** An export may carry what the appliance gives itself; then it must say the same. */
function checkGiven(raw: RawRow, row: ExportRow, exportName: ExportName): RowError[] {
  const contentType = CONTENT_TYPE_OF_EXPORT[exportName];
  const expected: Record<CheckedColumn, string> = {
    content_type: contentType,
    match_type: MATCH_TYPES[contentType],
    strength_band: BANDS[bandStep(contentType, row.strength_score)] ?? '',
  };
  return Object.entries(expected).flatMap(([column, wanted]) => {
    const value = raw[column];
    const given = value !== undefined && value !== null && value !== '';
    return given && value !== wanted ? [{ column, value, expected: `"${wanted}", or no such column` }] : [];
  });
}

/** What follows from several columns: the registrable domain, and no name without the publisher's id. */
function finish(row: ExportRow, articleHost: string | null): void {
  const host = row.article_domain === null ? articleHost : hostOfDomain(row.article_domain);
  row.article_domain = host === null ? null : registrableDomain(host);
  if (row.article_publisher_id === null) row.article_publisher_name = null;
}

function assign(row: ExportRow, name: string, value: unknown): void {
  Reflect.set(row, name, value);
}

function emptyRow(limits: RowLimits): ExportRow {
  return {
    subscription_id: 0,
    source_internal_id: 0,
    article_id: 0,
    first_detected_at: '',
    last_scored_at: '',
    strength_score: 0,
    first_detected_estimated: limits.estimated,
    exported_at: null,
    source_id: null,
    source_published_at: null,
    source_language: null,
    source_syndicated: null,
    source_sentences: null,
    source_image_url: null,
    source_origin_url: null,
    strength_matched_sentences: null,
    strength_article_sentences: null,
    article_url: null,
    article_domain: null,
    article_published_at: null,
    article_headline: null,
    article_publisher_id: null,
    article_publisher_name: null,
    article_print: false,
    article_image_url: null,
  };
}

function bad(expected: string): ReadValue {
  return { kind: 'bad', expected };
}
