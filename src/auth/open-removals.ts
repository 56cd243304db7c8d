/** Subscriptions that were removed, and of which rows are still being deleted. */
import type { Database } from '../store/database.ts';

const SELECT_OPEN_REMOVAL = `
  SELECT request.id FROM ingest_request AS request, json_each(request.request, '$.subscriptions') AS subscription
  WHERE request.outcome IS NULL AND request.request ->> '$.kind' = 'remove' AND subscription.value = :id
  ORDER BY request.id LIMIT 1`;

/** @returns the request that deletes the subscription's rows; null when none is left to be deleted */
export function openRemoval(db: Database, id: number): number | null {
  return db.prepare<{ id: number }, { id: number }>(SELECT_OPEN_REMOVAL).get({ id })?.id ?? null;
}
