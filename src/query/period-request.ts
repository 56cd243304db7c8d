/**
 * Resolves a request for a period: the streams that it reads, the time zone of its dates, and the hash that ties its
 * cursors to it (GET /v1/detections).
 */
import type { ContentType, StreamName } from '../detection/content-type.ts';
import { PERIOD_ROWS_MAX, SUBSCRIPTIONS_MAX } from '../limits/contract-limits.ts';
import { zoneId } from '../time-zone.ts';
import type { DetectionFilters, StreamSelection } from './common-parameters.ts';
import { invalid } from './parameters.ts';
import type { PeriodParameters } from './period-parameters.ts';
import { hashRequest } from './query-cursor.ts';
import { type ReadableSubscription, selectStreams } from './streams.ts';

export interface PeriodSubscription extends ReadableSubscription {
  readonly time_zone: string;
}

/** Who asks: the account of the key, and what the key reads. */
export interface PeriodReader {
  readonly account: { readonly id: string };
  readonly subscriptions: readonly PeriodSubscription[];
}

export interface PeriodRequest {
  readonly streams: readonly StreamName[];
  /** What `as_of` covers. */
  readonly content_types: readonly ContentType[];
  /** As written, or the default. */
  readonly time_zone: string;
  /** Of {@link zoneId}. */
  readonly zone: string;
  readonly limit: number;
  /** Of {@link hashRequest}. */
  readonly hash: Buffer;
}

/** Added for a walk that must end: repeating the request would not help. */
const START_AGAIN = ". If the key's subscriptions changed since the first page, start again without a cursor";

/**
 * @param enabled content types whose export is switched on
 * @throws Refused `invalid_request`
 */
export function readPeriodRequest(
  asked: PeriodParameters,
  { account, subscriptions }: PeriodReader,
  enabled: ReadonlySet<ContentType>,
): PeriodRequest {
  const again = asked.cursor === null ? '' : START_AGAIN;
  const { streams, content_types } = selectStreams(subscriptions, asked.selection, enabled, again);
  const read = readSubscriptions(subscriptions, asked.selection, enabled);
  if (read.length > SUBSCRIPTIONS_MAX) {
    throw invalid(
      `subscription_id: the request covers ${read.length} subscriptions; at most ${SUBSCRIPTIONS_MAX} are allowed. ` +
        `Name up to ${SUBSCRIPTIONS_MAX} of them${again}`,
    );
  }
  const [first, ...others] = read;
  const ownZone = first !== undefined && others.length === 0 ? first.time_zone : 'UTC';
  const timeZone = asked.time_zone ?? ownZone;
  const zone = zoneId(timeZone);
  return {
    streams,
    content_types,
    time_zone: timeZone,
    zone,
    limit: streams.length > 1 ? Math.min(asked.limit, PERIOD_ROWS_MAX) : asked.limit,
    hash: hashOf(account.id, asked),
  };
}

/**
 * Of the account and the request, not of the key and what it reads now: a walk continues with another key of the account,
 * and when the key gains or loses a subscription.
 */
function hashOf(account: string, asked: PeriodParameters): Buffer {
  const { from, to, time_zone, sort, selection, filters } = asked;
  return hashRequest([
    account,
    from,
    to,
    time_zone === null ? null : zoneId(time_zone),
    sort,
    selection.subscription_id?.toSorted(compare) ?? null,
    selection.content_type,
    normalForm(filters),
  ]);
}

/** The subscriptions that are read; where none is, those that are named. */
function readSubscriptions(
  subscriptions: readonly PeriodSubscription[],
  { subscription_id: ids, content_type: type }: StreamSelection,
  enabled: ReadonlySet<ContentType>,
): readonly PeriodSubscription[] {
  const named = ids === null ? subscriptions : subscriptions.filter(({ id }) => ids.includes(id));
  const isRead = (one: ContentType) => enabled.has(one) && (type === null || type === one);
  const read = named.filter(({ content_types: types }) => types.some(isRead));
  return read.length > 0 ? read : named;
}

/** The filters sent, in the order of their table; lists are sorted, since their order has no meaning. */
function normalForm(filters: DetectionFilters): unknown[] {
  const form: unknown[] = [];
  for (const [name, value] of Object.entries(filters)) {
    if (value !== null) form.push(name, Array.isArray(value) ? value.toSorted(compare) : value);
  }
  return form;
}

function compare(a: number | string, b: number | string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
