/** Rows as the text of an export file: NDJSON lines, or CSV by RFC 4180. */
import type { ExportName } from '../detection/content-type.ts';
import type { SampleRow } from './rows.ts';

type Value = string | number | boolean | null;

/** The columns that a CSV file's header names, in the order in which every sample row has them. */
export const COLUMNS: Readonly<Record<ExportName, readonly string[]>> = {
  newswire:
    'subscription_id source_internal_id article_id first_detected_at last_scored_at strength_score first_detected_estimated exported_at source_id source_published_at source_language source_syndicated source_sentences strength_matched_sentences strength_article_sentences article_url article_domain article_published_at article_headline article_publisher_id article_publisher_name article_print'.split(
      ' ',
    ),
  imagewire:
    'subscription_id source_internal_id article_id first_detected_at last_scored_at strength_score first_detected_estimated exported_at source_id source_published_at source_image_url source_origin_url article_url article_domain article_published_at article_headline article_publisher_id article_publisher_name article_image_url'.split(
      ' ',
    ),
};

const QUOTED = /[",\r\n]/;

export function ndjsonLine(row: SampleRow): string {
  return `${JSON.stringify(row)}\n`;
}

/** The line by which a reader can tell a complete NDJSON file from a part of one. */
export function trailerLine(rows: number): string {
  return `${JSON.stringify({ end_of_export: true, rows })}\n`;
}

export function csvHeader(exportName: ExportName): string {
  return csvRecord(COLUMNS[exportName]);
}

export function csvLine(row: SampleRow): string {
  return csvRecord(Object.values(row));
}

function csvRecord(values: readonly Value[]): string {
  let line = '';
  for (const value of values) line += `${line === '' ? '' : ','}${csvField(value)}`;
  return `${line}\r\n`;
}

function csvField(value: Value): string {
  if (value === null) return '';
  if (typeof value !== 'string') return String(value);
  return QUOTED.test(value) ? `"${value.replaceAll('"', '""')}"` : value;
}
