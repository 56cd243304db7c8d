/** A detections.db of its own for one test, filled directly: transactions, rows, finished windows. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bandStep } from '../../src/detection/band.ts';
import { type ContentType, type ExportName, streamNumber } from '../../src/detection/content-type.ts';
import { formatDetectionId } from '../../src/detection/id.ts';
import {
  type ExportRow,
  type Match,
  matchOf,
  renderDetection,
  renderMatch,
  renderStreamRow,
} from '../../src/detection/match.ts';
import { type Database, openReader } from '../../src/store/database.ts';
import { openDetections } from '../../src/store/detections.ts';
import { parseInstant } from '../../src/time.ts';

/** One version of a detection, as it arrives. */
export interface TestRow {
  readonly content_type: ContentType;
  readonly version: number;
  /** Members of an export row that matter to the test. */
  readonly row: Partial<ExportRow>;
}

export interface TestStore {
  readonly folder: string;
  readonly path: string;
  readonly writer: Database;
  readonly reader: Database;
  /**
   * Adds one transaction's rows at the next positions; `delivered_at` null leaves it unstamped.
   *
   * @returns the positions
   */
  deliver(rows: readonly TestRow[], deliveredAtMs: number | null): number[];
  finishWindow(exportName: ExportName, windowStartMs: number): void;
  close(): void;
}

const EXPORT_ROW: ExportRow = {
  subscription_id: 7001,
  source_internal_id: 1,
  article_id: 1,
  first_detected_at: '2026-11-20T08:00:00Z',
  last_scored_at: '2026-11-20T08:05:00Z',
  strength_score: 50,
  first_detected_estimated: false,
  exported_at: '2026-11-20T08:10:00Z',
  source_id: null,
  source_published_at: null,
  source_language: 'en',
  source_syndicated: false,
  source_sentences: 12,
  source_image_url: null,
  source_origin_url: null,
  strength_matched_sentences: 6,
  strength_article_sentences: 20,
  article_url: 'https://example.com/a',
  article_domain: 'example.com',
  article_published_at: null,
  article_headline: 'A “headline” with ünïcode',
  article_publisher_id: 5,
  article_publisher_name: 'Example',
  article_print: false,
  article_image_url: null,
};

export function testMatch({ content_type, row }: TestRow): Match {
  return matchOf(
    content_type,
    { ...EXPORT_ROW, ...row },
    { exportedAtDefault: '2026-11-20T08:10:00Z', photoPath: (id) => `/photos/${id}?signature=abc` },
  );
}

export function testId(match: Match): string {
  return formatDetectionId(
    match.content_type,
    match.subscription_id,
    match.source.internal_id,
    match.article.id,
  );
}

const INSERT_STREAM_ROW = `INSERT INTO stream_row
  (position, stream, sequence, publisher_id, domain, band, score, print, source_id, article_id, body)
  VALUES (@position, @stream, @sequence, @publisher_id, @domain, @band, @score, @print, @source_id, @article_id, @body)`;

const UPSERT_DETECTION = `INSERT INTO detection
  (id, stream, version, first_detected_at, publisher_id, domain, band, score, print, source_id, article_id, body, epochs)
  VALUES (@id, @stream, @version, @first_detected_at, @publisher_id, @domain, @band, @score, @print, @source_id,
    @article_id, @body, 0)
  ON CONFLICT (id) DO UPDATE SET version = excluded.version, first_detected_at = excluded.first_detected_at,
    publisher_id = excluded.publisher_id, domain = excluded.domain, band = excluded.band, score = excluded.score,
    print = excluded.print, source_id = excluded.source_id, article_id = excluded.article_id, body = excluded.body`;

const UPSERT_HEAD = `INSERT INTO stream_head (stream, sequence, position) VALUES (@stream, 1, @position)
  ON CONFLICT (stream) DO UPDATE SET sequence = sequence + 1, position = excluded.position RETURNING sequence`;

const INSERT_DELIVERY = `INSERT INTO delivery (first_position, last_position, delivered_at) VALUES (?, ?, ?)`;
const INSERT_WINDOW = `INSERT INTO export_window (export, window_start, status, since) VALUES (?, ?, 'done', ?)`;

/** @param gap positions left out between two rows, as the real ones grow with the clock */
export function createTestStore(gap = 1): TestStore {
  const folder = mkdtempSync(join(tmpdir(), 'wirewatch-test-'));
  const path = join(folder, 'detections.db');
  const writer = openDetections(path);
  const reader = openReader(path);
  const insertRow = writer.prepare(INSERT_STREAM_ROW);
  const upsertDetection = writer.prepare(UPSERT_DETECTION);
  const upsertHead = writer.prepare<unknown[], { sequence: number }>(UPSERT_HEAD);
  let last = 0;

  function addRow(row: TestRow): number {
    last += gap;
    const match = testMatch(row);
    const rendered = renderMatch(match);
    const id = testId(match);
    const stream = streamNumber(match.subscription_id, match.content_type);
    const columns = {
      stream,
      publisher_id: match.article.publisher?.id ?? null,
      domain: match.article.domain,
      band: bandStep(match.content_type, match.strength.score),
      score: match.strength.score,
      print: match.article.print === true ? 1 : 0,
      source_id: match.source.id,
      article_id: match.article.id,
    };
    const sequence = upsertHead.get({ stream, position: last })?.sequence;
    insertRow.run({ ...columns, position: last, sequence, body: renderStreamRow(id, row.version, rendered) });
    upsertDetection.run({
      ...columns,
      id,
      version: row.version,
      first_detected_at: (parseInstant(match.first_detected_at) ?? 0) / 1000,
      body: renderDetection(id, row.version, rendered),
    });
    return last;
  }

  return {
    folder,
    path,
    writer,
    reader,
    deliver(rows, deliveredAtMs) {
      return writer.transaction(() => {
        const positions = rows.map(addRow);
        if (positions.length > 0) writer.prepare(INSERT_DELIVERY).run(positions[0], last, deliveredAtMs);
        return positions;
      })();
    },
    finishWindow(exportName, windowStartMs) {
      writer.prepare(INSERT_WINDOW).run(exportName, windowStartMs, windowStartMs);
    },
    close() {
      reader.close();
      writer.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
