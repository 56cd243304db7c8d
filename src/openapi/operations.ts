/** The operations of the document, made from the descriptions of the endpoints, with their responses. */
import { type TSchema, Type } from '@sinclair/typebox';
import {
  type Endpoint,
  type Header,
  type Headers,
  header,
  mapped,
  optional,
  ref,
  type Success,
  text,
} from '../http/description.ts';
import { ENDPOINTS } from '../http/endpoints/all.ts';
import { type Problem, problemAnswer } from '../http/problem.ts';
import { PROBLEM_CONTENT_TYPE, PROBLEMS, type ProblemCode } from '../problem-titles.ts';

export interface Response {
  readonly description: string;
  readonly headers: Headers;
  /** Absent: no body. */
  readonly content?: Readonly<
    Record<string, { schema: TSchema; examples?: Readonly<Record<string, { value: unknown }>> }>
  >;
}

const REQUEST_ID = '5f3a9c1e-7b2d-4e8f-9a60-1c2d3e4f5a6b';
const EXAMPLE_URL = 'https://api.example';

/** When the rate-limit headers are sent. */
type RateHeaders = 'always' | 'once verified' | 'never';

const RATE: Readonly<Record<string, Omit<Header, 'required'>>> = {
  'RateLimit-Limit': { description: 'Requests per minute and key.', schema: text('^\\d+$') },
  'RateLimit-Policy': {
    description: 'Number of requests, and the window in seconds: `120;w=60`.',
    schema: text('^\\d+;w=60$'),
  },
  'RateLimit-Remaining': { description: 'Requests left in the current window.', schema: text('^\\d+$') },
  'RateLimit-Reset': { description: 'Seconds until the limit resets.', schema: text('^\\d+$') },
};

const rateHeaders = (rate: RateHeaders): Headers =>
  rate === 'never' ? {} : mapped(RATE, (kind) => ({ required: rate === 'always', ...kind }));

const commonHeaders = (cacheControl: string): Headers => ({
  'X-Request-Id': header(
    Type.String({ format: 'uuid' }),
    'Identifies the request. Quote it when you report a problem.',
  ),
  'Cache-Control': header(Type.Literal(cacheControl), 'Whether and how long the response may be cached.'),
  Vary: optional(text(), 'Request headers that the response depends on: `Accept-Encoding`, `Origin`.'),
});

/** Responses over 1 KiB and without an entity tag are compressed if the client accepts it (http/encoding.ts). */
const COMPRESSED: Headers = {
  'Content-Encoding': optional(
    Type.Union([Type.Literal('gzip'), Type.Literal('zstd')]),
    'How the response is compressed.',
  ),
};

const RETRY_AFTER = header(text('^[1-9]\\d*$'), 'Seconds to wait before the next attempt.');

/** The responses for an unknown path, and for a method that a path does not support. */
export const UNROUTED: Readonly<Record<string, Response>> = {
  404: problem(['not_found'], 'never'),
  405: problem(['method_not_allowed'], 'never', {
    Allow: header(text('^[A-Z]+(, [A-Z]+)*$'), 'Methods that the path supports.'),
    Pragma: optional(Type.Literal('no-cache'), 'Sent by /oauth/token.'),
  }),
};

function responsesOf(endpoint: Endpoint): Record<string, Response> {
  const { access, responses, problems = [], headers = {} } = endpoint;
  const rate = access === 'key' ? 'always' : 'never';
  return {
    ...commonProblems(endpoint),
    ...Object.fromEntries([
      ...Object.entries(responses).map(([status, response]) => [status, success(response, rate, headers)]),
      ...problems.map((code) => [
        PROBLEMS[code].status,
        problem([code], rate, { ...headers, ...(code === 'rate_limited' && { 'Retry-After': RETRY_AFTER }) }),
      ]),
    ]),
  };
}

/** The problems of every endpoint with the same kind of access. */
function commonProblems(endpoint: Endpoint): Record<string, Response> {
  const detail = 'The request line and headers are too large.';
  // Over 32 KiB, with the code of a 400.
  const tooLarge = {
    431: {
      ...problem(['invalid_request'], 'never', endpoint.headers, { status: 431, detail }),
      description: 'Request line and headers too large',
    },
  };
  if (endpoint.access !== 'key')
    return endpoint.access === 'client'
      ? tooLarge
      : { 400: problem(['invalid_request'], 'never'), 500: problem(['internal'], 'never'), ...tooLarge };
  const limits: ProblemCode[] =
    endpoint.scope === null ? ['rate_limited'] : ['rate_limited', 'daily_allowance'];
  return {
    400: problem(['invalid_request'], 'once verified'),
    401: problem(['unauthorized'], 'never', {
      'WWW-Authenticate': header(Type.Literal('Bearer'), 'The authentication scheme to use.'),
    }),
    403: problem(['forbidden'], 'once verified'),
    429: problem(limits, 'once verified', { 'Retry-After': RETRY_AFTER }),
    500: problem(['internal'], 'once verified', { 'Retry-After': { ...RETRY_AFTER, required: false } }),
    503: problem(['unavailable'], 'once verified'),
    ...tooLarge,
  };
}

/** @param common headers of all answers of the endpoint */
function success(answer: Success, rate: RateHeaders, common: Headers): Response {
  const { description, cacheControl = 'no-store', schema, examples = {}, files = [], headers = {} } = answer;
  const bytes = { schema: Type.String({ contentMediaType: 'image/*' }) };
  const content =
    schema === undefined
      ? Object.fromEntries(files.map((type) => [type, bytes]))
      : { 'application/json': { schema: ref(schema), examples: mapped(examples, (value) => ({ value })) } };
  const hasBody = Object.keys(content).length > 0;
  return {
    description,
    headers: {
      ...commonHeaders(cacheControl),
      ...rateHeaders(rate),
      ...(schema === undefined || 'ETag' in headers ? {} : COMPRESSED),
      ...common,
      ...headers,
    },
    ...(hasBody && { content }),
  };
}

/** @param codes of one status; @param headers besides those of every problem; @param own what the example changes */
function problem(codes: ProblemCode[], rate: RateHeaders, headers: Headers = {}, own: Partial<Problem> = {}) {
  const example = (code: ProblemCode) =>
    JSON.parse(problemAnswer({ code, detail: PROBLEMS[code].example, ...own }, REQUEST_ID, EXAMPLE_URL).body);
  const examples = Object.fromEntries(codes.map((code) => [code, { value: example(code) }]));
  return {
    description: codes.map((code) => PROBLEMS[code].title).join('; '),
    headers: { ...commonHeaders('no-store'), ...rateHeaders(rate), ...headers },
    content: { [PROBLEM_CONTENT_TYPE]: { schema: ref('Problem'), examples } },
  };
}

/** As the document prints it, with its path and method. */
export type Operation = ReturnType<typeof operationOf>;

export const OPERATIONS: readonly Operation[] = ENDPOINTS.flatMap((endpoint) => {
  const operation = operationOf(endpoint);
  return endpoint.head === undefined ? [operation] : [operation, headOf(operation, endpoint.head)];
});

function operationOf(endpoint: Endpoint) {
  const { path, method, id, tag, summary, description, body } = endpoint;
  const parameters = parametersOf(endpoint);
  return {
    path,
    method: method.toLowerCase(),
    operationId: id,
    tags: [tag],
    summary,
    description,
    security: securityOf(endpoint),
    ...(parameters.length > 0 && { parameters }),
    ...(body && {
      requestBody: {
        required: true,
        content: { [body.contentType]: { schema: body.schema, example: body.example } },
      },
    }),
    responses: responsesOf(endpoint),
  };
}

/** HEAD: the same statuses and headers, without a body. */
function headOf(operation: Operation, operationId: string): Operation {
  const responses = mapped(operation.responses, ({ description, headers }) => ({ description, headers }));
  return { ...operation, method: 'head', operationId, responses };
}

function securityOf(endpoint: Endpoint) {
  if (endpoint.access !== 'key') return endpoint.access === 'open' ? [] : [{ client: [] }, {}];
  return [{ bearer: [] }, { token: endpoint.scope === null ? [] : [endpoint.scope] }];
}

function parametersOf({ path, segment, query = {}, requestHeaders = {} }: Endpoint) {
  const [, inPath = ''] = /\{(\w+)\}$/.exec(path) ?? [];
  return [
    ...(segment === undefined ? [] : [parameter(inPath, 'path', true, segment)]),
    ...Object.entries(query).map(([name, own]) => parameter(name, 'query', own.required !== undefined, own)),
    ...Object.entries(requestHeaders).map(([name, described]) =>
      parameter(name, 'header', false, { ...described, schema: Type.String() }),
    ),
  ];
}

/** A list is repeated, `a=1&a=2`, or one text, `a=1,2`. No style describes both, so the schema does. */
function parameter(
  name: string,
  where: 'path' | 'query' | 'header',
  required: boolean,
  { description, schema, example }: NonNullable<Endpoint['segment']>,
) {
  const printed = { name, in: where, required, example, description, schema: withAddress(schema) };
  if (schema.type !== 'array') return printed;
  return {
    ...printed,
    description: `${description} Repeat the parameter or separate values with commas.`,
    schema: { anyOf: [printed.schema, commaList(schema.items)] },
    style: 'form',
    explode: true,
  };
}

function commaList(items: TSchema) {
  const item = items.type === 'integer' ? '[1-9][0-9]*' : '[^,]+';
  return { type: 'string', pattern: `^${item}(,${item})*$`, description: 'A comma-separated list.' };
}

/** A component that a schema names, by its address in the document. */
function withAddress(schema: TSchema): TSchema {
  if (typeof schema.$ref === 'string') return ref(schema.$ref);
  return schema.type === 'array' ? { ...schema, items: withAddress(schema.items) } : schema;
}
