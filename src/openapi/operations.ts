/** The endpoints: parameters and responses (contract: Endpoints). */
import { type TSchema, Type } from '@sinclair/typebox';
import type { Scope } from '../auth/scopes.ts';
import { TOKEN_BODY_BYTES_MAX } from '../limits/contract-limits.ts';
import {
  CHANGES_EXAMPLES,
  DEGRADED_EXAMPLES,
  DETECTION_EXAMPLES,
  HEALTH_EXAMPLES,
  ME_EXAMPLES,
  PERIOD_EXAMPLES,
  SCHEMA_EXAMPLES,
  TOKEN_EXAMPLES,
} from './examples.ts';
import {
  CHANGES_PARAMETERS,
  DETECTION_PARAMETERS,
  type Parameter,
  PERIOD_PARAMETERS,
  PHOTO_PARAMETERS,
  SCHEMA_PARAMETERS,
} from './parameters.ts';
import {
  HEAD_TOO_LARGE,
  header,
  keyedProblems,
  NEXT_LINK,
  openProblems,
  optional,
  problem,
  RETRY_AFTER,
  type Response,
  success,
  text,
} from './responses.ts';
import { closed, words } from './vocabulary.ts';

/** What a request needs: a credential with this scope or with any, the client's credentials, or nothing. */
export type Access = Scope | 'any scope' | 'client credentials' | 'none';

export interface Operation {
  readonly path: string;
  readonly method: 'get' | 'head' | 'post';
  readonly id: string;
  readonly tag: 'Detections' | 'Account' | 'Service';
  readonly summary: string;
  readonly description: string;
  readonly access: Access;
  readonly parameters: readonly Parameter[];
  readonly body?: { readonly contentType: string; readonly schema: TSchema; readonly example: unknown };
  /** By status. */
  readonly responses: Readonly<Record<string, Response>>;
}

const WAITED = {
  'Preference-Applied': optional(text('^wait=\\d+$'), 'The request has waited, at most this many seconds.'),
};
const ETAG = { ETag: header(text('^"[^"]+"$'), 'Identifies this version of the content.') };
const VALIDATORS = { ...ETAG, 'Last-Modified': header(text(' GMT$'), 'When the file was last changed.') };
const PHOTO_CACHE = 'public, max-age=31536000, immutable';
const IMAGE_TYPES = ['image/jpeg', 'image/png', 'image/webp', 'image/gif', 'image/tiff'];

const CHANGES: Operation = {
  path: '/v1/detections/changes',
  method: 'get',
  id: 'listChanges',
  tag: 'Detections',
  summary: 'Read the change stream',
  description:
    'Returns every new or changed detection in arrival order. Start with `since`. Store `next_cursor` together with the rows, and pass it as `cursor` from then on. While `has_more` is true, call again at once. Delivery is at least once: upsert by `id` and keep the higher `version`.',
  access: 'detections:read',
  parameters: CHANGES_PARAMETERS,
  responses: {
    200: success({
      description: 'A page of the stream. It can be empty.',
      schema: 'ChangesPage',
      headers: { ...NEXT_LINK, ...WAITED },
      examples: CHANGES_EXAMPLES,
    }),
    ...keyedProblems(['rate_limited', 'daily_allowance']),
  },
};

const PERIOD: Operation = {
  path: '/v1/detections',
  method: 'get',
  id: 'listDetections',
  tag: 'Detections',
  summary: 'List detections by period',
  description:
    'Returns the current state of every detection whose `first_detected_at` is in the period. Follow `next_cursor` until `has_more` is false. The period, time zone, sort, subscriptions and filters must stay the same from page to page.',
  access: 'detections:read',
  parameters: PERIOD_PARAMETERS,
  responses: {
    200: success({
      description: 'A page of the period. It can be empty.',
      schema: 'RangePage',
      headers: NEXT_LINK,
      examples: PERIOD_EXAMPLES,
    }),
    ...keyedProblems(['rate_limited', 'daily_allowance']),
  },
};

const DETECTION: Operation = {
  path: '/v1/detections/{id}',
  method: 'get',
  id: 'getDetection',
  tag: 'Detections',
  summary: 'Retrieve a detection',
  description:
    'Returns the latest version. A detection that the key cannot read returns 404, as if it did not exist.',
  access: 'detections:read',
  parameters: DETECTION_PARAMETERS,
  responses: {
    200: success({
      description: 'The detection.',
      schema: 'Detection',
      examples: DETECTION_EXAMPLES,
    }),
    ...keyedProblems(['rate_limited', 'daily_allowance']),
    404: problem(['not_found'], 'always'),
  },
};

const ME: Operation = {
  path: '/v1/me',
  method: 'get',
  id: 'getMe',
  tag: 'Account',
  summary: 'Retrieve account, key, subscriptions, gaps and limits',
  description:
    'Works even when the daily row allowance is used up. Responses can be cached for up to a minute.',
  access: 'any scope',
  parameters: [],
  responses: {
    200: success({
      description: 'Details of the credential, and what it can read.',
      cacheControl: 'private, max-age=60',
      schema: 'Me',
      examples: ME_EXAMPLES,
      headers: {
        Vary: header(
          text('\\bAuthorization\\b'),
          'Caches must store a separate response for each credential.',
        ),
      },
    }),
    ...keyedProblems(['rate_limited']),
  },
};

const SCHEMA: Operation = {
  path: '/v1/schema/detection',
  method: 'get',
  id: 'getDetectionSchema',
  tag: 'Detections',
  summary: 'Retrieve the schema of a detection',
  description: 'Returns one entry for each field, in the order of a detection.',
  access: 'any scope',
  parameters: SCHEMA_PARAMETERS,
  responses: {
    200: success({
      description: 'The fields.',
      cacheControl: 'no-cache',
      schema: 'Schema',
      examples: SCHEMA_EXAMPLES,
      headers: ETAG,
    }),
    304: success({
      name: 'NotModified',
      description: 'Not modified: the client has the current version.',
      cacheControl: 'no-cache',
      headers: ETAG,
    }),
    ...keyedProblems(['rate_limited']),
  },
};

const TOKEN: Operation = {
  path: '/oauth/token',
  method: 'post',
  id: 'createToken',
  tag: 'Service',
  summary: 'Request an access token',
  description:
    'OAuth 2.0 client credentials grant (RFC 6749, section 4.4). The client id is the key id. The client secret is the secret of the key, or the complete key. Send both in the body or with HTTP Basic.',
  access: 'client credentials',
  parameters: [],
  body: {
    contentType: 'application/x-www-form-urlencoded',
    schema: closed(
      {
        grant_type: words(['client_credentials']),
        client_id: Type.Optional(
          Type.String({
            pattern: '^[a-z2-7]{12}$',
            description: 'The key id. Omit it when you use HTTP Basic.',
          }),
        ),
        client_secret: Type.Optional(
          Type.String({
            description: "The key's secret, or the complete key. Omit it when you use HTTP Basic.",
          }),
        ),
        scope: Type.Optional(
          Type.String({ description: "Space-separated subset of the key's scopes. Default: all of them." }),
        ),
      },
      `At most ${TOKEN_BODY_BYTES_MAX} bytes. No parameter may be repeated.`,
    ),
    example: { grant_type: 'client_credentials', scope: 'detections:read' },
  },
  responses: tokenResponses(),
};

const HEALTH: Operation = {
  path: '/v1/health',
  method: 'get',
  id: 'getHealth',
  tag: 'Service',
  summary: 'Check health',
  description: 'No authentication and no rate limit.',
  access: 'none',
  parameters: [],
  responses: {
    200: success({
      description: 'Healthy.',
      rate: 'never',
      schema: 'Health',
      examples: HEALTH_EXAMPLES,
    }),
    ...openProblems(),
    503: success({
      description:
        'Degraded: an urgent alert (one that needs somebody now) is open, or an export has stalled.',
      rate: 'never',
      schema: 'Health',
      examples: DEGRADED_EXAMPLES,
    }),
  },
};

const PHOTO: Operation = {
  path: '/photos/{internal_id}',
  method: 'get',
  id: 'getPhoto',
  tag: 'Detections',
  summary: 'Retrieve a photo',
  description:
    'Returns the photo of the agency, at the signed address that a detection carries in `source.image_url`. The signature never expires.',
  access: 'none',
  parameters: PHOTO_PARAMETERS,
  responses: photoResponses(),
};

export const OPERATIONS: readonly Operation[] = [
  CHANGES,
  PERIOD,
  DETECTION,
  SCHEMA,
  headOf(SCHEMA, 'headDetectionSchema'),
  PHOTO,
  ME,
  TOKEN,
  HEALTH,
  headOf(HEALTH, 'headHealth'),
];

/** HEAD: the same statuses and headers, without a body. */
function headOf(operation: Operation, id: string): Operation {
  const responses = Object.entries(operation.responses).map(([status, { name, description, headers }]) => [
    status,
    { name: name === '' ? '' : `Head${name}`, description, headers },
  ]);
  return { ...operation, method: 'head', id, responses: Object.fromEntries(responses) };
}

function tokenResponses(): Record<string, Response> {
  const noCache = { Pragma: header(Type.Literal('no-cache'), 'For HTTP/1.0 caches.') };
  const challenge = {
    'WWW-Authenticate': optional(
      Type.Literal('Basic realm="svc-data"'),
      'Present when the client used HTTP Basic.',
    ),
  };
  const refused = (errors: Readonly<Record<string, string>>, headers = {}): Response =>
    success({
      description: Object.keys(errors).join('; '),
      rate: 'never',
      schema: 'OAuthError',
      examples: Object.fromEntries(
        Object.entries(errors).map(([error, error_description]) => [error, { error, error_description }]),
      ),
      headers: { ...noCache, ...headers },
    });
  return {
    200: success({
      description: 'The token.',
      rate: 'never',
      schema: 'Token',
      examples: TOKEN_EXAMPLES,
      headers: noCache,
    }),
    400: refused({
      invalid_request: 'scope must not be repeated.',
      unsupported_grant_type: 'grant_type: must be client_credentials',
      invalid_scope:
        'scope: must be a space-separated subset of the scopes of the key. The key has: detections:read',
    }),
    401: refused(
      {
        invalid_client:
          'The client credentials are not valid: the id or secret is wrong, or the key is expired or revoked.',
      },
      challenge,
    ),
    408: refused({ invalid_request: 'The request body was not received in time.' }),
    413: problem(['content_too_large'], 'never', noCache),
    431: { ...HEAD_TOO_LARGE, headers: { ...HEAD_TOO_LARGE.headers, ...noCache } },
    429: problem(['rate_limited'], 'never', { ...noCache, ...RETRY_AFTER }),
    500: problem(['internal'], 'never', noCache),
    503: problem(['unavailable'], 'never', noCache),
  };
}

function photoResponses(): Record<string, Response> {
  const headers = {
    ...VALIDATORS,
    'Accept-Ranges': header(Type.Literal('bytes'), 'Range requests are supported.'),
    'X-Content-Type-Options': header(Type.Literal('nosniff'), 'Clients must not guess another content type.'),
  };
  const bytes = { schema: Type.String({ contentMediaType: 'image/*' }), examples: {} };
  const content = Object.fromEntries(IMAGE_TYPES.map((type) => [type, bytes]));
  const photo = (description: string, more = {}): Response => ({
    ...success({
      description,
      cacheControl: PHOTO_CACHE,
      rate: 'never',
      headers: { ...headers, ...more },
    }),
    content,
  });
  const contentRange = header(
    text('^bytes \\d+-\\d+/\\d+$'),
    'The part returned, and the size of the photo in bytes.',
  );
  return {
    200: photo('The photo.'),
    206: photo('The requested part of the photo.', { 'Content-Range': contentRange }),
    304: success({
      description: 'Not modified: the client has the current version.',
      cacheControl: PHOTO_CACHE,
      rate: 'never',
      headers: VALIDATORS,
    }),
    ...openProblems(),
    404: problem(['not_found'], 'never'),
  };
}
