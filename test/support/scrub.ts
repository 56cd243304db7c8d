/** Fills a history with detections in every state, and scrubs it. */
import assert from 'node:assert/strict';
import { scrub } from '../../src/log/scrub.ts';
import type { ScrubResult } from '../../src/log/scrub-findings.ts';
import type { Database } from '../../src/store/database.ts';
import { placeOf } from '../../src/store/stream-place.ts';
import { type History, type HistoryRow, QUIETLY, variedRows } from './history.ts';

/** The first row of the first stream. */
export const FIRST = placeOf(1, 1);
export const CLEAN = { findings: [], not_compared: null };

export const INDEX = 'CREATE INDEX stream_row_by_position ON stream_row (place >> 34, position)';

export const scrubbed = async (history: History, between = async () => {}): Promise<ScrubResult> =>
  scrub({ folder: history.folder, ...QUIETLY, between });

export async function assertClean(history: History, what: string): Promise<void> {
  const { findings, not_compared } = await scrubbed(history);
  assert.deepEqual({ findings, not_compared }, CLEAN, what);
}

export const newRows = (from: number, count: number, members: HistoryRow['row'] = {}) =>
  variedRows([7001, 7002], from, count, members);

/** Detections created, updated and rescored, with records of files, windows and epochs, across restarts. */
export async function fill(history: History): Promise<void> {
  history.apply(newRows(1, 500), { with: recordFile });
  history.apply(newRows(1, 100, { strength_score: 90, last_scored_at: '2026-11-20T09:05:00Z' }));
  history.apply(newRows(100, 300, { last_scored_at: '2026-11-20T09:06:00Z' }));
  await history.restart();
  history.apply(newRows(5000, 250), { batchRows: 50, with: beginEpoch });
  history.apply(newRows(5100, 100, { strength_score: 80, last_scored_at: '2026-11-20T09:08:00Z' }));
  history.apply(newRows(5150, 100, { last_scored_at: '2026-11-20T09:09:00Z' }));
}

export function recordFile(db: Database): void {
  db.exec(`
    INSERT INTO ingest_file (number, name, export, bytes, outcome, taken_at, report)
    VALUES (1, 'newswire.ndjson', 'newswire', 10, 'applied', 1000, '{"rows":3}');
    INSERT INTO export_window (export, window_start, status, since, file) VALUES ('newswire', 600000, 'done', 1, 1);`);
}

const INSERT_EPOCH = `
  INSERT INTO version_epoch (number, at, position, reason, orphans)
  SELECT (SELECT count(*) + 1 FROM version_epoch), 1900000000000, max(position) + 1, 'test', ? FROM stream`;

export function beginEpoch(db: Database, orphans = 'read'): void {
  db.prepare(INSERT_EPOCH).run(orphans);
}
