/**
 * The lab's own endpoints under `/_lab/`, on the port of the API, and their OpenAPI document. They answer this machine
 * only, under a host name that the public DNS cannot have (a web page could have its own name resolve to this machine),
 * and no page of another origin.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TObject } from '@sinclair/typebox';
import { normalAddress } from '../addresses.ts';
import { isHostAccepted } from '../admin/host-header.ts';
import { isLoopback } from '../config/listening.ts';
import { PROBLEMS } from '../error-codes.ts';
import { readBody as readRequestBody } from '../http/body.ts';
import { isProblemCode } from '../http/problem.ts';
import { splitTarget } from '../http/routes.ts';
import { Refused, reasonOf } from '../refused.ts';
import { SECOND_MS } from '../time.ts';
import { ACTIONS, type ActionName, READINGS } from './actions.ts';
import type { Lab } from './lab.ts';

export const CONTROL = '/_lab';
const BODY_BYTES_MAX = 64 * 1024;
const BODY_MS = 10 * SECOND_MS;
const JSON_TYPE = 'application/json';

interface Endpoint {
  readonly operationId: string;
  readonly method: string;
  /** Below {@link CONTROL}. */
  readonly path: string;
  readonly summary: string;
  /** Null if it takes none. */
  readonly body: TObject | null;
  /** @param id of a fault; @returns the answer, nothing for an empty object */
  run(lab: Lab, request: IncomingMessage, id: string): unknown;
}

const RUN: Readonly<Record<keyof typeof READINGS, Endpoint['run']>> = {
  'GET clock': (lab) => lab.clock(),
  'GET faults': (lab) => lab.faults.list(),
  'DELETE faults': (lab) => lab.faults.remove(null),
  'DELETE faults/{id}': (lab, _, id) => lab.faults.remove(id),
  'GET report': (lab, request) => lab.report(afterOf(request)),
  'DELETE report': (lab) => lab.requests.clear(),
  'GET openapi.json': () => labDocument(),
};

const ENDPOINTS: readonly Endpoint[] = [
  ...Object.entries(ACTIONS).map(([path, { summary, body }]) => ({
    ...{ operationId: camelCase(`post ${path}`), method: 'POST', path, summary, body },
    run: async (lab: Lab, request: IncomingMessage) => lab.run(path as ActionName, await bodyOf(request)),
  })),
  ...Object.entries(READINGS).map(([on, summary]) => {
    const [method = '', path = ''] = on.split(' ');
    const operationId = camelCase(on.toLowerCase().replace('s/{id}', '').replace('openapi.json', 'document'));
    return { operationId, method, path, summary, body: null, run: RUN[on as keyof typeof READINGS] };
  }),
];

function camelCase(text: string): string {
  return text.replaceAll(/[ -](\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** @returns false, with nothing done, for a path that is not the lab's */
export function answerControl(lab: Lab, request: IncomingMessage, response: ServerResponse): boolean {
  const { path } = splitTarget(request.url ?? '');
  if (path !== CONTROL && !path.startsWith(`${CONTROL}/`)) return false;
  response.on('error', () => {});
  answer(lab, request, path.slice(CONTROL.length + 1)).then(
    (value) => reply(response, 200, value ?? {}),
    (error: unknown) =>
      reply(response, statusOf(error), { status: statusOf(error), detail: reasonOf(error) }),
  );
  return true;
}

async function answer(lab: Lab, request: IncomingMessage, name: string): Promise<unknown> {
  refuseOthers(request);
  const path = name.replace(/^faults\/f\d+$/, 'faults/{id}');
  const there = ENDPOINTS.filter((one) => one.path === path);
  const endpoint = there.find(({ method }) => method === request.method);
  if (endpoint !== undefined) return endpoint.run(lab, request, name.slice('faults/'.length));
  const methods = there.map(({ method }) => method).join(', ');
  if (methods !== '')
    throw new Refused('method_not_allowed', `${CONTROL}/${name} takes ${methods}, not ${request.method}`);
  throw new Refused('not_found', `the lab has no ${CONTROL}/${name}. See GET ${CONTROL}/openapi.json`);
}

function statusOf(error: unknown): number {
  if (!(error instanceof Refused)) return 500;
  if (error.code === 'failed') return 409;
  return isProblemCode(error.code) ? PROBLEMS[error.code].status : 500;
}

function refuseOthers({ socket, headers }: IncomingMessage): void {
  if (!isLoopback(normalAddress(socket.remoteAddress ?? '') ?? ''))
    throw new Refused(
      'forbidden',
      'the lab is controlled from this machine alone: ask on its loopback address',
    );
  if (!isHostAccepted(headers.host, []))
    throw new Refused(
      'forbidden',
      'Host: expected an address or localhost, so that no other name leads here',
    );
  const { origin } = headers;
  if (origin !== undefined && origin !== `http://${headers.host}` && origin !== `https://${headers.host}`)
    throw new Refused('forbidden', 'Origin: a page of another origin cannot control the lab');
}

/** @returns an empty object for no body */
async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const body = await readRequestBody(request, BODY_BYTES_MAX, BODY_MS);
  if (body.kind === 'too_large')
    throw new Refused('content_too_large', `the body must not exceed ${BODY_BYTES_MAX} bytes`);
  if (body.kind !== 'whole') throw new Refused('invalid_request', 'the body is incomplete');
  if (body.bytes.length === 0) return {};
  // What a page can send anywhere without asking has another type.
  if (!/^application\/json\b/i.test(request.headers['content-type'] ?? ''))
    throw new Refused('invalid_request', 'Content-Type: expected application/json');
  try {
    return JSON.parse(body.bytes.toString('utf8'));
  } catch (error) {
    throw new Refused('invalid_request', `the body is not JSON: ${reasonOf(error)}`);
  }
}

function afterOf({ url = '' }: IncomingMessage): number {
  const text = new URLSearchParams(splitTarget(url).query).get('after') ?? '0';
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new Refused('invalid_request', 'after: expected the number of a request');
}

function reply(response: ServerResponse, status: number, value: unknown): void {
  if (response.destroyed || response.headersSent) return;
  const body = JSON.stringify(value);
  response.writeHead(status, {
    'Content-Type': JSON_TYPE,
    'Cache-Control': 'no-store',
    'Content-Length': Buffer.byteLength(body),
  });
  response.end(body);
}

/** For tests in any language. */
function labDocument() {
  const paths: Record<string, Record<string, object>> = {};
  for (const endpoint of ENDPOINTS) {
    const path = `${CONTROL}/${endpoint.path}`;
    paths[path] = { ...paths[path], [endpoint.method.toLowerCase()]: operation(endpoint) };
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'Wirewatch lab',
      version: '1',
      summary: 'Clock, feed and faults of a lab.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/', description: 'The lab itself, asked from its own machine.' }],
    security: [],
    paths,
  };
}

function operation({ operationId, summary, path, body }: Endpoint) {
  const content = (schema: unknown) => ({ content: { [JSON_TYPE]: { schema } } });
  const responses = {
    200: { description: 'Done.', ...content({ type: 'object' }) },
    '4XX': { description: 'Refused; detail says why.', ...content({ type: 'object' }) },
  };
  const after = { name: 'after', in: 'query', description: 'Only requests with greater numbers.' };
  return {
    operationId,
    summary,
    ...(path === 'faults/{id}' && {
      parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }],
    }),
    ...(operationId === 'getReport' && {
      parameters: [{ ...after, schema: { type: 'integer', minimum: 0 } }],
    }),
    ...(body !== null && {
      requestBody: { required: (body.required ?? []).length > 0, ...content(printed(body)) },
    }),
    responses,
  };
}

/** Without the keywords of our own checks. */
function printed(schema: object): unknown {
  return JSON.parse(
    JSON.stringify(schema, (name, value) =>
      ['expected', 'placeholder'].includes(name) || String(value).startsWith('lab-') ? undefined : value,
    ),
  );
}
