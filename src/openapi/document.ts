/** The OpenAPI 3.1 document, made from the endpoints and schemas. https://spec.openapis.org/oas/v3.1.1 */
import type { TSchema } from '@sinclair/typebox';
import type { Scope } from '../auth/scopes.ts';
import { isObject } from '../is-object.ts';
import { PROBLEMS } from '../problem-titles.ts';
import { OPERATIONS, type Operation, type Parameter, UNROUTED } from './operations.ts';
import { SCHEMAS } from './schemas.ts';

type Json = Readonly<Record<string, unknown>>;

const DESCRIPTION = `Reports where a news agency's stories and photos were found.

All times are ISO 8601 in UTC with a trailing \`Z\`. A field that the content type does not have is absent; an unknown value is null. Every response carries \`X-Request-Id\` and \`Cache-Control\`. A trailing slash never matches a path. Clients must ignore unknown members: later versions may add some.

An unknown path returns 404, and a wrong method returns 405 with \`Allow\`, both as problem documents (\`x-unrouted\`).

Errors are problem documents (RFC 9457), except OAuth 2.0 errors at the token endpoint. The last path segment of \`type\` is the error code: test that, not \`title\` or \`detail\`.

${errorTable()}`;

/** Without 408 and 431, which use the code of the closest error. */
function errorTable(): string {
  const rows = Object.entries(PROBLEMS).map(
    ([code, { status, title, action }]) => `| \`${code}\` | ${status} | ${title} | ${action} |`,
  );
  return ['| Code | Status | Title | What to do |', '|---|---|---|---|', ...rows].join('\n');
}

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
  for (const operation of OPERATIONS)
    byPath[operation.path] = { ...byPath[operation.path], [operation.method]: printedOperation(operation) };
  return byPath;
}

function printedOperation(operation: Operation): Json {
  const { id, tag, summary, description, security, parameters, body, responses } = operation;
  return {
    operationId: id,
    tags: [tag],
    summary,
    description,
    security,
    ...(parameters.length > 0 && { parameters: parameters.map(printedParameter) }),
    ...(body && {
      requestBody: {
        required: true,
        content: { [body.contentType]: { schema: body.schema, example: body.example } },
      },
    }),
    responses,
  };
}

/** A list is repeated, `a=1&a=2`, or one text, `a=1,2`. No style describes both, so the schema does. */
function printedParameter({ schema, description, ...parameter }: Parameter): Json {
  if (schema.type !== 'array') return { ...parameter, description, schema };
  return {
    ...parameter,
    description: `${description} Repeat the parameter or separate values with commas.`,
    schema: { anyOf: [schema, commaList(schema.items)] },
    style: 'form',
    explode: true,
  };
}

function commaList(items: TSchema): Json {
  const item = items.type === 'integer' ? '[1-9][0-9]*' : '[^,]+';
  return { type: 'string', pattern: `^${item}(,${item})*$`, description: 'A comma-separated list.' };
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
function shortened(part: Json): Json {
  const { $id: _id, additionalProperties: _closed, anyOf, ...shown } = part;
  const short = Object.fromEntries(
    Object.entries(shown).map(([name, value]) => [name, shortenedValue(value)]),
  );
  return Array.isArray(anyOf) ? { ...short, ...shortChoice(anyOf.filter(isObject).map(shortened)) } : short;
}

function shortenedValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shortenedValue);
  return isObject(value) ? shortened(value) : value;
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
