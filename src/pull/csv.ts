/**
 * A copy as CSV (RFC 4180), a line for each version: the columns are those of GET /v1/schema/detection, so a column that
 * the service gains is in files that are begun later.
 */
import type { Detection, Schema } from './answers.ts';
import type { LineForm } from './lines.ts';

export function csvForm(schema: Schema): LineForm {
  // `event` is of the stream, not of the detection; a copy holds detections.
  const fields = schema.fields.filter(({ path }) => path !== 'event');
  return {
    head: fields.map(({ column }) => column).join(','),
    line: (detection) => fields.map(({ path }) => cell(valueAt(detection, path))).join(','),
  };
}

function valueAt(detection: Detection, path: string): unknown {
  let value: unknown = detection;
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null) return null;
    value = Reflect.get(value, name);
  }
  return value;
}

/** Null and absent are empty. */
function cell(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (typeof value !== 'string') return JSON.stringify(value);
  const text = inert(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * What a spreadsheet would take for a formula gets an apostrophe before it: headlines come from strangers
 * (OWASP, CSV Injection, which also names line feeds and the full-width signs).
 */
function inert(text: string): string {
  return /^[=+\-@\t\r\n＝＋－＠]/.test(text) ? `'${text}` : text;
}
