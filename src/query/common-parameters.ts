/** The parameters that the list endpoints share (contract: Common detection filters). */
import { BANDS, isBand } from '../detection/band.ts';
import { type ContentType, isContentType, NUMBER_MAX } from '../detection/content-type.ts';
import {
  DOMAINS_MAX,
  PAGE_ROWS_DEFAULT,
  PAGE_ROWS_MAX,
  PUBLISHERS_MAX,
  SOURCE_ID_CHARACTERS_MAX,
  SUBSCRIPTIONS_MAX,
} from '../limits/contract-limits.ts';
import { parseDomain } from './domain.ts';
import type { DetectionFilters } from './filters.ts';
import {
  invalid,
  type Parameters,
  type ParameterTable,
  readInteger,
  readIntegers,
  readList,
  readText,
} from './parameters.ts';
import { type Projection, parseFields } from './projection.ts';

/** Parameters of every detection endpoint. */
export const VIEW_PARAMETERS = {
  fields: 'single',
  schema_version: 'single',
} as const satisfies ParameterTable;

/** Parameters of both list endpoints. */
export const LIST_PARAMETERS = {
  subscription_id: 'list',
  content_type: 'single',
  publisher_id: 'list',
  exclude_publisher_id: 'list',
  domain: 'list',
  exclude_domain: 'list',
  min_band: 'single',
  band: 'list',
  min_score: 'single',
  print: 'single',
  source_id: 'single',
  article_id: 'single',
  limit: 'single',
  ...VIEW_PARAMETERS,
} as const satisfies ParameterTable;

export const SCHEMA_VERSION = 'v1';

/** Which streams are asked for; null where all are. */
export interface StreamSelection {
  readonly subscription_ids: readonly number[] | null;
  readonly content_type: ContentType | null;
}

const NUMBERS = { min: 1, max: NUMBER_MAX };

/** @throws Refused `invalid_request`; so do all below */
export function readSelection(parameters: Parameters): StreamSelection {
  const contentType = readText(parameters, 'content_type');
  if (contentType !== null && !isContentType(contentType))
    throw invalid('content_type: must be text or image');
  return {
    subscription_ids: readIntegers(parameters, 'subscription_id', {
      ...NUMBERS,
      countMax: SUBSCRIPTIONS_MAX,
    }),
    content_type: contentType,
  };
}

export function readFilters(parameters: Parameters): DetectionFilters {
  const publishers = { ...NUMBERS, countMax: PUBLISHERS_MAX };
  const minBand = readText(parameters, 'min_band');
  return {
    publisher_id: readIntegers(parameters, 'publisher_id', publishers),
    exclude_publisher_id: readIntegers(parameters, 'exclude_publisher_id', publishers),
    domain: readDomains(parameters, 'domain'),
    exclude_domain: readDomains(parameters, 'exclude_domain'),
    min_band: minBand === null ? null : bandStepOf('min_band', minBand),
    band: readList(parameters, 'band', BANDS.length, (text) => bandStepOf('band', text)),
    min_score: readInteger(parameters, 'min_score', 0, 100),
    print: readBoolean(parameters, 'print'),
    source_id: readSourceId(parameters),
    article_id: readInteger(parameters, 'article_id', NUMBERS.min, NUMBERS.max),
  };
}

/** `limit`: rows of a page. */
export function readLimit(parameters: Parameters): number {
  return readInteger(parameters, 'limit', 1, PAGE_ROWS_MAX) ?? PAGE_ROWS_DEFAULT;
}

/** `fields` and `schema_version`; null when every field is wanted. */
export function readView(parameters: Parameters): Projection | null {
  const version = readText(parameters, 'schema_version');
  if (version !== null && version !== SCHEMA_VERSION)
    throw invalid(`schema_version: must be ${SCHEMA_VERSION}`);
  const fields = readText(parameters, 'fields');
  return fields === null ? null : parseFields(fields);
}

function readDomains(parameters: Parameters, name: string): string[] | null {
  return readList(parameters, name, DOMAINS_MAX, (text) => {
    const domain = parseDomain(text);
    if (domain === null) {
      throw invalid(
        `${name}: must be a domain such as example.com, without a path, port, query, fragment or user name`,
      );
    }
    return domain;
  });
}

function bandStepOf(name: string, text: string): number {
  if (!isBand(text)) throw invalid(`${name}: must be ${BANDS.slice(0, -1).join(', ')} or ${BANDS.at(-1)}`);
  return BANDS.indexOf(text);
}

function readBoolean(parameters: Parameters, name: string): boolean | null {
  const text = readText(parameters, name);
  if (text !== null && text !== 'true' && text !== 'false') throw invalid(`${name}: must be true or false`);
  return text === null ? null : text === 'true';
}

function readSourceId(parameters: Parameters): string | null {
  const text = readText(parameters, 'source_id');
  if (text !== null && [...text].length > SOURCE_ID_CHARACTERS_MAX) {
    throw invalid(`source_id: must not exceed ${SOURCE_ID_CHARACTERS_MAX} characters`);
  }
  return text;
}
