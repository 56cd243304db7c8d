/** The raw rows of an export: the common result of reading NDJSON and CSV. */
import type { RawRow, RowError } from '../rules/check-row.ts';

export type RawEntry =
  | { readonly kind: 'row'; readonly line: number; readonly raw: RawRow }
  /** One row cannot be read; the rest of the file can. */
  | { readonly kind: 'bad row'; readonly line: number; readonly error: RowError; readonly text: string }
  /** The optional last line of an NDJSON file. */
  | { readonly kind: 'trailer'; readonly line: number; readonly rows: number }
  /** The rest of the file cannot be read. */
  | { readonly kind: 'bad file'; readonly line: number; readonly error: RowError };

export function badFile(
  line: number,
  expected: string,
  value: unknown = null,
  column: string | null = null,
): RawEntry {
  return { kind: 'bad file', line, error: { column, value, expected } };
}

export function badRow(line: number, expected: string, text: string): RawEntry {
  return { kind: 'bad row', line, error: { column: null, value: text, expected }, text };
}
