/** The streams that a request reads: those of its key that it selects. */
import { CONTENT_TYPES, type ContentType, streamName } from '../detection/content-type.ts';
import type { StreamSelection } from './filters.ts';
import { invalid } from './parameters.ts';

export type ReadableSubscription = Readonly<{ id: number; content_types: readonly ContentType[] }>;

/**
 * @param advice added to the detail
 * @returns `content_types`: those that are read, for `as_of`. `subscriptions`: those that are read; where none is, those
 *   that are named
 * @throws Refused `invalid_request`, with one text for foreign and unknown ids
 */
export function selectStreams<Subscription extends ReadableSubscription>(
  subscriptions: readonly Subscription[],
  { subscription_id: ids, content_type: type }: StreamSelection,
  enabled: ReadonlySet<ContentType>,
  advice = '',
) {
  if (ids?.some((id) => !subscriptions.some((subscription) => subscription.id === id)))
    throw invalid(
      `subscription_id: every value must be one of the key's subscriptions; GET /v1/me lists them${advice}`,
    );
  if (type !== null && !subscriptions.some((subscription) => subscription.content_types.includes(type)))
    throw invalid(`content_type: must be one that the key can read; GET /v1/me lists them${advice}`);
  const named = ids === null ? subscriptions : subscriptions.filter(({ id }) => ids.includes(id));
  const wanted = CONTENT_TYPES.filter((kind) => enabled.has(kind) && (type === null || type === kind));
  const streams = named
    .toSorted((a, b) => a.id - b.id)
    .flatMap(({ id, content_types: own }) =>
      wanted.filter((kind) => own.includes(kind)).map((kind) => streamName(id, kind)),
    );
  const isRead = (one: ContentType) => type === one || named.some((own) => own.content_types.includes(one));
  const read = named.filter(({ content_types: own }) => own.some((kind) => wanted.includes(kind)));
  return { streams, content_types: wanted.filter(isRead), subscriptions: read.length > 0 ? read : named };
}

/** The selection of a request without `subscription_id` and `content_type`. */
export const EVERY_STREAM: StreamSelection = { subscription_id: null, content_type: null };
