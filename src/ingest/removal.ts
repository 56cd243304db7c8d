/**
 * Deletes what is there of subscriptions that were removed: heads, stream rows, detections. By then no client sees
 * them and no row of theirs is taken.
 *
 * It may be millions of rows, so the transactions are bounded, and windows that wait get their turn in between.
 * After a crash it is begun again and finds what is left. Positions are not given out again: the journal knows the
 * highest one, and so does `delivery`, whose rows stay.
 */
import { CONTENT_TYPES, streamNumber } from '../detection/content-type.ts';
import type { Database } from '../store/database.ts';
import type { Journaling } from './stream-writer.ts';
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

const DELETE_HEAD = 'DELETE FROM stream_head WHERE stream = :stream';

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
 * @param tell how far it is, in words
 * @param journaling how the journal knows of it: the last transaction is its operation, since by then all is gone
 */
export async function removeSubscription(
  workshop: Place,
  subscription: number,
  tell: (progress: string) => void,
  journaling: Journaling = { kind: 'operation', line: () => ({ removed: subscription }) },
): Promise<RemovedRows> {
  const { db } = workshop;
  const removed = { detections: 0, versions: 0 };
  const streams = streamsOf(subscription);
  // First: a head that is ahead of all rows is taken for damage (query/stream-check.ts).
  inTransaction(workshop, () => {
    for (const stream of streams) db.prepare(DELETE_HEAD).run({ stream });
  });
  for (const stream of streams) {
    for (const [kind, sql] of STATEMENTS) {
      for (let rows = ROWS_MAX; rows === ROWS_MAX; ) {
        inTransaction(workshop, () => {
          rows = db.prepare(sql).run({ stream, limit: ROWS_MAX }).changes;
        });
        removed[kind] += rows;
        tell(
          `subscription ${subscription}: ${removed.detections} detections, ${removed.versions} versions removed`,
        );
        await workshop.between();
      }
    }
  }
  inTransaction(workshop, () => {}, journaling);
  return removed;
}

const STATEMENTS = [
  ['versions', DELETE_STREAM_ROWS],
  ['detections', DELETE_DETECTIONS],
] as const;

function streamsOf(subscription: number): number[] {
  return CONTENT_TYPES.map((contentType) => streamNumber(subscription, contentType));
}

function inTransaction({ writer }: Place, work: () => void, journaling?: Journaling): void {
  writer.commit(writer.begin(new Set()), work, journaling);
}
