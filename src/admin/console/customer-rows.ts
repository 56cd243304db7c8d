/**
 * The rows that customers got over time, from the change stream itself: at a position, the sequence number of a stream is
 * how many rows it had.
 */
import { type Account, listAccounts } from '../../auth/accounts.ts';
import { listSubscriptions } from '../../auth/subscriptions.ts';
import { positionBefore } from '../../query/delivery.ts';
import type { Database } from '../../store/database.ts';
import { sequenceOf } from '../../store/stream-place.ts';

/** The last row of each stream at a position. */
export const LAST_PLACES = `
  SELECT subscription_id, (
    SELECT place FROM stream_row WHERE place >> 34 = ordinal + 0 AND position <= ? ORDER BY position DESC LIMIT 1
  ) AS place FROM stream WHERE removed = 0`;

/** What has no delivery time yet counts with the next reading. */
const NONE_RECENT = new Map<number, number>();
/** Curves that are shown; the others are in the view of the customers. */
const CUSTOMERS_MAX = 6;

/**
 * @param times epoch milliseconds, ascending
 * @returns for the accounts with most of them, how many new and changed detections were delivered between each two times
 */
export function customerRows(detections: Database, access: Database, times: readonly number[]) {
  const lastPlaces = detections.prepare<[number], { subscription_id: number; place: number | null }>(
    LAST_PLACES,
  );
  const known = new Map<number, ReadonlyMap<number, number>>();
  const rowsAt = (position: number) => {
    const rows = new Map<number, number>();
    for (const { subscription_id: id, place } of lastPlaces.all(position))
      rows.set(id, (rows.get(id) ?? 0) + (place === null ? 0 : sequenceOf(place)));
    known.set(position, rows);
    return rows;
  };
  const positionAt = (time: number) =>
    positionBefore(detections, time, NONE_RECENT) ?? Number.MAX_SAFE_INTEGER;
  const steps = times.map(positionAt).map((at) => known.get(at) ?? rowsAt(at));
  const subscriptions = Map.groupBy(listSubscriptions(access), ({ account_id }) => account_id);
  const entryOf = ({ id, name }: Account) => {
    const totals = steps.map((rows) =>
      (subscriptions.get(id) ?? []).reduce((sum, subscription) => sum + (rows.get(subscription.id) ?? 0), 0),
    );
    return { id, name, rows: totals.slice(1).map((total, at) => total - (totals[at] ?? 0)) };
  };
  const sumOf = ({ rows }: ReturnType<typeof entryOf>) => rows.reduce((sum, count) => sum + count, 0);
  return listAccounts(access)
    .map(entryOf)
    .filter((entry) => sumOf(entry) > 0)
    .toSorted((a, b) => sumOf(b) - sumOf(a))
    .slice(0, CUSTOMERS_MAX);
}
