/**
 * Deletes what is there of subscriptions that were removed: heads, stream rows, detections. By then no client sees
 * them and no row of theirs is taken.
 *
 * The log says it once, before the first row goes. It may be millions of rows, so they go in bounded transactions that
 * the log need not repeat, and windows that wait get their turn in between. After a crash it is begun again and finds
 * what is left. Positions are not given out again: `delivery` knows the highest one, and its rows stay.
 */
import { streamsOf } from '../history/detection-rows.ts';
import type { Operation } from '../history/format.ts';
import { type Database, writing } from '../store/database.ts';
import type { Workshop } from './workshop.ts';

/** Rows that one transaction deletes: half a second of work at most; a quarter of it would take twice as long in all. */
const ROWS_MAX = 10_000;

export const DELETE_DETECTIONS = `
  DELETE FROM detection WHERE rowid IN (SELECT rowid FROM detection WHERE stream = :stream LIMIT :limit)`;

export const DELETE_STREAM_ROWS = `
  DELETE FROM stream_row
  WHERE position IN (SELECT position FROM stream_row WHERE stream = :stream ORDER BY position LIMIT :limit)`;

export const COUNT_DETECTIONS = 'SELECT count(*) AS count FROM detection WHERE stream = :stream';
const SELECT_VERSIONS = 'SELECT sequence FROM stream_head WHERE stream = :stream';

export interface RemovedRows {
  readonly detections: number;
  readonly versions: number;
}

/** How much there is of subscriptions. @param db a reader will do */
export function countRows(db: Database, subscriptions: readonly number[]): RemovedRows {
  const count = db.prepare<{ stream: number }, { count: number }>(COUNT_DETECTIONS);
  const head = db.prepare<{ stream: number }, { sequence: number }>(SELECT_VERSIONS);
  const rows = { detections: 0, versions: 0 };
  for (const stream of subscriptions.flatMap(streamsOf)) {
    rows.detections += count.get({ stream })?.count ?? 0;
    rows.versions += head.get({ stream })?.sequence ?? 0;
  }
  return rows;
}

/** What it takes to delete. */
type Place = Pick<Workshop, 'db' | 'writer' | 'between'>;

/**
 * @param operation what the log says of it
 * @param tell how far it is, in words
 */
export async function removeSubscription(
  { db, writer, between }: Place,
  subscription: number,
  operation: Operation,
  tell: (progress: string) => void,
): Promise<RemovedRows> {
  const removed = { detections: 0, versions: 0 };
  // The log first, and the heads with it: one that is ahead of all rows is taken for damage (query/stream-check.ts).
  const applier = writer.begin();
  applier.removeSubscription(subscription);
  writer.commit(applier, operation);
  for (const stream of streamsOf(subscription)) {
    for (const [kind, sql] of STATEMENTS) {
      for (let rows = ROWS_MAX; rows === ROWS_MAX; ) {
        writing(db, () => {
          rows = db.prepare(sql).run({ stream, limit: ROWS_MAX }).changes;
        });
        removed[kind] += rows;
        tell(
          `subscription ${subscription}: ${removed.detections} detections, ${removed.versions} versions removed`,
        );
        await between();
      }
    }
  }
  return removed;
}

const STATEMENTS = [
  ['versions', DELETE_STREAM_ROWS],
  ['detections', DELETE_DETECTIONS],
] as const;
