/**
 * Checks every response to `fetch` against the OpenAPI document: path, method, status, content type, headers, body.
 * The request fails if anything is undocumented.
 *
 * `fetch` itself is replaced, so that requests of other libraries are checked, too. Only servers registered with
 * {@link checkResponsesOf} are checked.
 */
import assert from 'node:assert/strict';
import { FormatRegistry, type TSchema } from '@sinclair/typebox';
import { type TypeCheck, TypeCompiler } from '@sinclair/typebox/compiler';
import { FIELDS } from '../../src/detection/fields.ts';
import {
  type Response as Documented,
  OPERATIONS,
  type Operation,
  UNROUTED,
} from '../../src/openapi/operations.ts';
import { SCHEMAS } from '../../src/openapi/schemas.ts';
import { PROBLEM_CONTENT_TYPE, PROBLEMS } from '../../src/problem-titles.ts';
import type { RawResponse } from './raw-http.ts';
import { words } from './words.ts';

/** A response that a test received without `fetch`; the target is path and query as sent. */
type ReceivedResponse = RawResponse & { readonly method: string; readonly target: string };

/** Headers that a response must not have unless the document names them. */
const MEANINGFUL_HEADERS = words(`
  RateLimit-Limit RateLimit-Policy RateLimit-Remaining RateLimit-Reset Retry-After WWW-Authenticate Allow
  ETag Pragma Accept-Ranges Content-Range Location Set-Cookie Last-Modified Expires Server X-Powered-By
  Vary Deprecation Sunset`);

const origins = new Set<string>();
const checks = new Map<TSchema, TypeCheck<TSchema>>();
const plainFetch = globalThis.fetch;

/** The characters of RFC 3986. */
const OF_URI = /^([\w\-.~:/?#[\]@!$&'()*+,;=]|%[\da-f]{2})+$/i;
FormatRegistry.Set('date-time', (text) => !Number.isNaN(Date.parse(text)));
FormatRegistry.Set('uri', (text) => OF_URI.test(text) && URL.canParse(text));
FormatRegistry.Set('uuid', (text) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text));

globalThis.fetch = async (input, init) => {
  const response = await plainFetch(input, init);
  if (!origins.has(new URL(response.url).origin)) return response;
  const { pathname, search } = new URL(response.url);
  const method = init?.method ?? (input instanceof Request ? input.method : 'GET');
  // Part of CORS, not of this API.
  if (method === 'OPTIONS' && response.status === 204) return response;
  const isText = response.headers.get('content-type')?.includes('json') === true;
  checkResponse({
    method: method.toUpperCase(),
    target: `${pathname}${search}`,
    status: response.status,
    headers: response.headers,
    body: isText ? await response.clone().text() : '',
  });
  return response;
};

/** Registers a server whose responses are checked. */
export function checkResponsesOf(url: string): void {
  origins.add(new URL(url).origin);
}

/** @throws AssertionError */
export function checkResponse(response: ReceivedResponse): void {
  const { method, target, status, headers, body } = response;
  const what = `${method} ${target.slice(0, 300)}: ${status}`;
  const [path = '', query = ''] = target.split('?', 2);
  const documented = documentedResponse(path, method, status);
  assert.ok(documented, `${what} is not documented: ${body.slice(0, 500)}`);
  checkHeaders(what, documented, headers);
  const contentType = headers.get('content-type');
  // Described in words (http/endpoints/changes.ts).
  if (path === '/v1/detections/changes' && contentType === 'text/event-stream') return;
  if (documented.content === undefined || method === 'HEAD') {
    assert.equal(body, '', `${what} has a body`);
    return;
  }
  const media = contentType === null ? undefined : documented.content[contentType];
  assert.ok(media, `${what}: the document does not list the content type ${contentType}`);
  if (contentType?.includes('json') !== true) return;
  const value: unknown = JSON.parse(body);
  const isProblem = contentType === PROBLEM_CONTENT_TYPE;
  if (!isProblem && path.startsWith('/v1/detections'))
    checkDetections(what, path, media.schema, new URLSearchParams(query).has('fields'), value);
  else checkSchema(what, media.schema, value);
  if (isProblem) checkProblem(what, value, { status, headers, codes: Object.keys(media.examples ?? {}) });
}

/** The documented response for a status; for unknown paths and methods, the common ones. */
function documentedResponse(path: string, method: string, status: number): Documented | undefined {
  const operations = operationsAt(path);
  if (operations.length === 0) return status === 404 ? UNROUTED[404] : undefined;
  const operation = operations.find((one) => one.method === method.toLowerCase());
  if (operation === undefined) return status === 405 ? UNROUTED[405] : undefined;
  return operation.responses[status];
}

function operationsAt(path: string): Operation[] {
  const exact = OPERATIONS.filter((operation) => operation.path === path);
  if (exact.length > 0) return exact;
  return OPERATIONS.filter((operation) => {
    const [start = '', end] = operation.path.split('{', 2);
    return end !== undefined && path.startsWith(start) && /^[^/]+$/.test(path.slice(start.length));
  });
}

function checkHeaders(what: string, documented: Documented, headers: Headers): void {
  for (const [name, { required, schema }] of Object.entries(documented.headers)) {
    const value = headers.get(name);
    if (value === null) assert.ok(!required, `${what} has no ${name}`);
    else checkSchema(`${what}, ${name}`, schema, value);
  }
  for (const name of MEANINGFUL_HEADERS) {
    if (documented.headers[name] === undefined)
      assert.equal(headers.get(name), null, `${what} has the undocumented header ${name}`);
  }
  const rate = MEANINGFUL_HEADERS.filter((name) => name.startsWith('RateLimit-') && headers.has(name));
  assert.ok(rate.length === 0 || rate.length === 4, `${what} has only ${rate}`);
}

/** Checks a value against a schema of the document; without a schema, no value is valid. @throws AssertionError */
export function checkBody(what: string, schema: TSchema | undefined, value: unknown): void {
  assert.ok(schema, `${what}: the document has no schema`);
  checkSchema(what, schema, value);
}

function checkSchema(what: string, schema: TSchema, value: unknown): void {
  const known = checks.get(schema);
  const check = known ?? TypeCompiler.Compile(schema, Object.values(SCHEMAS));
  if (known === undefined) checks.set(schema, check);
  if (check.Check(value)) return;
  const found = [...check.Errors(value)].map(
    (error) => `${error.path}: ${error.message}, not ${JSON.stringify(error.value)?.slice(0, 200)}`,
  );
  assert.fail(`${what} does not match the document: ${found.slice(0, 5).join('; ')}`);
}

function checkProblem(
  what: string,
  value: unknown,
  { status, headers, codes }: { status: number; headers: Headers; codes: readonly string[] },
): void {
  const { type, title, status: said, request_id } = membersOf(value);
  const code = String(type).split('/').at(-1) ?? '';
  assert.ok(codes.includes(code), `${what} has the undocumented code ${code}`);
  const kind = new Map<string, { status: number; title: string }>(Object.entries(PROBLEMS)).get(code);
  assert.deepEqual([title, said, kind?.status], [kind?.title, status, status], what);
  assert.match(String(type), new RegExp(`^https?://.*/errors/${code}$`), what);
  assert.equal(request_id, headers.get('x-request-id'), what);
}

const FIELD_ORDER = new Map(FIELDS.map(({ path }, index) => [path, index]));

/** With `fields`, all members can be missing: of a detection, and in its parts. */
function partial(schema: TSchema | undefined, required: readonly string[] = []): TSchema {
  assert.ok(schema);
  const { $id: _, ...own } = schema;
  if (own.$ref !== undefined) return partial(SCHEMAS[String(own.$ref).replace(/.*\//, '')], required);
  if (Array.isArray(own.anyOf)) return { ...own, anyOf: own.anyOf.map((one) => partial(one, required)) };
  if (own.type !== 'object') return own;
  const members = Object.entries<TSchema>(own.properties).map(([name, member]) => [name, partial(member)]);
  return { ...own, properties: Object.fromEntries(members), required };
}

const PARTIAL = {
  Change: partial(SCHEMAS.Change, ['id', 'version']),
  Detection: partial(SCHEMAS.Detection, ['id', 'version']),
};

/** Checks the body of a response with detections. Members are in the order of the field table. */
function checkDetections(what: string, path: string, schema: TSchema, hasFields: boolean, value: unknown) {
  const { data } = membersOf(value);
  const detections = Array.isArray(data) ? data : [value];
  for (const detection of detections) {
    const order = leaves(detection, '').map((leaf) => FIELD_ORDER.get(leaf) ?? -1);
    const sorted = order.toSorted((a, b) => a - b);
    assert.deepEqual(order, sorted, `${what}: fields out of order`);
    const one = path === '/v1/detections/changes' ? PARTIAL.Change : PARTIAL.Detection;
    if (hasFields) checkSchema(what, one, detection);
  }
  if (!hasFields) checkSchema(what, schema, value);
  else if (Array.isArray(data)) checkSchema(what, schema, { ...membersOf(value), data: [] });
}

/** The paths of all fields, in order; an object that is null counts as its first field. */
function leaves(value: unknown, prefix: string): string[] {
  return Object.entries(membersOf(value)).flatMap(([name, member]) => {
    const path = `${prefix}${name}`;
    if (typeof member === 'object' && member !== null) return leaves(member, `${path}.`);
    return [FIELD_ORDER.has(path) ? path : `${path}.id`];
  });
}

export function membersOf(value: unknown): Record<string, unknown> {
  assert.ok(typeof value === 'object' && value !== null, `${JSON.stringify(value)} is not an object`);
  return { ...value };
}
