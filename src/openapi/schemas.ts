/** The named schemas of the document: all response bodies (contract: Resources and their fields). */
import { type TProperties, type TSchema, Type } from '@sinclair/typebox';
import { SCOPES } from '../auth/scopes.ts';
import { CONTENT_TYPES, EXPORT_NAMES } from '../detection/content-type.ts';
import { FIELDS } from '../detection/fields.ts';
import { OAUTH_ERRORS, PROBLEMS } from '../error-codes.ts';
import { DATA_GAPS_MAX, TOKEN_LIFETIME_MS } from '../limits/contract-limits.ts';
import { SECOND_MS } from '../time.ts';
import { detectionParts, detectionSchema } from './detection-schema.ts';
import {
  CONTENT_TYPE,
  COUNT,
  closed,
  componentId,
  described,
  NUMBERED_ID,
  nullable,
  pascalCase,
  ref,
  TIMESTAMP,
  URI,
  words,
} from './vocabulary.ts';

const CURSOR_PATTERN = '^[A-Za-z0-9_-]+$';

const AS_OF = nullable(
  TIMESTAMP,
  'End of the newest finished export window; the earliest across the content types read. Data up to this time has been read, except windows listed in data_gaps (GET /v1/me) and late windows. Null while an export has no finished window.',
);

/** By name; the `$id` of each is its address in the document. */
export const SCHEMAS: Readonly<Record<string, TSchema>> = named({
  StreamCursor: Type.String({
    pattern: CURSOR_PATTERN,
    description: 'Opaque. Valid with any filter, never expires, and survives a key rotation.',
  }),
  QueryCursor: Type.String({
    pattern: CURSOR_PATTERN,
    description:
      'Opaque. Tied to the period, time zone, sort, subscriptions and filters of the request; rejected when they change.',
  }),
  ...detectionParts(),
  ...ofEachType('Detection', false),
  Detection: Type.Union(namesOfTypes('Detection').map(ref), {
    description:
      'One item found in one article, for one subscription. When a match is scored again with no other change, `last_scored_at` and `exported_at` are updated in place, without a new `version`: ignore both when you compare copies. With `fields`, only the requested fields are present, plus always `id` and `version`.',
  }),
  ...ofEachType('Change', true),
  Change: Type.Union(namesOfTypes('Change').map(ref), {
    description: 'One version of a detection in the change stream, with its `event`.',
  }),
  ChangesPage: closed({
    data: Type.Array(ref('Change'), { description: 'In arrival order.' }),
    next_cursor: ref('StreamCursor'),
    has_more: Type.Boolean({
      description: 'True: call again now. False: caught up; call again later with the same cursor.',
    }),
    as_of: AS_OF,
  }),
  RangePage: closed({
    data: Type.Array(ref('Detection'), { description: 'Current states, in the requested order.' }),
    next_cursor: nullable(ref('QueryCursor'), 'Null on the last page.'),
    has_more: Type.Boolean({ description: 'True when there may be another page. That page can be empty.' }),
    from: described(TIMESTAMP, 'Resolved start, inclusive.'),
    to: described(
      TIMESTAMP,
      'Resolved end, exclusive. The time of the first request when `to` was in the future.',
    ),
    time_zone: Type.String({ description: 'Time zone used for the period.' }),
    as_of: AS_OF,
  }),
  Me: closed({
    account: closed({ id: Type.String(), name: Type.String() }),
    key: closed({
      id: Type.String({ pattern: '^[a-z2-7]{12}$' }),
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
    schema_version: words(['v1']),
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
      words(['missing', 'abandoned', 'failed']),
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
      words(['key', 'account']),
      'Which daily row allowance is used up: `key`, `account` (also when both are), or null.',
    ),
    throttled_until: Type.Optional(described(TIMESTAMP, 'Present only while throttled: the next 00:00 UTC.')),
  }),
  Schema: closed({
    schema_version: words(['v1']),
    fields: Type.Array(ref('SchemaField'), { description: 'In the order of the fields of a detection.' }),
  }),
  SchemaField: closed({
    path: words(FIELDS.map(({ path }) => path)),
    column: Type.String({
      pattern: '^[a-z_]+$',
      description: 'Flat column name for files: dots become underscores.',
    }),
    position: Type.Integer({ minimum: 1, maximum: FIELDS.length }),
    type: words(['string', 'integer', 'number', 'boolean', 'timestamp']),
    nullable: Type.Boolean(),
    content_types: Type.Array(CONTENT_TYPE, { minItems: 1 }),
    description: Type.String({ minLength: 1 }),
  }),
  Token: closed({
    access_token: Type.String({ minLength: 1, description: 'Sent as `Authorization: Bearer`.' }),
    token_type: words(['Bearer']),
    expires_in: Type.Literal(TOKEN_LIFETIME_MS / SECOND_MS, { description: 'Seconds.' }),
    scope: Type.String({ description: 'Space-separated scopes of the token.' }),
  }),
  Health: closed({
    status: words(['ok', 'degraded']),
    exports: closed(
      Object.fromEntries(
        EXPORT_NAMES.map((name) => [
          name,
          closed({ newest_done: nullable(TIMESTAMP, 'End of the newest finished window of the export.') }),
        ]),
      ),
    ),
    alerts: closed({
      open: described(COUNT, 'Alerts open now.'),
      page_worthy: described(COUNT, 'Open alerts that need someone now. Above 0, health is 503.'),
      paused: Type.Integer({ minimum: 0, maximum: 1, description: '1 while ingest is deliberately paused.' }),
    }),
  }),
  Problem: closed(
    {
      type: described(URI, '`{base_url}/errors/<code>`. Test the last path segment, the error code.'),
      title: described(words(Object.values(PROBLEMS).map(({ title }) => title)), 'The error code in words.'),
      status: Type.Integer({ minimum: 400, maximum: 599 }),
      detail: Type.String({ minLength: 1, description: 'What was wrong, in plain English.' }),
      request_id: Type.String({ format: 'uuid', description: 'Equals `X-Request-Id`.' }),
    },
    'RFC 9457',
  ),
  OAuthError: closed(
    {
      error: words(Object.keys(OAUTH_ERRORS)),
      error_description: Type.String({ minLength: 1 }),
    },
    'RFC 6749, 5.2',
  ),
});

/** `TextDetection`, `ImageDetection` */
function namesOfTypes(suffix: string): string[] {
  return CONTENT_TYPES.map((type) => `${pascalCase(type)}${suffix}`);
}

function ofEachType(suffix: string, event: boolean): Record<string, TSchema> {
  return Object.fromEntries(
    CONTENT_TYPES.map((type) => [`${pascalCase(type)}${suffix}`, detectionSchema(type, event)]),
  );
}

function byContentType(schema: TSchema, description: string): TSchema {
  return closed({ text: Type.Optional(schema), image: Type.Optional(schema) }, description);
}

function named(schemas: TProperties): TProperties {
  return Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => [name, { ...schema, $id: componentId(name) }]),
  );
}
