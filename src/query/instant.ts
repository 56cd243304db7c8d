/** An instant in a query: ISO 8601 with `Z` or an offset, optional milliseconds (contract: `since`, `from`, `to`). */
import { parseInstant } from '../time.ts';

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?(Z|[+-]\d\d:\d\d)$/;
/** A `+` that was not encoded arrives as a space; where an offset's sign stands it can have been nothing else. */
const OFFSET_WITH_SPACE = /^(.{19,23}) (\d\d:\d\d)$/;

/** @returns epoch milliseconds; null when it is no such time */
export function readInstant(text: string): number | null {
  const spelled = text.replace(OFFSET_WITH_SPACE, '$1+$2');
  return INSTANT.test(spelled) ? parseInstant(spelled) : null;
}
