/** The parameters of the endpoints, with their limits (contract: Endpoints, Common detection filters, Limits). */
import { type TSchema, Type } from '@sinclair/typebox';
import { FIELDS, OBJECT_PATHS } from '../detection/fields.ts';
import { DETECTION_ID_PATTERN } from '../detection/id.ts';
import {
  DOMAINS_MAX,
  PAGE_ROWS_DEFAULT,
  PAGE_ROWS_MAX,
  PERIOD_DAYS_MAX,
  PERIOD_ROWS_MAX,
  PUBLISHERS_MAX,
  SOURCE_ID_CHARACTERS_MAX,
  SUBSCRIPTIONS_MAX,
} from '../limits/contract-limits.ts';
import { contentType, numberedId, pascalCase, ref, words } from './vocabulary.ts';

export interface Parameter {
  /** Name as a component, which no schema has: of generators, either makes a type. */
  readonly component: string;
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required: boolean;
  readonly description: string;
  readonly schema: TSchema;
  readonly example: unknown;
}

interface Draft {
  readonly description: string;
  readonly schema: TSchema;
  readonly example: unknown;
  readonly required?: boolean;
}

const PATHS = [...FIELDS.map(({ path }) => path), ...OBJECT_PATHS];

const VIEW: Readonly<Record<string, Draft>> = {
  fields: {
    description: `Comma-separated list of detection paths. A path is a field, or an object that is returned with all its fields. \`id\` and \`version\` are always returned. Paths: ${PATHS.join(', ')}`,
    schema: Type.String({ minLength: 1 }),
    example: 'first_detected_at,strength,article.url',
  },
  schema_version: { description: 'The default and only value.', schema: words(['v1']), example: 'v1' },
};

const FILTERS: Readonly<Record<string, Draft>> = {
  subscription_id: {
    description: "Only these of the key's subscriptions. Default: all of them.",
    schema: Type.Array(numberedId(1), { minItems: 1, maxItems: SUBSCRIPTIONS_MAX }),
    example: [7001],
  },
  content_type: {
    description: 'A content type that the key can read. Default: all of them.',
    schema: contentType(),
    example: 'text',
  },
  publisher_id: {
    description: 'Matches `article.publisher.id`. A detection without a publisher never matches.',
    schema: Type.Array(numberedId(1), { minItems: 1, maxItems: PUBLISHERS_MAX }),
    example: [5, 6],
  },
  exclude_publisher_id: {
    description: 'Excludes these publishers. Detections without a publisher are kept.',
    schema: Type.Array(numberedId(1), { minItems: 1, maxItems: PUBLISHERS_MAX }),
    example: [7],
  },
  domain: {
    description:
      '`example.com` or `https://example.com`. Subdomains such as `www.example.com` match nothing.',
    schema: Type.Array(Type.String({ minLength: 1 }), { minItems: 1, maxItems: DOMAINS_MAX }),
    example: ['example.com'],
  },
  exclude_domain: {
    description: 'Excludes these domains. Detections without a domain are kept.',
    schema: Type.Array(Type.String({ minLength: 1 }), { minItems: 1, maxItems: DOMAINS_MAX }),
    example: ['example.org'],
  },
  min_band: {
    description: 'This band or stronger. Bands rank the same for both content types.',
    schema: ref('Band'),
    example: 'medium',
  },
  band: {
    description: 'Exactly these bands. `off` and `max` never match an image.',
    schema: Type.Array(ref('Band'), { minItems: 1 }),
    example: ['high', 'max'],
  },
  min_score: {
    description: 'Minimum `strength.score`, compared after rounding to a whole number.',
    schema: Type.Integer({ minimum: 0, maximum: 100 }),
    example: 50,
  },
  print: {
    description: 'true: print articles only. false: everything else. Images are never print.',
    schema: Type.Boolean(),
    example: false,
  },
  source_id: {
    description: 'Exact match of `source.id`.',
    schema: Type.String({ minLength: 1, maxLength: SOURCE_ID_CHARACTERS_MAX }),
    example: 'urn:newsml:agency.example:20261121:story-1',
  },
  article_id: { description: 'Matches `article.id`.', schema: numberedId(1), example: 456 },
};

const CHANGES: Readonly<Record<string, Draft>> = {
  cursor: {
    description: '`next_cursor` from a previous response of this endpoint. Send either `cursor` or `since`.',
    schema: ref('StreamCursor'),
    example: 'vEEz9_nMB-9gd7TQcKD5Tw',
  },
  since: {
    description:
      'A time with `Z` or an offset and up to nine fractional digits. It must not be in the future or more than 31 x 24 hours ago. The page starts at the first change delivered at or after it. Send either `since` or `cursor`.',
    schema: Type.String({ format: 'date-time' }),
    example: '2026-11-21T10:00:00Z',
  },
  limit: {
    description: 'Maximum number of rows in a page.',
    schema: Type.Integer({ minimum: 1, maximum: PAGE_ROWS_MAX, default: PAGE_ROWS_DEFAULT }),
    example: 1000,
  },
};

const PERIOD: Readonly<Record<string, Draft>> = {
  from: {
    description:
      "Start of the period, inclusive: a date (the start of that day in the request's time zone), or a time with `Z` or an offset and up to nine fractional digits. It must not be before the day, in that time zone, on which the data starts. `data_starts` of the stream is always accepted.",
    schema: Type.String({ minLength: 10 }),
    example: '2026-11-01',
    required: true,
  },
  to: {
    description: `End of the period, exclusive, later than \`from\`. A date means the end of that day. A future value counts as now. The period must not exceed ${PERIOD_DAYS_MAX} calendar days when both ends are dates, otherwise ${PERIOD_DAYS_MAX} x 24 hours plus one hour.`,
    schema: Type.String({ minLength: 10 }),
    example: '2026-11-30',
    required: true,
  },
  time_zone: {
    description:
      "IANA time zone for dates. Default: the subscription's own time zone when the request covers exactly one subscription, otherwise UTC.",
    schema: Type.String({ minLength: 1 }),
    example: 'Europe/Berlin',
  },
  sort: {
    description: 'Default: newest first. Ties are sorted by `id`.',
    schema: Type.Union([Type.Literal('-first_detected_at'), Type.Literal('first_detected_at')], {
      default: '-first_detected_at',
    }),
    example: 'first_detected_at',
  },
  limit: {
    description: `Maximum number of rows in a page. The effective maximum is ${PERIOD_ROWS_MAX} when the request covers more than one stream (subscription and content type). It may change between pages.`,
    schema: Type.Integer({ minimum: 1, maximum: PAGE_ROWS_MAX, default: PAGE_ROWS_DEFAULT }),
    example: 1000,
  },
  cursor: {
    description:
      '`next_cursor` from the previous page of the same request. It is rejected when the period or filters changed. Without `subscription_id`, it stays valid when the subscriptions of the key change.',
    schema: ref('QueryCursor'),
    example: 'AQ9cVxH5o3QAW6xO0wq3l0bXWQ6kqkTQyQ',
  },
};

const IF_NONE_MATCH = header('If-None-Match', 'An ETag, a list of them, or `*`.', '"3q2-7wAAAAAAAAAAAAAAAA"');

const PREFER = header(
  'Prefer',
  'How long to wait for the next change where the page would be empty (RFC 7240), in seconds, at most 60.',
  'wait=30',
);
const IF_MODIFIED_SINCE = header(
  'If-Modified-Since',
  'A Last-Modified; ignored beside If-None-Match.',
  'Sat, 21 Nov 2026 10:10:00 GMT',
);

export const CHANGES_PARAMETERS = [
  ...inQuery(CHANGES),
  ...inQuery(FILTERS, 'Filter'),
  ...inQuery(VIEW),
  PREFER,
];
export const PERIOD_PARAMETERS = [...inQuery(PERIOD), ...inQuery(FILTERS, 'Filter'), ...inQuery(VIEW)];
export const DETECTION_PARAMETERS: readonly Parameter[] = [
  inPath('id', 'Id of the detection.', Type.String({ pattern: DETECTION_ID_PATTERN }), 't.7001.123.456'),
  ...inQuery(VIEW),
];
export const SCHEMA_PARAMETERS: readonly Parameter[] = [
  ...inQuery(VIEW).filter(({ name }) => name === 'schema_version'),
  IF_NONE_MATCH,
];
export const PHOTO_PARAMETERS: readonly Parameter[] = [
  inPath('internal_id', '`source.internal_id` of the photo.', numberedId(), 123),
  ...inQuery({
    signature: {
      description: 'Copied from `source.image_url`.',
      schema: Type.String({ minLength: 1 }),
      example: 'Zm9vYmFyYmF6cXV4MTIzNA',
      required: true,
    },
  }),
  IF_NONE_MATCH,
  IF_MODIFIED_SINCE,
  header('Range', 'A single byte range.', 'bytes=0-1023'),
  header('If-Range', 'ETag of the photo that the client already has part of.', '"1f-1879a5b1c2d3e4f5"'),
];

/** @param kind what their components' names end in */
function inQuery(drafts: Readonly<Record<string, Draft>>, kind = ''): Parameter[] {
  return Object.entries(drafts).map(([name, draft]) => {
    const component = `${pascalCase(name)}${kind}`;
    return { component, name, in: 'query', required: false, ...draft };
  });
}

function inPath(name: string, description: string, schema: TSchema, example: unknown): Parameter {
  return { component: pascalCase(name), name, in: 'path', required: true, description, schema, example };
}

function header(name: string, description: string, example: string): Parameter {
  return {
    component: pascalCase(name),
    name,
    in: 'header',
    required: false,
    description,
    schema: Type.String(),
    example,
  };
}
