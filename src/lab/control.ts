/**
 * The lab's own endpoints under `/_lab/`, on the port of the API, and their OpenAPI document. They answer this machine
 * only, under a host name that the public DNS cannot have (a web page could have its own name resolve to this machine),
 * and no page of another origin.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { normalAddress } from '../addresses.ts';
import { isHostAccepted } from '../admin/host-header.ts';
import { isLoopback } from '../config/listening.ts';
import { PROBLEMS } from '../error-codes.ts';
import { readJson } from '../http/body.ts';
import { isProblemCode } from '../http/problem.ts';
import { splitTarget } from '../http/routes.ts';
import { Refused, reasonOf } from '../refused.ts';
import { type Action, CONTROLS, isActionName, type READINGS, requireMembers } from './actions.ts';
import type { Lab } from './lab.ts';

export const CONTROL = '/_lab';
const BODY_BYTES_MAX = 64 * 1024;
const JSON_TYPE = 'application/json';
const CLOSED = { additionalProperties: false, type: 'object' };

/** @param given the members of the reading; @returns the answer, nothing for an empty object */
type Read = (lab: Lab, given: { readonly id?: string; readonly after?: number }) => unknown;

const READ: Readonly<Record<keyof typeof READINGS, Read>> = {
  'GET clock': (lab) => lab.clock(),
  'GET faults': (lab) => lab.faults.list(),
  'DELETE faults': (lab) => lab.faults.remove(null),
  'DELETE faults/{id}': (lab, { id = '' }) => lab.faults.remove(id),
  'GET report': (lab, { after = 0 }) => lab.report(after),
  'DELETE report': (lab) => lab.requests.clear(),
  'GET openapi.json': labDocument,
};

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
  const [, id] = /^faults\/(f\d+)$/.exec(name) ?? [];
  const path = id === undefined ? name : 'faults/{id}';
  const on = `${request.method} ${path}`;
  const operation = CONTROLS.get(on);
  if (operation !== undefined) {
    if (isActionName(path) && request.method === 'POST')
      return lab.run(path, await readJson(request, BODY_BYTES_MAX));
    const query = new URLSearchParams(splitTarget(request.url ?? '').query);
    const given: Record<string, string | number> = id === undefined ? {} : { id };
    const after = query.get('after');
    if (after !== null && 'after' in operation.members)
      given.after = /^\d{1,15}$/.test(after) ? Number(after) : after;
    requireMembers(operation, given);
    return READ[on as keyof typeof READINGS](lab, given);
  }
  const methods = ['POST', 'GET', 'DELETE'].filter((method) => CONTROLS.has(`${method} ${path}`));
  if (methods.length > 0)
    throw new Refused(
      'method_not_allowed',
      `${CONTROL}/${name} takes ${methods.join(', ')}, not ${request.method}`,
    );
  throw new Refused('not_found', `the lab has no ${CONTROL}/${name}. See GET ${CONTROL}/openapi.json`);
}

function statusOf(error: unknown): number {
  if (!(error instanceof Refused)) return 500;
  if (error.code === 'failed') return 409;
  return isProblemCode(error.code) ? PROBLEMS[error.code].status : 500;
}

function refuseOthers({ socket, headers }: IncomingMessage): void {
  const { host, origin } = headers;
  const refuse = (detail: string) => {
    throw new Refused('forbidden', detail);
  };
  if (!isLoopback(normalAddress(socket.remoteAddress ?? '') ?? ''))
    refuse('the lab is controlled from this machine alone: ask on its loopback address');
  if (!isHostAccepted(host, []))
    refuse('Host: expected an address or localhost, so that no other name leads here');
  if (origin !== undefined && origin !== `http://${host}` && origin !== `https://${host}`)
    refuse('Origin: a page of another origin cannot control the lab');
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
  for (const [on, operation] of CONTROLS) {
    const [method = '', name = ''] = on.toLowerCase().split(' ');
    const operationId = on
      .toLowerCase()
      .replace('s/{id}', '')
      .replace('openapi.json', 'document')
      .replaceAll(/[ -](\w)/g, (_, letter: string) => letter.toUpperCase());
    const path = `${CONTROL}/${name}`;
    paths[path] = { ...paths[path], [method]: { operationId, ...described(name, method, operation) } };
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

function described(path: string, method: string, { summary, members, required }: Action) {
  const content = (schema: unknown) => ({ content: { [JSON_TYPE]: { schema } } });
  const isRequired = required.length > 0;
  const body = { ...CLOSED, ...(isRequired && { required }), properties: members };
  const parameters = Object.entries(members).map(([name, { description, ...schema }]) => ({
    name,
    in: path.includes('{') ? 'path' : 'query',
    description,
    schema,
    ...(isRequired && { required: true }),
  }));
  return {
    summary,
    ...(method === 'post'
      ? { requestBody: { required: isRequired, ...content(printed(body)) } }
      : parameters.length > 0 && { parameters: printed(parameters) }),
    responses: {
      200: { description: 'Done.', ...content({ type: 'object' }) },
      '4XX': { description: 'Refused; detail says why.', ...content({ type: 'object' }) },
    },
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
