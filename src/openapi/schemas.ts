/** The named schemas of the document: all response bodies. */
import { type TProperties, type TSchema, Type } from '@sinclair/typebox';
import { CONTENT_TYPES } from '../detection/content-type.ts';
import { CHANGES } from '../http/endpoints/changes.ts';
import { HEALTH } from '../http/endpoints/health.ts';
import { ME } from '../http/endpoints/me.ts';
import { PERIOD } from '../http/endpoints/period.ts';
import { SCHEMA } from '../http/endpoints/schema.ts';
import { TOKEN } from '../http/endpoints/token.ts';
import { ERROR_SCHEMAS } from '../http/problem.ts';
import { componentId, pascalCase, ref } from '../http/vocabulary.ts';
import { detectionParts, detectionSchema } from './detection-schema.ts';

const CURSOR_PATTERN = '^[A-Za-z0-9_-]+$';

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
  ...CHANGES.schemas,
  ...PERIOD.schemas,
  ...ME.schemas,
  ...SCHEMA.schemas,
  ...TOKEN.schemas,
  ...HEALTH.schemas,
  ...ERROR_SCHEMAS,
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

function named(schemas: TProperties): TProperties {
  return Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => [name, { ...schema, $id: componentId(name) }]),
  );
}
