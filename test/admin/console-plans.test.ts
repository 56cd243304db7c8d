/** The console's statements use an index, whatever the amount of data. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { COUNT_DETECTIONS } from '../../src/admin/console/detections.ts';
import { APPLIED_FILES, LAST_PLACES } from '../../src/admin/console/trends.ts';
import { WINDOWS_WITH_FAILED_FILES, WINDOWS_WITH_ROWS } from '../../src/admin/console/windows.ts';
import { SELECT_FILES, SELECT_FILES_NOT_APPLIED } from '../../src/ingest/files/file-record.ts';
import { FIRST_BEHIND } from '../../src/operations/followers.ts';
import { DELIVERED_AT, FIRST_PLACE, newestOfStream, VERSIONS_BETWEEN } from '../../src/query/latest-rows.ts';
import { FIRST_READ } from '../../src/windows/reach.ts';
import { createTestStore } from '../support/store.ts';

const store = createTestStore();
after(() => store.close());

const WINDOWS = { export: 'newswire', from: 0, to: 1 };
const ROWS = { ordinal: 1, scanned: 1, limit: 1 };
const FILES = { outcomes: null, export: null, part: null, before: 1, scanned: 1 };

for (const [what, sql, values, plan] of [
  [
    'windows',
    WINDOWS_WITH_ROWS,
    WINDOWS,
    /SEARCH known USING PRIMARY KEY \(export=\? AND window_start>\? AND window_start<\?\).*SEARCH ingest_file USING INTEGER PRIMARY KEY.*SEARCH file USING INDEX ingest_file_by_window \(export=\? AND window_start=\?\)/,
  ],
  [
    'files over time',
    APPLIED_FILES,
    { from: 1, step: 3_600_000 },
    /SEARCH ingest_file USING INDEX ingest_file_by_outcome \(outcome=\? AND finished_at>\?\)/,
  ],
  [
    'when a window was first read',
    FIRST_READ,
    { export: 'newswire', start: 0 },
    /SEARCH ingest_file USING INDEX ingest_file_by_window \(export=\? AND window_start=\?\)/,
  ],
  [
    'windows with failed files',
    WINDOWS_WITH_FAILED_FILES,
    WINDOWS,
    /SEARCH ingest_file USING INDEX ingest_file_by_/,
  ],
  [
    'newest rows',
    newestOfStream(' AND domain = @domain'),
    { ...ROWS, domain: 'x' },
    /SEARCH stream_row USING INDEX stream_row_by_position \(<expr>=\?\)/,
  ],
  [
    'versions',
    VERSIONS_BETWEEN,
    { low: 0, high: 1, article_id: 1 },
    /SEARCH stream_row USING INTEGER PRIMARY KEY/,
  ],
  [
    'where to look for them',
    FIRST_PLACE,
    { ordinal: 1, position: 1 },
    /USING (COVERING )?INDEX stream_row_by_position/,
  ],
  [
    'how many rows streams had',
    LAST_PLACES,
    [1],
    /SEARCH stream_row USING COVERING INDEX stream_row_by_position \(<expr>=\? AND position<\?\)/,
  ],
  [
    'the first change behind a position',
    FIRST_BEHIND,
    { ordinal: 1, position: 1 },
    /USING COVERING INDEX stream_row_by_position \(<expr>=\? AND position>\?\)/,
  ],
  [
    'how many detections a period has',
    COUNT_DETECTIONS,
    { ordinals: '[1]', from: 0, to: 1 },
    /USING COVERING INDEX detection_by_time \(<expr>=\? AND first_detected_at>\? AND first_detected_at<\?\)/,
  ],
  ['when a change was delivered', DELIVERED_AT, [1], /SEARCH delivery USING INTEGER PRIMARY KEY/],
  ['files', SELECT_FILES, FILES, /SEARCH ingest_file USING INTEGER PRIMARY KEY \(rowid<\?\)/],
  [
    'files that were not applied',
    SELECT_FILES_NOT_APPLIED,
    FILES,
    /SEARCH ingest_file USING COVERING INDEX ingest_file_by_outcome \(outcome=\?\).*SEARCH ingest_file USING INTEGER PRIMARY KEY/,
  ],
] as const)
  test(`${what}: by an index`, () => {
    const lines = store.reader
      .prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`)
      .all(values)
      .map(({ detail }) => detail)
      .join('; ');
    assert.match(lines, plan);
    assert.doesNotMatch(lines, /SCAN (ingest_file|stream_row|export_window|delivery|detection)\b/);
  });
