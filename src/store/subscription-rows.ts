/** The streams of a subscription in `detections.db`, and how many rows they have. */
import type { Database } from './database.ts';

const SELECT_STREAMS = 'SELECT ordinal, sequence, removed FROM stream WHERE subscription_id = :subscription';
export const COUNT_DETECTIONS = 'SELECT count(*) AS count FROM detection WHERE place >> 34 = :ordinal';

/** Also the streams that were removed: those have `removed` = 1. */
export function streamsOf(db: Database, subscription: number) {
  type Stream = Readonly<Record<'ordinal' | 'sequence' | 'removed', number>>;
  return db.prepare<unknown[], Stream>(SELECT_STREAMS).all({ subscription });
}

export function countRows(db: Database, subscriptions: readonly number[]) {
  const count = db.prepare<unknown[], { count: number }>(COUNT_DETECTIONS);
  const rows = { detections: 0, versions: 0 };
  for (const { ordinal, sequence, removed } of subscriptions.flatMap((id) => streamsOf(db, id))) {
    rows.detections += count.get({ ordinal })?.count ?? 0;
    rows.versions += removed === 1 ? 0 : sequence;
  }
  return rows;
}
