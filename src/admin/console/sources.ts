/** What the views of the console read from, and the periods that they are asked for. */
import type { Jobs } from '../../operations/jobs.ts';
import type { Context, Live } from '../../operations/operation.ts';
import { single } from '../../query/parameters.ts';
import { INSTANT, readInstant } from '../../query/value-kinds.ts';
import type { Database } from '../../store/database.ts';
import type { AskView } from '../thread-messages.ts';

export type Read = AskView;

export interface Sources extends Pick<Context, 'folder' | 'kind' | 'config' | 'nowMs' | 'access'> {
  readonly live: Live;
  readonly jobs: Jobs;
  /** A reader on `detections.db`. @throws Refused `unavailable` while it must not be read */
  readonly detections: () => Database;
}

export const END_EXPECTED = 'a day such as 2026-11-21, or a time with Z';
/** A day, as forms send it, which stands for its beginning in UTC; or a time. Epoch milliseconds. */
export const END = single(
  (text) => readInstant(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text),
  `be ${END_EXPECTED}`,
  INSTANT.schema,
);
