/** Responses: status, headers, body (contract: Endpoints, Errors). */
import { type TSchema, Type } from '@sinclair/typebox';
import { PROBLEM_CONTENT_TYPE, PROBLEMS, type ProblemCode } from '../error-codes.ts';
import { EXAMPLE_REQUEST_ID } from './examples.ts';
import { pascalCase, ref } from './vocabulary.ts';

export interface Header {
  readonly required: boolean;
  readonly description: string;
  readonly schema: TSchema;
}

export interface Response {
  /** The name of its component if several endpoints have it, else empty. */
  readonly name: string;
  readonly description: string;
  readonly headers: Readonly<Record<string, Header>>;
  /** Absent: no body. */
  readonly content?: Readonly<
    Record<string, { schema: TSchema; examples: Readonly<Record<string, unknown>> }>
  >;
}

/** When the rate-limit headers are sent. */
export type RateHeaders = 'always' | 'once verified' | 'never';

export type CacheControl =
  | 'no-store'
  | 'no-cache'
  | 'private, max-age=60'
  | 'public, max-age=31536000, immutable';

export interface Success {
  /** Of {@link Response}. */
  readonly name?: string;
  readonly description: string;
  /** Default: no-store. */
  readonly cacheControl?: CacheControl;
  /** Default: always. */
  readonly rate?: RateHeaders;
  /** Of the JSON body; absent: no body. */
  readonly schema?: string;
  readonly examples?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, Header>>;
}

const RATE: Readonly<Record<string, Omit<Header, 'required'>>> = {
  'RateLimit-Limit': { description: 'Requests per minute and key.', schema: text('^\\d+$') },
  'RateLimit-Policy': {
    description: 'Number of requests, and the window in seconds: `120;w=60`.',
    schema: text('^\\d+;w=60$'),
  },
  'RateLimit-Remaining': { description: 'Requests left in the current window.', schema: text('^\\d+$') },
  'RateLimit-Reset': {
    description: 'Seconds until the limit resets.',
    schema: text('^\\d+$'),
  },
};

/** Responses over 1 KiB and without an entity tag are compressed if the client accepts it (http/encoding.ts). */
const COMPRESSED: Readonly<Record<string, Header>> = {
  'Content-Encoding': optional(
    Type.Union([Type.Literal('gzip'), Type.Literal('zstd')]),
    'How the response is compressed.',
  ),
};

/** `Link`, on every page but the last. */
export const NEXT_LINK = {
  Link: optional(
    text('^<.+>; rel="next"$'),
    'The request for the next page. Left out if it is longer than 2,000 characters.',
  ),
};

export function header(schema: TSchema, description: string): Header {
  return { required: true, description, schema };
}

export function optional(schema: TSchema, description: string): Header {
  return { required: false, description, schema };
}

export function text(pattern?: string): TSchema {
  return Type.String(pattern === undefined ? { minLength: 1 } : { pattern });
}

export function success(kind: Success): Response {
  const { name = '', description, schema, examples = {}, headers = {} } = kind;
  const { cacheControl = 'no-store', rate = 'always' } = kind;
  return {
    name,
    description,
    headers: {
      ...commonHeaders(cacheControl),
      ...rateHeaders(rate),
      ...(schema === undefined || 'ETag' in headers ? {} : COMPRESSED),
      ...headers,
    },
    ...(schema === undefined ? {} : { content: { 'application/json': { schema: ref(schema), examples } } }),
  };
}

/** @param codes of one status; @param headers in addition to those of every problem */
export function problem(
  codes: readonly ProblemCode[],
  rate: RateHeaders,
  headers: Readonly<Record<string, Header>> = {},
): Response {
  return {
    name: codes.map(pascalCase).join('Or'),
    description: codes.map((code) => PROBLEMS[code].title).join('; '),
    headers: { ...commonHeaders('no-store'), ...rateHeaders(rate), ...headers },
    content: {
      [PROBLEM_CONTENT_TYPE]: {
        schema: ref('Problem'),
        examples: Object.fromEntries(codes.map((code) => [code, problemExample(code)])),
      },
    },
  };
}

/** `Retry-After`, in seconds. */
export const RETRY_AFTER = {
  'Retry-After': header(text('^[1-9]\\d*$'), 'Seconds to wait before the next attempt.'),
};

/** Request line and headers over 32 KiB, with the code of a 400. */
export const HEAD_TOO_LARGE: Response = {
  name: 'RequestHeaderFieldsTooLarge',
  description: 'Request line and headers too large',
  headers: commonHeaders('no-store'),
  content: {
    [PROBLEM_CONTENT_TYPE]: {
      schema: ref('Problem'),
      examples: {
        invalid_request: {
          ...problemExample('invalid_request'),
          status: 431,
          detail: 'The request line and headers are too large.',
        },
      },
    },
  },
};

/** The problems of every endpoint that needs a credential. @param limits the codes of its 429 */
export function keyedProblems(limits: readonly ProblemCode[]): Record<string, Response> {
  return {
    400: problem(['invalid_request'], 'once verified'),
    401: problem(['unauthorized'], 'never', {
      'WWW-Authenticate': header(Type.Literal('Bearer'), 'The authentication scheme to use.'),
    }),
    403: problem(['forbidden'], 'once verified'),
    429: problem(limits, 'once verified', RETRY_AFTER),
    431: HEAD_TOO_LARGE,
    500: problem(['internal'], 'once verified', {
      'Retry-After': { ...RETRY_AFTER['Retry-After'], required: false },
    }),
    503: problem(['unavailable'], 'once verified'),
  };
}

/** The problems of every endpoint without authentication. */
export function openProblems(): Record<string, Response> {
  const anonymous = (response: Response): Response => ({ ...response, name: `Anonymous${response.name}` });
  return {
    400: anonymous(problem(['invalid_request'], 'never')),
    431: HEAD_TOO_LARGE,
    500: anonymous(problem(['internal'], 'never')),
  };
}

/** The responses for an unknown path, and for a method that a path does not support. */
export const UNROUTED: Readonly<Record<string, Response>> = {
  404: problem(['not_found'], 'never'),
  405: problem(['method_not_allowed'], 'never', {
    Allow: header(text('^[A-Z]+(, [A-Z]+)*$'), 'Methods that the path supports.'),
    Pragma: optional(Type.Literal('no-cache'), 'Sent by /oauth/token.'),
  }),
};

function commonHeaders(cacheControl: CacheControl): Record<string, Header> {
  return {
    'X-Request-Id': header(
      Type.String({ format: 'uuid' }),
      'Identifies the request. Quote it when you report a problem.',
    ),
    'Cache-Control': header(Type.Literal(cacheControl), 'Whether and how long the response may be cached.'),
    Vary: optional(text(), 'Request headers that the response depends on: `Accept-Encoding`, `Origin`.'),
  };
}

function rateHeaders(rate: RateHeaders): Record<string, Header> {
  if (rate === 'never') return {};
  const required = rate === 'always';
  return Object.fromEntries(Object.entries(RATE).map(([name, kind]) => [name, { required, ...kind }]));
}

function problemExample(code: ProblemCode) {
  const { status, title, example: detail } = PROBLEMS[code];
  return {
    type: `https://api.example/errors/${code}`,
    title,
    status,
    detail,
    request_id: EXAMPLE_REQUEST_ID,
  };
}
