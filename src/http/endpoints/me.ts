/** GET /v1/me: account, key, subscriptions, data starts, export gaps and limits. */
import { type TSchema, Type } from '@sinclair/typebox';
import type { Credential } from '../../auth/credential-check.ts';
import { SCOPES } from '../../auth/scopes.ts';
import { type ContentType, streamName } from '../../detection/content-type.ts';
import {
  DAILY_FILE_ROWS,
  DATA_GAPS_MAX,
  EXPORTS_PER_DAY,
  ME_CACHE_SECONDS,
} from '../../limits/api-limits.ts';
import { ROW_HOLDERS } from '../../limits/daily-rows.ts';
import { GAP_STATUSES, readDataGaps } from '../../query/as-of.ts';
import { SCHEMA_VERSION } from '../../query/filters.ts';
import { readParameters } from '../../query/parameters.ts';
import { readDataStarts } from '../../query/period-page.ts';
import { EVERY_STREAM, selectStreams } from '../../query/streams.ts';
import { reading } from '../../store/database.ts';
import { formatMs, formatSeconds } from '../../time.ts';
import {
  CONTENT_TYPE,
  COUNT,
  closed,
  described,
  header,
  KEY_ID,
  NUMBERED_ID,
  nullable,
  ref,
  TIMESTAMP,
  text,
  words,
} from '../description.ts';
import type { KeyedRoute } from '../routes.ts';
import type { Service } from '../service.ts';

/** A client with two keys must not get the cached answer of the other one. */
const VARY = ['Vary', 'Authorization'];

const byContentType = (schema: TSchema, description: string): TSchema =>
  closed({ text: Type.Optional(schema), image: Type.Optional(schema) }, description);

export const ME: KeyedRoute = {
  path: '/v1/me',
  method: 'GET',
  id: 'getMe',
  tag: 'Account',
  summary: 'Retrieve account, key, subscriptions, gaps and limits',
  description:
    'Works even when the daily row allowance is used up. Responses can be cached for up to a minute.',
  access: 'key',
  scope: null,
  responses: {
    200: {
      description: 'Details of the credential, and what it can read.',
      cacheControl: `private, max-age=${ME_CACHE_SECONDS}`,
      schema: 'Me',
      examples: {
        me: {
          account: { id: 'acme', name: 'Acme News' },
          key: { id: 'abcdefgh2345', name: 'Dashboard', scopes: ['detections:read'], expires_at: null },
          subscriptions: [
            {
              id: 7001,
              name: 'Newsroom',
              content_types: ['text', 'image'],
              time_zone: 'Europe/Berlin',
              data_starts: { text: '2026-01-01T00:00:00Z', image: null },
              customer_lists: false,
              classification_since: null,
            },
          ],
          data_gaps: { text: [{ window_start: '2026-11-18T14:20:00Z', status: 'missing' }], image: [] },
          limits: {
            requests_per_minute: 120,
            daily_rows: 1_000_000,
            daily_file_rows: 0,
            exports_per_day: 0,
            throttled: null,
          },
          schema_version: SCHEMA_VERSION,
        },
      },
      headers: {
        Vary: header(
          text('\\bAuthorization\\b'),
          'Caches must store a separate response for each credential.',
        ),
      },
    },
  },
  schemas: {
    Me: closed({
      account: closed({ id: Type.String(), name: Type.String() }),
      key: closed({
        id: KEY_ID,
        name: Type.String(),
        scopes: Type.Array(words(SCOPES), { description: 'Scopes that the credential has now.' }),
        expires_at: nullable(TIMESTAMP, 'Null if the key does not expire.'),
      }),
      subscriptions: Type.Array(ref('Subscription'), { description: "Only the key's own subscriptions." }),
      data_gaps: byContentType(
        Type.Array(ref('Gap'), { maxItems: DATA_GAPS_MAX }),
        'Export windows of the last 90 days that have contributed no detections, newest first.',
      ),
      limits: ref('AccountLimits'),
      schema_version: words([SCHEMA_VERSION]),
    }),
    Subscription: closed({
      id: NUMBERED_ID,
      name: nullable(Type.String()),
      content_types: Type.Array(CONTENT_TYPE, {
        description: 'Content types that the key reads for this subscription. Can be empty.',
      }),
      time_zone: Type.String({ description: 'IANA time zone, used for date-only periods.' }),
      data_starts: byContentType(
        nullable(TIMESTAMP),
        'The `first_detected_at` of the earliest detection. Always accepted as `from`. Null while the stream has no detections.',
      ),
      customer_lists: Type.Literal(false, { description: 'Always false in this version.' }),
      classification_since: nullable(TIMESTAMP, 'Null in this version.'),
    }),
    Gap: closed({
      window_start: described(TIMESTAMP, 'Start of a ten-minute export window.'),
      status: described(
        words(GAP_STATUSES),
        'missing: the file had not arrived a day after it was due. abandoned: missing for 30 days, no longer looked for. failed: the file could not be read.',
      ),
    }),
    AccountLimits: closed({
      requests_per_minute: described(COUNT, 'Requests per minute and key.'),
      daily_rows: described(
        COUNT,
        "The account's daily row allowance for reading detections. A key can have a lower allowance of its own, which is not shown here; the detail of a 429 `daily_allowance` states it.",
      ),
      daily_file_rows: described(COUNT, 'Daily row allowance for files. Reserved for a later version.'),
      exports_per_day: described(
        COUNT,
        'Exports that an account can create per day. Reserved for a later version.',
      ),
      throttled: nullable(
        words(ROW_HOLDERS),
        'Which daily row allowance is used up: `key`, `account` (also when both are), or null.',
      ),
      throttled_until: Type.Optional(
        described(TIMESTAMP, 'Present only while throttled: the next 00:00 UTC.'),
      ),
    }),
  },
  answer(service, { query, nowMs }, credential) {
    readParameters(query, {});
    const { account, key_id, key_name, scopes, expires_at: endMs } = credential;
    const { allowance, config } = service;
    const throttle = allowance.throttle(credential, nowMs);
    const me = {
      account: { id: account.id, name: account.name },
      key: { id: key_id, name: key_name, scopes, expires_at: endMs === null ? null : formatMs(endMs) },
      ...reading(service.detections(), () => dataOf(service, credential, nowMs)),
      limits: {
        requests_per_minute: config.limits.requests_per_minute,
        daily_rows: allowance.rowsOf(credential),
        daily_file_rows: DAILY_FILE_ROWS,
        exports_per_day: EXPORTS_PER_DAY,
        throttled: throttle?.by ?? null,
        ...(throttle !== null && { throttled_until: formatMs(throttle.until_ms) }),
      },
      schema_version: SCHEMA_VERSION,
    };
    return { status: 200, body: JSON.stringify(me), headers: VARY };
  },
};

/** What the key can read, without types whose export is switched off. */
function dataOf({ detections, enabledContentTypes }: Service, { subscriptions }: Credential, nowMs: number) {
  const db = detections();
  const { streams, content_types: types } = selectStreams(subscriptions, EVERY_STREAM, enabledContentTypes);
  const starts = readDataStarts(db, streams);
  const startOf = (id: number, type: ContentType) => {
    const start = starts.get(streamName(id, type)) ?? null;
    return [type, start === null ? null : formatSeconds(start)];
  };
  const gapsOf = (type: ContentType) =>
    readDataGaps(db, type, nowMs).map((gap) => ({ ...gap, window_start: formatMs(gap.window_start) }));
  return {
    subscriptions: subscriptions.map(({ id, name, content_types: own, time_zone }) => {
      const content_types = types.filter((type) => own.includes(type));
      const data_starts = Object.fromEntries(content_types.map((type) => startOf(id, type)));
      const rest = { customer_lists: false, classification_since: null };
      return { id, name, content_types, time_zone, data_starts, ...rest };
    }),
    data_gaps: Object.fromEntries(types.map((type) => [type, gapsOf(type)])),
  };
}
