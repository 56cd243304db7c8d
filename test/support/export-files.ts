/** Creates rows and export files, as a writer would; each file is for its own window. */
import { gzipSync, zstdCompressSync } from 'node:zlib';
import type { ExportName } from '../../src/detection/content-type.ts';
import type { Form } from '../../src/exports/file-name.ts';
import { DAY_MS, formatMs, formatWindowStart, WINDOW_MS } from '../../src/time.ts';

export type Row = Readonly<Record<string, unknown>>;

let lastArticle = 1000;
let lastWindowMs = Math.floor((Date.now() - 20 * DAY_MS) / WINDOW_MS) * WINDOW_MS;

/** The start of a past window, a later one with each call. */
export function nextWindowMs(): number {
  lastWindowMs += WINDOW_MS;
  return lastWindowMs;
}

export const fileName = (exportName: ExportName, windowMs: number, form: Form = 'ndjson'): string =>
  `${exportName}.${formatWindowStart(windowMs)}.${form}`;

/** A row with the required columns, of a new detection. */
export function newRow(members: Row = {}): Row {
  lastArticle += 1;
  return {
    subscription_id: 7001,
    source_internal_id: 501,
    article_id: lastArticle,
    first_detected_at: formatMs(lastWindowMs),
    last_scored_at: formatMs(lastWindowMs),
    strength_score: 61.5,
    ...members,
  };
}

export const newRows = (count: number, members?: Row) => Array.from({ length: count }, () => newRow(members));

/** The id of a row's detection. */
export function idOf(row: Row, exportName: ExportName = 'newswire'): string {
  const type = exportName === 'newswire' ? 't' : 'i';
  return `${type}.${row.subscription_id}.${row.source_internal_id}.${row.article_id}`;
}

export const ndjson = (rows: readonly Row[]): string =>
  rows.map((row) => `${JSON.stringify(row)}\n`).join('');

/** RFC 4180 with CRLF; the columns are those of the first row. */
export function csv(rows: readonly Row[]): string {
  const columns = Object.keys(rows[0] ?? {});
  const lines = rows.map((row) => columns.map((column) => csvField(row[column])).join(','));
  return [columns.map(csvField).join(','), ...lines].map((line) => `${line}\r\n`).join('');
}

export function packed(form: Form, content: string | Buffer): Buffer {
  const bytes = Buffer.from(content);
  if (form.endsWith('.gz')) return gzipSync(bytes);
  return form.endsWith('.zst') ? zstdCompressSync(bytes) : bytes;
}

/** The rows as a file of a form, compressed if the form is. */
export const contentOf = (form: Form, rows: readonly Row[]): Buffer =>
  packed(form, form.startsWith('csv') ? csv(rows) : ndjson(rows));

function csvField(value: unknown): string {
  const text = value === null || value === undefined ? '' : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
