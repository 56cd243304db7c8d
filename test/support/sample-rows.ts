/** Random sample rows and files for the tests of `generate`. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { TestContext } from 'node:test';
import { parse } from 'csv-parse/sync';
import type { ExportName } from '../../src/detection/content-type.ts';
import { exportRows, type SampleRow, type SampleSubscription } from '../../src/tools/generate/rows.ts';
import { words } from './words.ts';

export const WINDOW_MS = 600_000;
export const START_MS = Date.parse('2026-11-21T10:10:00Z');
export const BOTH: SampleSubscription[] = [7001, 7002].map((id) => ({ id, contentTypes: ['text', 'image'] }));

export const COMMON = words(`
  subscription_id source_internal_id article_id first_detected_at last_scored_at strength_score
  first_detected_estimated exported_at source_id source_published_at`);
const ARTICLE = [
  'article_url',
  'article_domain',
  'article_published_at',
  'article_headline',
  'article_publisher_id',
  'article_publisher_name',
];
/** The format's table, repeated here to catch errors in the generator's list. */
export const COLUMNS: Record<ExportName, string[]> = {
  newswire: [
    ...COMMON,
    'source_language',
    'source_syndicated',
    'source_sentences',
    'strength_matched_sentences',
    'strength_article_sentences',
    ...ARTICLE,
    'article_print',
  ],
  imagewire: [...COMMON, 'source_image_url', 'source_origin_url', ...ARTICLE, 'article_image_url'],
};

export function rowsOf(
  exportName: ExportName,
  windowStartMs = START_MS,
  rows = 3000,
  seed = '1',
): SampleRow[] {
  return [...exportRows({ seed, exportName, windowStartMs, rows, subscriptions: BOTH })];
}

export function folderOf(t: TestContext): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'wirewatch-generate-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export function keyOf(row: SampleRow): string {
  return `${row.subscription_id}.${row.source_internal_id}.${row.article_id}`;
}

/** Parses CSV strictly by RFC 4180. @returns each row's fields as text, by column */
export function csvValues(text: string): Record<string, string>[] {
  assert.ok(text.endsWith('\r\n'));
  return parse(text, { columns: true, record_delimiter: '\r\n' });
}
