/** GET /v1/me: account, key, subscriptions, data starts, export gaps and limits (contract: Me). */
import type { Credential } from '../../auth/authorize.ts';
import type { Settings } from '../../config/schema.ts';
import { CONTENT_TYPES, type ContentType, streamName } from '../../detection/content-type.ts';
import { DAILY_FILE_ROWS, EXPORTS_PER_DAY, ME_CACHE_SECONDS } from '../../limits/contract-limits.ts';
import type { DailyAllowance } from '../../limits/daily-allowance.ts';
import { SCHEMA_VERSION } from '../../query/common-parameters.ts';
import { readDataGaps } from '../../query/data-gaps.ts';
import { readParameters } from '../../query/parameters.ts';
import { readDataStarts } from '../../query/period-start.ts';
import { type Database, reading } from '../../store/database.ts';
import { formatMs, formatSeconds } from '../../time.ts';
import type { Answer, Call, KeyedRoute } from '../routes.ts';

export interface MeSources {
  readonly detections: () => Database;
  readonly enabledContentTypes: ReadonlySet<ContentType>;
  readonly allowance: DailyAllowance;
  readonly limits: Pick<Settings['limits'], 'requests_per_minute'>;
}

/** A client with two keys must not get the cached answer of the other one. */
const VARY = ['Vary', 'Authorization'];

export function meRoute(sources: MeSources): KeyedRoute {
  return {
    path: '/v1/me',
    method: 'GET',
    access: 'key',
    scope: null,
    readsDetections: true,
    answer: (call, credential) => answerMe(sources, call, credential),
  };
}

function answerMe(sources: MeSources, { query, nowMs }: Call, credential: Credential): Answer {
  readParameters(query, {});
  const { account, scopes, expires_at } = credential;
  const me = {
    account: { id: account.id, name: account.name },
    key: {
      id: credential.key_id,
      name: credential.key_name,
      scopes,
      expires_at: expires_at === null ? null : formatMs(expires_at),
    },
    ...reading(sources.detections(), () => dataOf(sources, credential, nowMs)),
    limits: limitsOf(sources, credential, nowMs),
    schema_version: SCHEMA_VERSION,
  };
  return {
    status: 200,
    body: JSON.stringify(me),
    cacheControl: `private, max-age=${ME_CACHE_SECONDS}`,
    headers: VARY,
  };
}

/** What the key can read, without types whose export is switched off. */
function dataOf(
  { detections, enabledContentTypes }: MeSources,
  { subscriptions }: Credential,
  nowMs: number,
) {
  const readable = subscriptions.map((subscription) => ({
    ...subscription,
    content_types: CONTENT_TYPES.filter(
      (type) => subscription.content_types.includes(type) && enabledContentTypes.has(type),
    ),
  }));
  const streams = readable.flatMap(({ id, content_types }) =>
    content_types.map((type) => streamName(id, type)),
  );
  const starts = readDataStarts(detections(), streams);
  const types = CONTENT_TYPES.filter((type) =>
    readable.some(({ content_types }) => content_types.includes(type)),
  );
  return {
    subscriptions: readable.map(({ id, name, content_types, time_zone }) => ({
      id,
      name,
      content_types,
      time_zone,
      data_starts: Object.fromEntries(
        content_types.map((type) => {
          const start = starts.get(streamName(id, type)) ?? null;
          return [type, start === null ? null : formatSeconds(start)];
        }),
      ),
      customer_lists: false,
      classification_since: null,
    })),
    data_gaps: Object.fromEntries(types.map((type) => [type, gapsOf(detections(), type, nowMs)])),
  };
}

function gapsOf(detections: Database, type: ContentType, nowMs: number) {
  return readDataGaps(detections, type, nowMs).map(({ window_start, status }) => ({
    window_start: formatMs(window_start),
    status,
  }));
}

function limitsOf({ allowance, limits }: MeSources, credential: Credential, nowMs: number) {
  const throttle = allowance.throttle(credential, nowMs);
  return {
    requests_per_minute: limits.requests_per_minute,
    daily_rows: allowance.rowsOf(credential),
    daily_file_rows: DAILY_FILE_ROWS,
    exports_per_day: EXPORTS_PER_DAY,
    throttled: throttle?.by ?? null,
    ...(throttle === null ? {} : { throttled_until: formatMs(throttle.until_ms) }),
  };
}
