/** The parameters of the endpoints, with their limits (contract: Endpoints, Common detection filters, Limits). */
import { type TSchema, Type } from '@sinclair/typebox';
import { DETECTION_ID_PATTERN } from '../detection/id.ts';
import { WAIT_SECONDS_MAX } from '../limits/contract-limits.ts';
import { CHANGES_PARAMETERS as CHANGES } from '../query/changes-parameters.ts';
import {
  FILTER_PARAMETERS,
  SCHEMA_PARAMETERS as SCHEMA,
  STREAM_PARAMETERS,
  VIEW_PARAMETERS,
} from '../query/common-parameters.ts';
import type { DocumentedParameter } from '../query/parameters.ts';
import { PERIOD_PARAMETERS as PERIOD } from '../query/period-parameters.ts';
import { NUMBERED_ID, pascalCase, ref } from './vocabulary.ts';

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

/** Their components end in `Filter`: of generators, a schema and a parameter each make a type. */
const FILTERS = { ...STREAM_PARAMETERS, ...FILTER_PARAMETERS };

const IF_NONE_MATCH = header('If-None-Match', 'An ETag, a list of them, or `*`.', '"3q2-7wAAAAAAAAAAAAAAAA"');

const PREFER = header(
  'Prefer',
  `How long to wait for the next change where the page would be empty (RFC 7240), in seconds, at most ${WAIT_SECONDS_MAX}.`,
  'wait=30',
);
const IF_MODIFIED_SINCE = header(
  'If-Modified-Since',
  'A Last-Modified; ignored beside If-None-Match.',
  'Sat, 21 Nov 2026 10:10:00 GMT',
);

export const CHANGES_PARAMETERS = [...inQuery(CHANGES), PREFER];
export const PERIOD_PARAMETERS = inQuery(PERIOD);
export const DETECTION_PARAMETERS: readonly Parameter[] = [
  inPath('id', 'Id of the detection.', Type.String({ pattern: DETECTION_ID_PATTERN }), 't.7001.123.456'),
  ...inQuery(VIEW_PARAMETERS),
];
export const SCHEMA_PARAMETERS: readonly Parameter[] = [...inQuery(SCHEMA), IF_NONE_MATCH];
export const PHOTO_PARAMETERS: readonly Parameter[] = [
  inPath('internal_id', '`source.internal_id` of the photo.', NUMBERED_ID, 123),
  {
    component: 'Signature',
    name: 'signature',
    in: 'query',
    required: true,
    description: 'Copied from `source.image_url`.',
    schema: Type.String({ minLength: 1 }),
    example: 'Zm9vYmFyYmF6cXV4MTIzNA',
  },
  IF_NONE_MATCH,
  IF_MODIFIED_SINCE,
  header('Range', 'A single byte range.', 'bytes=0-1023'),
  header('If-Range', 'ETag of the photo that the client already has part of.', '"1f-1879a5b1c2d3e4f5"'),
];

function inQuery(table: Readonly<Record<string, DocumentedParameter>>): Parameter[] {
  return Object.entries(table).map(([name, { required, description, schema, example }]) => ({
    component: `${pascalCase(name)}${Object.hasOwn(FILTERS, name) ? 'Filter' : ''}`,
    name,
    in: 'query',
    required: required !== undefined,
    description,
    schema: withAddress(schema),
    example,
  }));
}

/** A component that a schema names, by its address in the document. */
function withAddress(schema: TSchema): TSchema {
  if (typeof schema.$ref === 'string') return ref(schema.$ref);
  return schema.type === 'array' ? { ...schema, items: withAddress(schema.items) } : schema;
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
