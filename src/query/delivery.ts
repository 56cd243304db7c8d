/**
 * Where `since` starts: with the first transaction that became visible at or after it. The delivery time of a
 * transaction is taken after its commit and written by the next one, so the last transaction may have none yet. Until
 * it is known, it counts as later than any `since`, so that no change is skipped.
 */
import { type Database, preparedOnce } from '../store/database.ts';
import { DatabaseDamage } from '../store/database-errors.ts';

/** Delivery times that are not written yet: epoch milliseconds by first position. */
export type RecentDeliveries = ReadonlyMap<number, number>;

export const FIRST_DELIVERED_SINCE = `
  SELECT first_position FROM delivery WHERE delivered_at >= @since ORDER BY delivered_at, first_position LIMIT 1`;

/** Delivery times never decrease, so the transaction before the first one was delivered earlier. */
export const DELIVERED_BEFORE = `
  SELECT delivered_at FROM delivery WHERE first_position < @first ORDER BY first_position DESC LIMIT 1`;

export const UNSTAMPED = `
  SELECT first_position FROM delivery WHERE delivered_at IS NULL ORDER BY first_position`;

const firstDeliveredSince = preparedOnce<{ first_position: number }>(FIRST_DELIVERED_SINCE);
const deliveredBefore = preparedOnce<{ delivered_at: number | null }>(DELIVERED_BEFORE);
const unstamped = preparedOnce<{ first_position: number }>(UNSTAMPED);

/** @returns the position before everything delivered at or after `sinceMs`; null when nothing was */
export function positionBefore(db: Database, sinceMs: number, recent: RecentDeliveries): number | null {
  const stamped = firstDeliveredSince(db).get({ since: sinceMs })?.first_position;
  const waiting = unstamped(db)
    .all()
    .find(({ first_position: position }) => (recent.get(position) ?? Infinity) >= sinceMs)?.first_position;
  const first = Math.min(stamped ?? Infinity, waiting ?? Infinity);
  const before = deliveredBefore(db).get({ first: Math.min(first, Number.MAX_SAFE_INTEGER) });
  if (before?.delivered_at != null && before.delivered_at >= sinceMs)
    throw new DatabaseDamage(
      `a change was delivered at ${before.delivered_at}, but the index of delivery times does not contain it`,
    );
  return first === Infinity ? null : first - 1;
}

/** Delivery time of a position, epoch milliseconds; null while it is not written. */
export const deliveredAtMs = (db: Database, position: number): number | null =>
  deliveredBefore(db).get({ first: position + 1 })?.delivered_at ?? null;
