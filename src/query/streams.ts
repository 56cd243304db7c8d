/** Which streams a request reads: those of its key, narrowed by what it names (contract: Common detection filters). */
import { CONTENT_TYPES, type ContentType, type StreamName, streamName } from '../detection/content-type.ts';
import type { StreamSelection } from './common-parameters.ts';
import { invalid } from './parameters.ts';

/** A subscription of the key, and what the key reads of it. */
export interface ReadableSubscription {
  readonly id: number;
  readonly content_types: readonly ContentType[];
}

export interface SelectedStreams {
  /** By subscription and content type; none when the named subscriptions have nothing of the named type. */
  readonly streams: readonly StreamName[];
  /** The content types that are read: those whose exports `as_of` is built from. */
  readonly content_types: readonly ContentType[];
}

/**
 * @param enabled content types whose export is switched on; the others have no streams
 * @param advice said behind a refusal
 * @throws Refused `invalid_request`, with one text for a foreign subscription and one that does not exist
 */
export function selectStreams(
  subscriptions: readonly ReadableSubscription[],
  selection: StreamSelection,
  enabled: ReadonlySet<ContentType>,
  advice = '',
): SelectedStreams {
  const { subscription_id: ids, content_type: type } = selection;
  if (ids?.some((id) => !subscriptions.some((subscription) => subscription.id === id))) {
    throw invalid(
      `subscription_id: every value must be one of the key's subscriptions; GET /v1/me lists them${advice}`,
    );
  }
  if (type !== null && !subscriptions.some((subscription) => subscription.content_types.includes(type))) {
    throw invalid(`content_type: must be one that the key can read; GET /v1/me lists them${advice}`);
  }
  const named = ids === null ? subscriptions : subscriptions.filter(({ id }) => ids.includes(id));
  const streams: StreamName[] = [];
  const read = new Set<ContentType>(type === null ? [] : [type]);
  for (const subscription of [...named].sort((a, b) => a.id - b.id)) {
    for (const contentType of CONTENT_TYPES) {
      if (!subscription.content_types.includes(contentType)) continue;
      if (type !== null && type !== contentType) continue;
      read.add(contentType);
      if (enabled.has(contentType)) streams.push(streamName(subscription.id, contentType));
    }
  }
  return {
    streams: [...new Set(streams)],
    content_types: CONTENT_TYPES.filter((contentType) => read.has(contentType) && enabled.has(contentType)),
  };
}

/** The selection of a request that names nothing. */
export const EVERY_STREAM: StreamSelection = { subscription_id: null, content_type: null };
