/** GET and HEAD /v1/schema/detection: the fields of a detection, for machines. */
import { createHash } from 'node:crypto';
import { schemaFields } from '../../detection/schema.ts';
import { SCHEMA_PARAMETERS, SCHEMA_VERSION } from '../../query/common-parameters.ts';
import { readParameters } from '../../query/parameters.ts';
import { namesEntityTag } from '../entity-tag.ts';
import type { Answer, Call, KeyedRoute } from '../routes.ts';

/** Cached, but revalidated each time: a field that an update adds is seen at once. */
const CACHE_CONTROL = 'no-cache';

interface Document {
  readonly body: string;
  readonly etag: string;
}

export function schemaRoute(): KeyedRoute {
  const body = JSON.stringify({ schema_version: SCHEMA_VERSION, fields: schemaFields() });
  const document = { body, etag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"` };
  return {
    path: '/v1/schema/detection',
    method: 'GET',
    head: true,
    access: 'key',
    scope: null,
    readsDetections: false,
    answer: (call) => answerSchema(document, call),
  };
}

function answerSchema({ body, etag }: Document, { query, request }: Call): Answer {
  readParameters(query, SCHEMA_PARAMETERS);
  const known = namesEntityTag(request.headers['if-none-match'], etag);
  const headers = ['ETag', etag];
  return known
    ? { status: 304, body: '', cacheControl: CACHE_CONTROL, headers }
    : { status: 200, body, cacheControl: CACHE_CONTROL, headers };
}
