/** How far the data is complete (contract: ChangesPage, `as_of`; GET /v1/health, `newest_done`). */
import { type ContentType, EXPORT_OF_CONTENT_TYPE } from '../detection/content-type.ts';
import type { Database } from '../store/database.ts';
import { WINDOW_MS } from '../time.ts';
import { statementFamily } from './statements.ts';

export const NEWEST_DONE = `
  SELECT max(window_start) AS window_start FROM export_window WHERE export = @export AND status = 'done'`;

const newestDone = statementFamily<{ window_start: number | null }>(() => NEWEST_DONE);

/** End of the newest finished window of a content type's export, epoch milliseconds; null when there is none. */
export function newestDoneMs(db: Database, contentType: ContentType): number | null {
  const start =
    newestDone(db, 0, '').get({ export: EXPORT_OF_CONTENT_TYPE[contentType] })?.window_start ?? null;
  return start === null ? null : start + WINDOW_MS;
}

/**
 * The earliest of what the exports read have finished, epoch milliseconds; null when one has finished nothing.
 *
 * @param contentTypes those that are read, without any whose export is switched off
 */
export function asOfMs(db: Database, contentTypes: readonly ContentType[]): number | null {
  let earliest: number | null = null;
  for (const contentType of contentTypes) {
    const done = newestDoneMs(db, contentType);
    if (done === null) return null;
    if (earliest === null || done < earliest) earliest = done;
  }
  return earliest;
}
