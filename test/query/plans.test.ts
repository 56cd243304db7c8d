/**
 * What requests, the console, the metrics, the alerts and the log read, they find by an index, whatever the amount of
 * data: no large table is scanned, and no page is sorted.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { COUNT_DETECTIONS as COUNT_IN_PERIOD } from '../../src/admin/console/detections.ts';
import { APPLIED_FILES, LAST_PLACES } from '../../src/admin/console/trends.ts';
import { WINDOWS_WITH_FAILED_FILES, WINDOWS_WITH_ROWS } from '../../src/admin/console/windows.ts';
import { SELECT_KEY_FOR_REQUEST, SELECT_PROOF } from '../../src/auth/access-reader.ts';
import {
  FAILED_FILES,
  FILES_WITH_SKIPPED_ROWS,
  REFUSED_FILES,
  WINDOWS_NOT_DONE,
} from '../../src/health/ledger-alerts.ts';
import { SELECT_CHANGED } from '../../src/ingest/apply/apply-rows.ts';
import { SELECT_ENDED_WITH_ROWS } from '../../src/ingest/apply/remove-rows.ts';
import { SELECT_FILES, SELECT_FILES_NOT_APPLIED } from '../../src/ingest/files/file-record.ts';
import { DELETE_DETECTIONS, DELETE_RESCORED, DELETE_STREAM_ROWS } from '../../src/log/detection-rows.ts';
import { SELECT_PLACES } from '../../src/log/snapshot.ts';
import { FIRST_BEHIND } from '../../src/operations/followers.ts';
import { DATA_GAPS, STREAM_HEAD } from '../../src/query/as-of.ts';
import { pageTextSql, RANGE_TEXT, rawRowsSql, scanBoundSql } from '../../src/query/changes-page.ts';
import { DELIVERED_BEFORE, FIRST_DELIVERED_SINCE, UNSTAMPED } from '../../src/query/delivery.ts';
import { ONE_DETECTION } from '../../src/query/detection-text.ts';
import { filterSql } from '../../src/query/filters.ts';
import { FIRST_PLACE, newestOfStream, VERSIONS_BETWEEN } from '../../src/query/latest-rows.ts';
import {
  DATA_START,
  idAtSql,
  moreSql,
  pageSql,
  rowsBeforeSql,
  secondAtSql,
} from '../../src/query/period-page.ts';
import { CHECK_STREAMS, FIND_STREAM } from '../../src/query/stored-streams.ts';
import { edgeSql, LAST_DELIVERED } from '../../src/query/stream-check.ts';
import type { Database } from '../../src/store/database.ts';
import { COUNT_DETECTIONS } from '../../src/store/subscription-rows.ts';
import { COUNT_UNKNOWN, SELECT_RESETTABLE } from '../../src/windows/ledger.ts';
import { COUNT_WINDOWS } from '../../src/windows/reach.ts';
import { openAccess } from '../support/access.ts';
import { createTestStore } from '../support/store.ts';
import { testFolder } from '../support/test-folder.ts';

const store = createTestStore();
const access = openAccess(testFolder(), { create: true });
after(() => {
  store.close();
  access.close();
});

const FILTERS = filterSql({
  ...{ publisher_id: [1], exclude_publisher_id: [2], domain: ['a.example'], exclude_domain: ['b.example'] },
  ...{ min_band: 1, band: [1, 2], min_score: 5, print: false, source_id: 'x', article_id: 1 },
}).sql;
const PARTS = ['rest', 'whole', 'beginning'] as const;

const inStream = (range: string, kind = 'COVERING ') =>
  `SEARCH stream_row USING ${kind}INDEX stream_row_by_position (<expr>=? AND position${range})`;
const ofStream = 'SEARCH stream_row USING COVERING INDEX stream_row_by_position (<expr>=?)';
const inPeriod = (range = '') => `SEARCH detection USING COVERING INDEX detection_by_time (<expr>=?${range})`;
const REST = inPeriod(' AND first_detected_at=? AND id>?');
const WITHIN = inPeriod(' AND first_detected_at=? AND id>? AND id<?');
const SECONDS = inPeriod(' AND first_detected_at>? AND first_detected_at<?');
const OF_PARTS = [WITHIN, SECONDS, inPeriod(' AND first_detected_at=? AND id<?')];
/** Of the ids of one second. */
const SORTED = 'USE TEMP B-TREE FOR LAST TERM OF ORDER BY';

/** Statements over several streams, with what they do in each of them. */
const IN_EACH: readonly (readonly [sql: (streams: number) => string, ...steps: string[]])[] = [
  [(streams) => pageTextSql(streams, ''), inStream('>? AND position<?')],
  [(streams) => pageTextSql(streams, FILTERS), inStream('>? AND position<?', '')],
  [scanBoundSql, inStream('>?')],
  [rawRowsSql, inStream('>? AND position<?')],
  [edgeSql, inStream('<?')],
  ...['', FILTERS].flatMap((conditions) => [
    [(streams: number) => pageSql('descending', PARTS, streams, conditions), ...OF_PARTS] as const,
    [(streams: number) => pageSql('ascending', PARTS, streams, conditions), ...OF_PARTS, SORTED] as const,
  ]),
  [(streams) => pageSql('descending', ['whole'], streams, ''), SECONDS],
  [(streams) => secondAtSql('ascending', streams), REST, SECONDS],
  [(streams) => secondAtSql('descending', streams), REST, SECONDS],
  [rowsBeforeSql, REST, SECONDS],
  [idAtSql, WITHIN],
  [moreSql, SECONDS, REST],
];

/** A bare parameter in these places influences the plan: SQLite would compile the statement again for every value. */
const PLANNED_VALUE = /(LIMIT|OFFSET|34 =|first_detected_at =) [@?]/;

for (const streams of [1, 4, 20])
  test(`a page over ${streams} streams searches each of them, and merges what it finds`, () => {
    for (const [render, ...steps] of IN_EACH) {
      const sql = render(streams);
      assert.doesNotMatch(sql, PLANNED_VALUE);
      const expected = steps.flatMap((step) => Array<string>(streams).fill(step));
      assert.deepEqual(stepsOf(store.reader, sql), expected.sort(), sql);
    }
  });

const OF_GAPS = 'SEARCH export_window USING COVERING INDEX export_window_by_status (export=? AND status=?';
const NOT_DONE = 'SEARCH export_window USING COVERING INDEX export_window_not_done (export=? AND status=?';
const BY_OUTCOME = 'INDEX ingest_file_by_outcome (outcome=?';
const BY_WINDOW = 'INDEX ingest_file_by_window (export=? AND window_start=?';
/** There are few. */
const ALL_STREAMS = 'SCAN stream USING COVERING INDEX stream_by_name';
const byNumber = (table: string, range = '>? AND rowid<?') =>
  `SEARCH ${table} USING INTEGER PRIMARY KEY (rowid${range})`;
const ORDERED = 'USE TEMP B-TREE FOR ORDER BY';
const GROUPED = 'USE TEMP B-TREE FOR GROUP BY';
const BY_NAME = 'COVERING INDEX stream_by_name (subscription_id=? AND content_type=?)';

const OTHERS: readonly (readonly [sql: string, ...steps: string[]])[] = [
  // A range of places, which are in order.
  [RANGE_TEXT, byNumber('page')],
  [
    STREAM_HEAD,
    ...Array<string>(2).fill(`${OF_GAPS})`),
    'SEARCH stream USING COVERING INDEX stream_by_position',
  ],
  [FIRST_DELIVERED_SINCE, 'SEARCH delivery USING COVERING INDEX delivery_by_time (delivered_at>?)'],
  [UNSTAMPED, 'SEARCH delivery USING COVERING INDEX delivery_by_time (delivered_at=?)'],
  // The last one, by its key.
  [LAST_DELIVERED, 'SCAN delivery'],
  [ONE_DETECTION, 'SEARCH detection USING PRIMARY KEY (id=?)'],
  [FIND_STREAM, `SEARCH stream USING ${BY_NAME}`],
  // There are few, and each head is checked once.
  [CHECK_STREAMS, 'SCAN stream', `SEARCH found USING ${BY_NAME}`],
  [
    DATA_GAPS,
    ...Array<string>(3).fill(`${OF_GAPS} AND window_start>? AND window_start<?)`),
    // At most 200 of each status.
    ...Array<string>(3).fill(ORDERED),
  ],
  [DATA_START, inPeriod()],
  [DELETE_STREAM_ROWS, byNumber('stream_row')],
  [DELETE_RESCORED, byNumber('rescored')],
  [DELETE_DETECTIONS, inPeriod(), 'SEARCH detection USING PRIMARY KEY (id=?)'],
  [SELECT_ENDED_WITH_ROWS, 'SCAN stream', inPeriod(), byNumber('rescored'), byNumber('stream_row')],
  [COUNT_DETECTIONS, inPeriod()],
  [SELECT_CHANGED, 'SEARCH detection USING PRIMARY KEY (id=?)', inStream('>? AND position<?', '')],
  [SELECT_PLACES, ALL_STREAMS, ofStream, ORDERED],
  // The console and the metrics.
  [
    WINDOWS_WITH_ROWS,
    `SEARCH file USING ${BY_WINDOW})`,
    'SEARCH known USING PRIMARY KEY (export=? AND window_start>? AND window_start<?)',
  ],
  [
    APPLIED_FILES,
    `SEARCH earlier USING ${BY_WINDOW} AND rowid<?)`,
    `SEARCH ingest_file USING ${BY_OUTCOME} AND finished_at>?)`,
    GROUPED,
  ],
  [
    WINDOWS_WITH_FAILED_FILES,
    `SEARCH ingest_file USING INDEX ingest_file_by_window (export=? AND window_start>? AND window_start<?)`,
  ],
  [newestOfStream(' AND domain = @domain'), ofStream.replace('COVERING ', '')],
  [VERSIONS_BETWEEN, byNumber('stream_row')],
  [FIRST_PLACE, inStream('>?')],
  [LAST_PLACES, ALL_STREAMS, inStream('<?')],
  [FIRST_BEHIND, inStream('>?')],
  [COUNT_IN_PERIOD, 'SCAN known VIRTUAL TABLE INDEX 1:', SECONDS],
  [DELIVERED_BEFORE, byNumber('delivery', '<?')],
  [SELECT_FILES, byNumber('ingest_file', '<?')],
  // Only numbers are sorted.
  [SELECT_FILES_NOT_APPLIED, `SEARCH ingest_file USING COVERING ${BY_OUTCOME})`, ORDERED],
  [COUNT_WINDOWS, `${OF_GAPS} AND window_start>?)`],
  // The alerts, once a second.
  [WINDOWS_NOT_DONE, `${NOT_DONE} AND since>?)`, `${NOT_DONE})`],
  [SELECT_RESETTABLE, 'SCAN export_window USING COVERING INDEX export_window_not_done'],
  [
    FAILED_FILES,
    `SEARCH file USING ${BY_OUTCOME} AND finished_at>?)`,
    `SEARCH later USING ${BY_WINDOW} AND rowid>?)`,
    'SEARCH win USING PRIMARY KEY (export=? AND window_start=?)',
    GROUPED,
  ],
  [COUNT_UNKNOWN, 'SEARCH export_window USING PRIMARY KEY (export=? AND window_start=?)'],
  [REFUSED_FILES, `SEARCH ingest_file USING ${BY_OUTCOME} AND finished_at>?)`],
  [FILES_WITH_SKIPPED_ROWS, 'SEARCH ingest_file USING INDEX ingest_file_skipped (finished_at>?)', GROUPED],
];

test('every other statement uses an index', () => {
  for (const [sql, ...steps] of OTHERS) assert.deepEqual(stepsOf(store.writer, sql), steps, sql);
});

test('a request reads its key by one lookup in each table', () => {
  for (const sql of [SELECT_KEY_FOR_REQUEST, SELECT_PROOF])
    assert.doesNotMatch(planOf(access, sql), /^SCAN/m);
});

/** How SQLite would run a statement: the steps, one a line. Its numbers are bound as 1. */
function planOf(db: Database, sql: string): string {
  const names = [...sql.matchAll(/[@:]([a-z]\w*)/g)].map(([, name = '']) => [name, 1]);
  const values = names.length > 0 ? [Object.fromEntries(names)] : Array(sql.split('?').length - 1).fill(1);
  const lines = db.prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all(...values);
  return lines.map(({ detail }) => detail).join('\n');
}

/** The steps that read a table or sort, in alphabetical order, without lookups of one row by its number. */
function stepsOf(db: Database, sql: string): string[] {
  const hidden =
    /^SEARCH \w+ USING INTEGER PRIMARY KEY \(rowid=\?\)|^SCAN (\(|CONSTANT|json_each|(page|edge|span)$)/;
  const isShown = (step: string) => /^(SEARCH|SCAN|USE TEMP)/.test(step) && !hidden.test(step);
  return planOf(db, sql).split('\n').filter(isShown).sort();
}
