/**
 * The basic schemas from which those of all bodies are made. Objects are closed: the tests check every response that way.
 * The printed document opens them, because a later version may add members.
 */
import { type TObject, type TProperties, type TSchema, Type } from '@sinclair/typebox';
import { CONTENT_TYPES, NUMBER_MAX } from '../detection/content-type.ts';

const COMPONENTS = '#/components/schemas/';

const TIMESTAMP_PATTERN = '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}Z$';
export const EXAMPLE_TIME = '2026-11-21T10:10:00Z';

/** The address of a named schema in the document, which is also its `$id`. */
export function componentId(name: string): string {
  return `${COMPONENTS}${name}`;
}

export function ref(name: string): TSchema {
  return Type.Ref(componentId(name));
}

export function closed(properties: TProperties, description?: string): TObject {
  return Type.Object(properties, {
    additionalProperties: false,
    ...(description === undefined ? {} : { description }),
  });
}

export function nullable(schema: TSchema, description?: string): TSchema {
  return Type.Union([schema, Type.Null()], description === undefined ? {} : { description });
}

export function described(schema: TSchema, description: string): TSchema {
  return { ...schema, description };
}

export function words(values: readonly string[]): TSchema {
  const [first, ...more] = values.map((value) => Type.Literal(value));
  if (first === undefined) throw new Error('a choice of nothing');
  return more.length === 0 ? first : Type.Union([first, ...more]);
}

export const TIMESTAMP = Type.String({ format: 'date-time', pattern: TIMESTAMP_PATTERN });
export const URI = Type.String({ format: 'uri' });
export const COUNT = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
/** The id of a subscription, publisher or article. */
export const NUMBERED_ID = Type.Integer({ minimum: 0, maximum: NUMBER_MAX });
export const CONTENT_TYPE = words(CONTENT_TYPES);
export const AS_OF = nullable(
  TIMESTAMP,
  'End of the newest finished export window; the earliest across the content types read. Data up to this time has been read, except windows listed in data_gaps (GET /v1/me) and late windows. Null while an export has no finished window.',
);

/** The names of components: `RateLimited` for `rate_limited`, `IfNoneMatch` for `If-None-Match`. */
export function pascalCase(name: string): string {
  return name.replace(/(?:^|[_-])(\w)/g, (_, first: string) => first.toUpperCase());
}
