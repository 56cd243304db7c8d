/** Random sample rows and files for the tests of `generate`. */
import assert from 'node:assert/strict';
import { parse } from 'csv-parse/sync';
import type { ExportName } from '../../src/detection/content-type.ts';
import { exportRows, type SampleSubscription } from '../../src/tools/generate/rows.ts';

export const START_MS = Date.parse('2026-11-21T10:10:00Z');
const content_types = ['text', 'image'] as const;
export const BOTH: SampleSubscription[] = [7001, 7002].map((id) => ({ id, content_types }));

export const rowsOf = (exportName: ExportName, windowStartMs = START_MS, rows = 3000, seed = '1') => [
  ...exportRows({ seed, exportName, windowStartMs, rows, subscriptions: BOTH }),
];

/** Parses CSV strictly by RFC 4180. @returns each row's fields as text, by column */
export function csvValues(text: string): Record<string, string>[] {
  assert.ok(text.endsWith('\r\n'));
  return parse(text, { columns: true, record_delimiter: '\r\n' });
}
