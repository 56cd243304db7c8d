/** The filters and the other parameters that the lists share, and the filters as SQL. */
import { Type } from '@sinclair/typebox';
import { BANDS } from '../detection/band.ts';
import { NUMBER_MAX, perContentType } from '../detection/content-type.ts';
import { SOURCE_ID_CHARACTERS_MAX } from '../detection/fields.ts';
import { hashOfSource } from '../detection/match.ts';
import {
  DOMAINS_MAX,
  PAGE_ROWS_DEFAULT,
  PAGE_ROWS_MAX,
  PUBLISHERS_MAX,
  SUBSCRIPTIONS_MAX,
} from '../limits/api-limits.ts';
import { type DocumentedParameter, defaulted, list, single, type ValuesOf } from './parameters.ts';
import { KNOWN_PATHS, parseFields } from './projection.ts';
import { BOOLEAN, choice, DOMAIN, integer, shortText } from './value-kinds.ts';

export type DocumentedTable = Readonly<Record<string, DocumentedParameter>>;

export const SCHEMA_VERSION = 'v1';

const NUMBER = integer(1, NUMBER_MAX);
/** The place of a band among all: what the tables of detections store. */
const BAND = choice(Object.fromEntries(BANDS.map((band, step) => [band, step])), Type.Ref('Band'));

/** Parameters of every detection endpoint. */
export const VIEW_PARAMETERS = {
  fields: {
    ...single(parseFields, 'be a comma-separated list of paths', Type.String({ minLength: 1 })),
    description: `Comma-separated list of detection paths. A path is a field, or an object that is returned with all its fields. \`id\` and \`version\` are always returned; the schemas of detections show them without this parameter, with every member. Paths: ${[...KNOWN_PATHS].join(', ')}`,
    example: 'first_detected_at,strength,article.url',
  },
  schema_version: {
    ...choice({ [SCHEMA_VERSION]: SCHEMA_VERSION }),
    description: 'The default and only value.',
    example: SCHEMA_VERSION,
  },
} satisfies DocumentedTable;

export const SCHEMA_PARAMETERS = { schema_version: VIEW_PARAMETERS.schema_version };

/** Which streams are read; null: all that the key can read. */
export const STREAM_PARAMETERS = {
  subscription_id: {
    ...list(NUMBER, SUBSCRIPTIONS_MAX),
    description: "Only these of the key's subscriptions. Default: all of them.",
    example: [7001],
  },
  content_type: {
    ...choice(perContentType((type) => type)),
    description: 'A content type that the key can read. Default: all of them.',
    example: 'text',
  },
} satisfies DocumentedTable;

export type StreamSelection = ValuesOf<typeof STREAM_PARAMETERS>;

/** Filters on detections. Cursors of the period endpoint hold a hash of them in this order. */
export const FILTER_PARAMETERS = {
  publisher_id: {
    ...list(NUMBER, PUBLISHERS_MAX),
    description: 'Matches `article.publisher.id`. A detection without a publisher never matches.',
    example: [5, 6],
  },
  exclude_publisher_id: {
    ...list(NUMBER, PUBLISHERS_MAX),
    description: 'Excludes these publishers. Detections without a publisher are kept.',
    example: [7],
  },
  domain: {
    ...list(DOMAIN, DOMAINS_MAX),
    description:
      '`example.com` or `https://example.com`. Subdomains such as `www.example.com` match nothing.',
    example: ['example.com'],
  },
  exclude_domain: {
    ...list(DOMAIN, DOMAINS_MAX),
    description: 'Excludes these domains. Detections without a domain are kept.',
    example: ['example.org'],
  },
  min_band: {
    ...BAND,
    description: 'This band or stronger. Bands rank the same for both content types.',
    example: 'medium',
  },
  band: {
    ...list(BAND),
    description: 'Exactly these bands. `off` and `max` never match an image.',
    example: ['high', 'max'],
  },
  min_score: {
    ...integer(0, 100),
    description: 'Minimum `strength.score`, compared after rounding to a whole number.',
    example: 50,
  },
  print: {
    ...BOOLEAN,
    description: 'true: print articles only. false: everything else. Images are never print.',
    example: false,
  },
  source_id: {
    ...shortText(SOURCE_ID_CHARACTERS_MAX),
    description: 'Exact match of `source.id`.',
    example: 'urn:newsml:agency.example:20261121:story-1',
  },
  article_id: { ...NUMBER, description: 'Matches `article.id`.', example: 456 },
} satisfies DocumentedTable;

/** Null: the filter was not sent. */
export type DetectionFilters = ValuesOf<typeof FILTER_PARAMETERS>;

type SqlValue = number | string;

export type FilterSql = ReturnType<typeof filterSql>;

const isIn = (column: string, parameter: string) =>
  `${column} IN (SELECT value FROM json_each(@${parameter}))`;

/** Keeps rows without a value. */
const isNotIn = (column: string, parameter: string) =>
  `(${column} IS NULL OR NOT ${isIn(column, parameter)})`;

const CONDITIONS: readonly (readonly [name: keyof DetectionFilters, condition: string])[] = [
  ['publisher_id', isIn('publisher_id', 'publisher_id')],
  ['exclude_publisher_id', isNotIn('publisher_id', 'exclude_publisher_id')],
  ['domain', isIn('domain', 'domain')],
  ['exclude_domain', isNotIn('domain', 'exclude_domain')],
  ['band', isIn('band', 'band')],
  ['min_band', 'band >= @min_band'],
  ['min_score', 'score >= @min_score'],
  ['print', 'print = @print'],
  // The hash finds the few texts to search.
  ['source_id', 'source_hash = @source_hash AND instr(body, @source_id) > 0'],
  ['article_id', 'article_id = @article_id'],
];

/**
 * Conditions on stream rows and current detections, each with ` AND ` before it; empty when every row passes. The text
 * depends only on which filters are sent.
 */
export function filterSql(filters: DetectionFilters) {
  let sql = '';
  const values: Record<string, SqlValue> = {};
  for (const [name, condition] of CONDITIONS) {
    const value = filters[name];
    if (value === null) continue;
    sql += ` AND ${condition}`;
    values[name] = boundOf(value);
  }
  const { source_id } = filters;
  if (source_id !== null) {
    values.source_hash = hashOfSource(source_id);
    values.source_id = `"source":{"id":${JSON.stringify(source_id)},`;
  }
  return { sql, values };
}

function boundOf(value: SqlValue | boolean | readonly SqlValue[]): SqlValue {
  if (typeof value === 'boolean') return value ? 1 : 0;
  return typeof value === 'object' ? JSON.stringify(value) : value;
}

/** Those that both lists of detections take. */
export const LIST_PARAMETERS = { ...STREAM_PARAMETERS, ...FILTER_PARAMETERS, ...VIEW_PARAMETERS };

export const LIMIT = {
  ...defaulted(integer(1, PAGE_ROWS_MAX), PAGE_ROWS_DEFAULT),
  description: 'Maximum number of rows in a page.',
  example: 1000,
} satisfies DocumentedParameter;
