/** The parameters of the period endpoint (GET /v1/detections), and the streams, zone and hash that they give. */
import { Type } from '@sinclair/typebox';
import type { ContentType } from '../detection/content-type.ts';
import { PERIOD_DAYS_MAX, PERIOD_ROWS_MAX, SUBSCRIPTIONS_MAX } from '../limits/api-limits.ts';
import { zoneId, zoneName } from '../time-zone.ts';
import { isDay } from '../zone-days.ts';
import { hashRequest } from './cursors.ts';
import { type DocumentedTable, FILTER_PARAMETERS, LIMIT, LIST_PARAMETERS } from './filters.ts';
import { defaulted, invalid, readParameters, single, type ValuesOf } from './parameters.ts';
import type { PeriodEnd } from './period.ts';
import { type ReadableSubscription, selectStreams } from './streams.ts';
import { choice, INSTANT_EXPECTED, readInstant, text } from './value-kinds.ts';

/** The direction of time; detections of one second are in ascending order of id in both. */
export type PeriodSort = 'ascending' | 'descending';

const SORT = choice<PeriodSort>({ '-first_detected_at': 'descending', first_detected_at: 'ascending' });

const END_EXPECTED = `a date such as 2026-11-21, or ${INSTANT_EXPECTED}`;
const END = {
  ...single<PeriodEnd>(
    (written) => {
      if (isDay(written)) return { kind: 'day', day: written };
      const ms = readInstant(written);
      return ms === null ? null : { kind: 'instant', ms };
    },
    `be ${END_EXPECTED}`,
    Type.String({ minLength: 10 }),
  ),
  required: END_EXPECTED,
};

/** `time_zone` is kept as written; `cursor` is decoded with the hash of the whole request. */
export const PERIOD_PARAMETERS = {
  from: {
    ...END,
    description:
      "Start of the period, inclusive: a date (the start of that day in the request's time zone), or a time with `Z` or an offset and up to nine fractional digits. It must not be before the day, in that time zone, on which the data starts. `data_starts` of the stream is always accepted.",
    example: '2026-11-01',
  },
  to: {
    ...END,
    description: `End of the period, exclusive, later than \`from\`. A date means the end of that day. A future value counts as now. The period must not exceed ${PERIOD_DAYS_MAX} calendar days when both ends are dates, otherwise ${PERIOD_DAYS_MAX} x 24 hours plus one hour.`,
    example: '2026-11-30',
  },
  time_zone: {
    ...single(
      (name) => (zoneName(name) === null ? null : name),
      'be an IANA time zone name such as Europe/Berlin',
      Type.String({ minLength: 1 }),
    ),
    description:
      "IANA time zone for dates. Default: the subscription's own time zone when the request covers exactly one subscription, otherwise UTC.",
    example: 'Europe/Berlin',
  },
  sort: {
    ...defaulted(SORT, '-first_detected_at'),
    description: 'Default: newest first. Ties are sorted by `id`.',
    example: 'first_detected_at',
  },
  limit: {
    ...LIMIT,
    description: `Maximum number of rows in a page. The effective maximum is ${PERIOD_ROWS_MAX} when the request covers more than one stream (subscription and content type). It may change between pages.`,
  },
  cursor: {
    ...text(Type.Ref('QueryCursor')),
    description:
      '`next_cursor` from the previous page of the same request. It is rejected when the period or filters changed. Without `subscription_id`, it stays valid when the subscriptions of the key change.',
    example: 'AQ9cVxH5o3QAW6xO0wq3l0bXWQ6kqkTQyQ',
  },
  ...LIST_PARAMETERS,
} satisfies DocumentedTable;

/** Who asks: the account of the key, and what the key reads. */
export interface PeriodReader {
  readonly account: { readonly id: string };
  readonly subscriptions: readonly (ReadableSubscription & { readonly time_zone: string })[];
}

/** Added for a walk that must end: repeating the request would not help. */
export const START_AGAIN =
  ". If the key's subscriptions changed since the first page, start again without a cursor";

/** @param raw without the `?`; @param enabled types whose export is switched on; @throws Refused `invalid_request` */
export function readPeriodRequest(raw: string, reader: PeriodReader, enabled: ReadonlySet<ContentType>) {
  const asked = readParameters(raw, PERIOD_PARAMETERS);
  const again = asked.cursor === null ? '' : START_AGAIN;
  const selected = selectStreams(reader.subscriptions, asked, enabled, again);
  const { streams, content_types, subscriptions: read } = selected;
  if (read.length > SUBSCRIPTIONS_MAX)
    throw invalid(
      `subscription_id: the request covers ${read.length} subscriptions; at most ${SUBSCRIPTIONS_MAX} are allowed. Name up to ${SUBSCRIPTIONS_MAX} of them${again}`,
    );
  const [first, ...others] = read;
  const ownZone = first !== undefined && others.length === 0 ? first.time_zone : 'UTC';
  const resolved_zone = asked.time_zone ?? ownZone;
  return {
    ...asked,
    streams,
    content_types,
    /** The name that a first page shows, and its IANA id. */
    resolved_zone,
    zone: zoneId(resolved_zone),
    limit: streams.length > 1 ? Math.min(asked.limit, PERIOD_ROWS_MAX) : asked.limit,
    hash: hashOf(reader.account.id, asked),
  };
}

/**
 * Covers the account and the request, not what the key reads now: that may change during a walk. Of the filters those
 * that are sent, in the order of their table; lists are sorted, since their order has no meaning.
 */
function hashOf(account: string, asked: ValuesOf<typeof PERIOD_PARAMETERS>): string {
  const { from, to, time_zone, sort, subscription_id, content_type } = asked;
  const sent = Object.entries(asked).filter(([name, value]) => name in FILTER_PARAMETERS && value !== null);
  return hashRequest([
    account,
    from,
    to,
    time_zone === null ? null : zoneId(time_zone),
    sort,
    subscription_id?.toSorted(compare) ?? null,
    content_type,
    sent.flatMap(([name, value]) => [name, Array.isArray(value) ? value.toSorted(compare) : value]),
  ]);
}

const compare = (a: number | string, b: number | string) => Number(a > b) - Number(a < b);
