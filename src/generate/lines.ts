/** Rows as lines of an export file: NDJSON, or CSV by RFC 4180. */
import { type ExportName, perExport } from '../detection/content-type.ts';
import { EXPORT_COLUMNS } from '../ingest/format/columns.ts';

/** The columns of an export, in the order in which every sample row has them. */
export const COLUMNS: Readonly<Record<ExportName, readonly string[]>> = perExport((exportName) =>
  EXPORT_COLUMNS.filter(({ exports }) => exports.includes(exportName)).map(({ name }) => name),
);

const QUOTED = /[",\r\n]/;

export function ndjsonLine(row: object): string {
  return `${JSON.stringify(row)}\n`;
}

/** The last line, by which a reader recognizes a complete NDJSON file. */
export function trailerLine(rows: number): string {
  return `${JSON.stringify({ end_of_export: true, rows })}\n`;
}

export function csvHeader(exportName: ExportName): string {
  return csvRecord(COLUMNS[exportName]);
}

export function csvLine(row: object): string {
  return csvRecord(Object.values(row));
}

function csvRecord(values: readonly unknown[]): string {
  let line = '';
  for (const value of values) line += `${line === '' ? '' : ','}${csvField(value)}`;
  return `${line}\r\n`;
}

function csvField(value: unknown): string {
  if (value === null) return '';
  if (typeof value !== 'string') return String(value);
  return QUOTED.test(value) ? `"${value.replaceAll('"', '""')}"` : value;
}
