/** The statements of the console and the metrics use an index, whatever the amount of data. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { COUNT_DETECTIONS } from '../../src/admin/console/detections.ts';
import { APPLIED_FILES, LAST_PLACES } from '../../src/admin/console/trends.ts';
import { WINDOWS_WITH_FAILED_FILES, WINDOWS_WITH_ROWS } from '../../src/admin/console/windows.ts';
import { SELECT_FILES, SELECT_FILES_NOT_APPLIED } from '../../src/ingest/files/file-record.ts';
import { FIRST_BEHIND } from '../../src/operations/followers.ts';
import { DELIVERED_BEFORE } from '../../src/query/delivery.ts';
import { FIRST_PLACE, newestOfStream, VERSIONS_BETWEEN } from '../../src/query/latest-rows.ts';
import { COUNT_WINDOWS } from '../../src/windows/ledger.ts';
import { FIRST_READ } from '../../src/windows/reach.ts';
import { planOf } from '../support/query-plan.ts';
import { createTestStore } from '../support/store.ts';

const store = createTestStore();
after(() => store.close());

const BY_WINDOW = 'USING INDEX ingest_file_by_window (export=? AND window_start=?)';

/** Each with the steps of its plan, in order. */
const CASES: readonly (readonly [what: string, sql: string, ...steps: string[]])[] = [
  [
    'windows',
    WINDOWS_WITH_ROWS,
    'SEARCH known USING PRIMARY KEY (export=? AND window_start>? AND window_start<?)',
    'SEARCH ingest_file USING INTEGER PRIMARY KEY',
    `SEARCH file ${BY_WINDOW}`,
  ],
  [
    'files over time',
    APPLIED_FILES,
    'SEARCH ingest_file USING INDEX ingest_file_by_outcome (outcome=? AND finished_at>?)',
  ],
  ['when a window was first read', FIRST_READ, `SEARCH ingest_file ${BY_WINDOW}`],
  ['windows with failed files', WINDOWS_WITH_FAILED_FILES, 'SEARCH ingest_file USING INDEX ingest_file_by_'],
  [
    'newest rows',
    newestOfStream(' AND domain = @domain'),
    'SEARCH stream_row USING INDEX stream_row_by_position (<expr>=?)',
  ],
  ['versions', VERSIONS_BETWEEN, 'SEARCH stream_row USING INTEGER PRIMARY KEY'],
  ['where to look for them', FIRST_PLACE, 'INDEX stream_row_by_position'],
  [
    'how many rows streams had',
    LAST_PLACES,
    'SEARCH stream_row USING COVERING INDEX stream_row_by_position (<expr>=? AND position<?)',
  ],
  [
    'the first change behind a position',
    FIRST_BEHIND,
    'USING COVERING INDEX stream_row_by_position (<expr>=? AND position>?)',
  ],
  [
    'how many detections a period has',
    COUNT_DETECTIONS,
    'USING COVERING INDEX detection_by_time (<expr>=? AND first_detected_at>? AND first_detected_at<?)',
  ],
  ['when a change was delivered', DELIVERED_BEFORE, 'SEARCH delivery USING INTEGER PRIMARY KEY'],
  ['files', SELECT_FILES, 'SEARCH ingest_file USING INTEGER PRIMARY KEY (rowid<?)'],
  [
    'files that were not applied',
    SELECT_FILES_NOT_APPLIED,
    'SEARCH ingest_file USING COVERING INDEX ingest_file_by_outcome (outcome=?)',
    'SEARCH ingest_file USING INTEGER PRIMARY KEY',
  ],
  [
    'how many windows have a state',
    COUNT_WINDOWS,
    'USING COVERING INDEX export_window_by_status (export=? AND status=? AND window_start>?)',
  ],
];
for (const [what, sql, ...steps] of CASES)
  test(`${what}: by an index`, () => {
    const plan = planOf(store.reader, sql);
    let at = 0;
    for (const step of steps) {
      at = plan.indexOf(step, at);
      assert.ok(at >= 0, `${step}\n${plan}`);
    }
    assert.doesNotMatch(plan, /SCAN (ingest_file|stream_row|export_window|delivery|detection)\b/);
  });
