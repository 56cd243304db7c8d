/** The OpenAPI 3.1 document, made from the endpoints and schemas. https://spec.openapis.org/oas/v3.1.1 */
import type { Scope } from '../auth/scopes.ts';
import { isObject } from '../is-object.ts';
import { PROBLEMS } from '../problem-titles.ts';
import { OPERATIONS, UNROUTED } from './operations.ts';
import { SCHEMAS } from './schemas.ts';

type Json = Readonly<Record<string, unknown>>;

/** Without 408 and 431, which use the code of the closest error. */
const ERROR_ROWS = Object.entries(PROBLEMS).map(
  ([code, { status, title, action }]) => `| \`${code}\` | ${status} | ${title} | ${action} |`,
);

const DESCRIPTION = `Reports where a news agency's stories and photos were found.

All times are ISO 8601 in UTC with a trailing \`Z\`. A field that the content type does not have is absent; an unknown value is null. Every response carries \`X-Request-Id\` and \`Cache-Control\`. A trailing slash never matches a path. Clients must ignore unknown members: later versions may add some.

An unknown path returns 404, and a wrong method returns 405 with \`Allow\`, both as problem documents (\`x-unrouted\`).

Errors are problem documents (RFC 9457), except OAuth 2.0 errors at the token endpoint. The last path segment of \`type\` is the error code: test that, not \`title\` or \`detail\`.

| Code | Status | Title | What to do |
|---|---|---|---|
${ERROR_ROWS.join('\n')}`;

const TAGS = [
  { name: 'Detections', description: 'Read detections by period, by id, or as a stream of changes.' },
  { name: 'Account', description: 'Details of the credential, and what it can read.' },
  { name: 'Service', description: 'Access tokens, health and photos.' },
];

/** @param url the address of the service; default: an example */
export function openApiDocument(url?: string): Json {
  return shortened({
    openapi: '3.1.1',
    info: {
      title: 'Detection Reporting API',
      version: 'v1',
      summary: "Where a news agency's stories and photos were found.",
      description: DESCRIPTION,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [
      url === undefined
        ? {
            url: 'http://127.0.0.1:8080',
            description:
              'Wirewatch on this machine. Elsewhere, use the address in the setting server.base_url.',
          }
        : { url },
    ],
    tags: TAGS,
    paths: paths(),
    components: { schemas: SCHEMAS, securitySchemes: securitySchemes(url) },
    'x-unrouted': UNROUTED,
  });
}

function paths(): Json {
  const byPath: Record<string, Json> = {};
  for (const { path, method, ...printed } of OPERATIONS)
    byPath[path] = { ...byPath[path], [method]: printed };
  return byPath;
}

function securitySchemes(url = ''): Json {
  const scopes: Readonly<Record<Scope, string>> = {
    'detections:read': 'Read detections.',
    'reports:read': 'Reserved for a later version.',
    'exports:create': 'Reserved for a later version.',
  };
  return {
    bearer: {
      type: 'http',
      scheme: 'bearer',
      description: 'An API key or access token: `Authorization: Bearer <API_KEY or ACCESS_TOKEN>`.',
    },
    token: {
      type: 'oauth2',
      description: 'Exchange the key id and secret for an access token, which lasts one hour.',
      flows: { clientCredentials: { tokenUrl: `${url}/oauth/token`, scopes } },
    },
    client: {
      type: 'http',
      scheme: 'basic',
      description:
        'The key id is the user name and the secret is the password. You can send both in the body instead.',
    },
  };
}

/**
 * The document without what only the tests need of its schemas (`$id`, closed objects), and with the short forms of JSON
 * Schema: `enum` for a choice of words, a list of types for a nullable value.
 */
function shortened(document: Json): Json {
  return JSON.parse(JSON.stringify(document), (name, value) => {
    if (name === '$id' || name === 'additionalProperties') return undefined;
    if (!isObject(value) || !Array.isArray(value.anyOf)) return value;
    const { anyOf, ...shown } = value;
    return { ...shown, ...shortChoice(anyOf) };
  });
}

function shortChoice(choices: Json[]): Json {
  const words = choices.map((choice) => choice.const);
  if (words.every((word) => typeof word === 'string')) return { type: 'string', enum: words };
  const [only, ...more] = choices.filter(({ type }) => type !== 'null');
  if (only !== undefined && more.length === 0 && typeof only.type === 'string' && only.const === undefined) {
    const { type, enum: values, ...rest } = only;
    return { ...rest, type: [type, 'null'], ...(Array.isArray(values) ? { enum: [...values, null] } : {}) };
  }
  return { anyOf: choices };
}
