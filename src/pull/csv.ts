/**
 * A copy as CSV (RFC 4180), a line for each version: the columns are those of GET /v1/schema/detection, so a column that
 * the service gains is in files that are begun later.
 */
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { Refused } from '../refused.ts';
import type { Detection } from './answers.ts';
import type { LineForm } from './lines.ts';

const Schema = Type.Object({
  fields: Type.Array(Type.Object({ path: Type.String(), column: Type.String() }), { minItems: 1 }),
});

/** @throws Refused `failed` when the body is not what the contract says of a schema */
export function csvForm(schema: unknown): LineForm {
  if (!Value.Check(Schema, schema))
    throw new Refused('failed', '/v1/schema/detection answered with something else. Check --base-url.');
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
 * (known as CSV injection).
 */
function inert(text: string): string {
  return /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
}
