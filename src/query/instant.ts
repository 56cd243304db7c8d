/** An instant in a query: ISO 8601 with `Z` or an offset; `t` and `z` as in RFC 3339. */
import { parseInstant } from '../time.ts';

/** Up to nine fractional digits: Python writes six, Go and Java nine. They are cut to milliseconds. */
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/i;
/** A `+` that was not encoded arrives as a space: it can only be the sign of the offset. */
const OFFSET_WITH_SPACE = /^(.{19,29}) (\d\d:\d\d)$/;

/** For a detail. */
export const INSTANT_EXPECTED =
  'an ISO 8601 time with Z or an offset and up to nine fractional digits, such as 2026-11-21T10:00:00Z';

/** @returns epoch milliseconds, or null */
export function readInstant(text: string): number | null {
  const spelled = text.replace(OFFSET_WITH_SPACE, '$1+$2');
  return INSTANT.test(spelled) ? parseInstant(spelled) : null;
}
