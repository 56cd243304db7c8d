/** A copy as CSV (RFC 4180), a line for each version. Its columns are those of GET /v1/schema/detection at its start. */
import type { Readable } from 'node:stream';
import { parse } from 'csv-parse';
import type { Detection, Schema } from './api.ts';
import type { LineForm } from './lines.ts';

/**
 * Text that a spreadsheet would run as a formula (OWASP, CSV Injection): headlines come from strangers. It gets an
 * apostrophe in front, even after other apostrophes, so that reading can remove it again.
 */
const FORMULA = /^'*[=+\-@\t\r\n＝＋－＠]/;

export function csvForm(schema: Schema): LineForm {
  // `event` belongs to the stream.
  const fields = schema.fields.filter(({ path }) => path !== 'event');
  return {
    head: `${fields.map(({ column }) => column).join(',')}\n`,
    line: (detection) => fields.map(({ path }) => cell(valueAt(detection, path))).join(','),
    read: (input) => readCsv(input, schema),
  };
}

/** @returns null for a member of null, undefined if absent */
export function valueAt(detection: Detection, path: string): unknown {
  let value: unknown = detection;
  for (const name of path.split('.')) {
    if (value === null) return null;
    value = isObject(value) ? value[name] : undefined;
  }
  return value;
}

/** The JSON of a detection from its members by path. An object whose members are all null becomes null. */
export function textOf(members: Iterable<readonly [path: string, value: unknown]>): string {
  const whole: Record<string, unknown> = {};
  for (const [path, value] of members) {
    if (value === undefined) continue;
    const names = path.split('.');
    let part = whole;
    for (const name of names.slice(0, -1)) {
      const inner = part[name];
      const next: Record<string, unknown> = isObject(inner) ? inner : {};
      part[name] = next;
      part = next;
    }
    part[names.at(-1) ?? path] = value;
  }
  return JSON.stringify(whole, (_, value: unknown) =>
    isObject(value) && Object.values(value).every((one) => one === null) ? null : value,
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (typeof value !== 'string') return JSON.stringify(value);
  const text = FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Reads lines back into the JSON of detections. */
async function* readCsv(input: Readable, { fields }: Schema): AsyncIterable<string> {
  const records: AsyncIterable<Record<string, string>> = input.pipe(parse({ columns: true }));
  for await (const record of records)
    yield textOf(
      fields
        .filter(
          ({ path, content_types }) => path !== 'event' && content_types.includes(record.content_type ?? ''),
        )
        .map(({ path, column, type }) => [path, memberOf(record[column] ?? '', type)]),
    );
}

function memberOf(text: string, type: string): unknown {
  if (text === '') return null;
  if (type === 'integer' || type === 'number') return Number(text);
  if (type === 'boolean') return text === 'true';
  return FORMULA.test(text) ? text.slice(1) : text;
}
