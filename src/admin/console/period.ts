/** The ends of a period of the console: days, as its forms send them, or times. */

import { ANY_TEXT, invalid, type ValuesOf } from '../../query/parameters.ts';
import { readInstant } from '../../query/value-kinds.ts';

export const PERIOD = { from: ANY_TEXT, to: ANY_TEXT };

/**
 * A day stands for its beginning in UTC, as `from` and as `to`.
 *
 * @returns epoch milliseconds; null if it is absent
 * @throws Refused `invalid_request`
 */
export function readEnd(ends: ValuesOf<typeof PERIOD>, name: keyof typeof PERIOD): number | null {
  const text = ends[name];
  if (text === null) return null;
  const ms = readInstant(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text);
  if (ms === null) throw invalid(`${name}: expected a day such as 2026-11-21, or a time with Z`);
  return ms;
}
