/** A detections.db for one test, which the test fills directly with transactions, rows and finished windows. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ContentType, ExportName } from '../../src/detection/content-type.ts';
import { EMPTY_ROW, type ExportRow } from '../../src/detection/fields.ts';
import { formatDetectionId } from '../../src/detection/id.ts';
import { filterValues, type Match, readMatch, renderMatch, renderRow } from '../../src/detection/match.ts';
import { type FileRecord, saveFile } from '../../src/ingest/files/file-record.ts';
import { detectionRows } from '../../src/log/detection-rows.ts';
import { openDatabase } from '../../src/store/database.ts';
import { DETECTIONS_SCHEMA } from '../../src/store/detections-schema.ts';
import { parseSeconds } from '../../src/time.ts';
import { setWindow } from '../../src/windows/ledger.ts';
import type { WindowStatus } from '../../src/windows/window-states.ts';

/** One version of a detection. */
export interface TestRow {
  readonly content_type: ContentType;
  readonly version: number;
  /** Members of an export row that matter to the test. */
  readonly row: Partial<ExportRow>;
}

export function textRow(row: TestRow['row'] = {}, version = 1): TestRow {
  return { content_type: 'text', version, row };
}

/** Rows of articles 1, 2, … */
export const textRows = (count: number, row: TestRow['row'] = {}): TestRow[] =>
  Array.from({ length: count }, (_, at) => textRow({ article_id: at + 1, ...row }));

/** A `using` declaration closes it. */
export type TestStore = ReturnType<typeof createTestStore>;

const EXPORT_ROW: ExportRow = {
  ...EMPTY_ROW,
  subscription_id: 7001,
  source_internal_id: 1,
  article_id: 1,
  first_detected_at: '2026-11-20T08:00:00Z',
  last_scored_at: '2026-11-20T08:05:00Z',
  strength_score: 50,
  exported_at: '2026-11-20T08:10:00Z',
  source_language: 'en',
  source_syndicated: false,
  source_sentences: 12,
  strength_matched_sentences: 6,
  strength_article_sentences: 20,
  article_url: 'https://example.com/a',
  article_domain: 'example.com',
  article_headline: 'A “headline” with ünïcode',
  article_publisher_id: 5,
  article_publisher_name: 'Example',
};

export function testMatch({ content_type, row }: TestRow): Match {
  const photoPath = (id: number) => `/photos/${id}?signature=abc`;
  const options = { exportedAtDefault: '2026-11-20T08:10:00Z', photoPath };
  return readMatch(renderRow(content_type, { ...EXPORT_ROW, ...row }, options));
}

export function testId(match: Match): string {
  const { content_type, subscription_id, source, article } = match;
  return formatDetectionId(content_type, subscription_id, source.internal_id, article.id);
}

/** What ingest stores of a match. */
export function testState(match: Match, given: string | null = null, withheld: string | null = null) {
  return {
    id: testId(match),
    rendered: renderMatch(match),
    exported_at_given: given,
    url_withheld: withheld,
    first_detected_at: parseSeconds(match.first_detected_at) ?? 0,
    filters: filterValues(match),
  };
}

const INSERT_DELIVERY = `INSERT INTO delivery (first_position, last_position, delivered_at) VALUES (?, ?, ?)`;

/** @param gap the distance between the positions of two rows; real positions follow the clock and have gaps */
export function createTestStore(gap = 1) {
  const folder = mkdtempSync(join(tmpdir(), 'wirewatch-test-'));
  const path = join(folder, 'detections.db');
  const writer = openDatabase(path, 'write', DETECTIONS_SCHEMA);
  const reader = openDatabase(path, 'read');
  const stored = detectionRows(writer);
  let last = 0;
  let files = 0;

  function addRow(row: TestRow): number {
    last += gap;
    const state = testState(testMatch(row));
    if (!stored.create(state, row.version, last)) stored.change(state, row.version, last);
    return last;
  }

  /** Gives a window, which has no file, a status. @param since epoch milliseconds */
  const setStatus = (
    status: WindowStatus,
    start: number,
    since: number,
    exportName: ExportName = 'newswire',
  ) => setWindow(writer, { export: exportName, window_start: start, status, since, file: null });

  const close = () => {
    reader.close();
    writer.close();
    rmSync(folder, { recursive: true, force: true });
  };
  return {
    folder,
    path,
    writer,
    reader,
    /**
     * Adds one transaction's rows at the next positions; `delivered_at` null leaves it unstamped.
     *
     * @returns the positions
     */
    deliver(rows: readonly TestRow[], deliveredAtMs: number | null): number[] {
      return writer.transaction(() => {
        const positions = rows.map(addRow);
        stored.finish();
        if (positions.length > 0) writer.prepare(INSERT_DELIVERY).run(positions[0], last, deliveredAtMs);
        return positions;
      })();
    },
    /** Records a file of no window, applied at this time, but for what `members` say. */
    addFile(atMs: number, members: Partial<FileRecord> = {}): FileRecord {
      files += 1;
      const record: FileRecord = {
        number: files,
        name: `newswire.file-${files}.ndjson`,
        export: 'newswire',
        window_start: null,
        label: null,
        sha256: null,
        bytes: 1,
        outcome: 'applied',
        taken_at: atMs,
        finished_at: atMs,
        rows_applied: 0,
        report: {},
        mapping: null,
        bounds: null,
        destination: `somewhere/${files}`,
        ...members,
      };
      saveFile(writer, record);
      return record;
    },
    setWindow: setStatus,
    finishWindow: (exportName: ExportName, start: number) => setStatus('done', start, start, exportName),
    close,
    [Symbol.dispose]: close,
  };
}
