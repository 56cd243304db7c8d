/** GET and HEAD /v1/schema/detection: the fields of a detection, for machines. */
import { hash } from 'node:crypto';
import { Type } from '@sinclair/typebox';
import { FIELD_TYPES, FIELDS, schemaFields } from '../../detection/fields.ts';
import { SCHEMA_PARAMETERS, SCHEMA_VERSION } from '../../query/filters.ts';
import { readParameters } from '../../query/parameters.ts';
import { CONTENT_TYPE, closed, ref, words } from '../description.ts';
import { ETAG, IF_NONE_MATCH, NOT_MODIFIED, namesEntityTag } from '../entity-tag.ts';
import type { KeyedRoute } from '../routes.ts';

/** Cached, but revalidated each time: a field that an update adds is seen at once. */
const CACHE_CONTROL = 'no-cache';

const DOCUMENT = JSON.stringify({ schema_version: SCHEMA_VERSION, fields: schemaFields() });
const ENTITY_TAG = `"${hash('sha256', DOCUMENT, 'base64url').slice(0, 22)}"`;

export const SCHEMA: KeyedRoute = {
  path: '/v1/schema/detection',
  method: 'GET',
  head: 'headDetectionSchema',
  id: 'getDetectionSchema',
  tag: 'Detections',
  summary: 'Retrieve the schema of a detection',
  description: 'Returns one entry for each field, in the order of a detection.',
  access: 'key',
  scope: null,
  query: SCHEMA_PARAMETERS,
  requestHeaders: IF_NONE_MATCH,
  responses: {
    200: { description: 'The fields.', cacheControl: CACHE_CONTROL, schema: 'Schema', headers: ETAG },
    304: { description: NOT_MODIFIED, cacheControl: CACHE_CONTROL, headers: ETAG },
  },
  schemas: {
    Schema: closed({
      schema_version: words([SCHEMA_VERSION]),
      fields: Type.Array(ref('SchemaField'), { description: 'In the order of the fields of a detection.' }),
    }),
    SchemaField: closed({
      path: words(FIELDS.map(({ path }) => path)),
      column: Type.String({
        pattern: '^[a-z_]+$',
        description: 'Flat column name for files: dots become underscores.',
      }),
      position: Type.Integer({ minimum: 1, maximum: FIELDS.length }),
      type: words(FIELD_TYPES),
      nullable: Type.Boolean(),
      content_types: Type.Array(CONTENT_TYPE, { minItems: 1 }),
      description: Type.String({ minLength: 1 }),
    }),
  },
  answer(_service, { query, request }) {
    readParameters(query, SCHEMA_PARAMETERS);
    const isKnown = namesEntityTag(request.headers['if-none-match'], ENTITY_TAG);
    const headers = ['ETag', ENTITY_TAG];
    return isKnown ? { status: 304, body: '', headers } : { status: 200, body: DOCUMENT, headers };
  },
};
