/**
 * The lab's own endpoints under `/_lab/`, on the port of the API: for this machine alone, under a name that only this
 * machine can have (a web page elsewhere could otherwise have its name lead here), and not for pages of other origins.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isHostTaken } from '../admin/host.ts';
import { readBody as readRequestBody } from '../http/body.ts';
import { splitTarget } from '../http/routes.ts';
import { Refused, reasonOf } from '../refused.ts';
import { SECOND_MS } from '../time.ts';
import { ACTIONS, type ActionName, isActionName } from './actions.ts';

export const CONTROL = '/_lab';
const BODY_BYTES_MAX = 64 * 1024;
const BODY_MS = 10 * SECOND_MS;
const STATUS: Readonly<Record<string, number>> = {
  invalid_request: 400,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  content_too_large: 413,
  failed: 409,
};

/** What the endpoints do. */
export interface Controlled {
  run(action: ActionName, body: unknown): Promise<unknown>;
  clock(): unknown;
  faults(): unknown;
  /** @param id null: all */
  removeFaults(id: string | null): void;
  /** @param after only requests with greater numbers */
  report(after: number): unknown;
  clearReport(): void;
  openApi(): unknown;
}

/** @returns false, with nothing done, for a path that is not the lab's */
export function answerControl(lab: Controlled, request: IncomingMessage, response: ServerResponse): boolean {
  const { path, query } = splitTarget(request.url ?? '');
  if (path !== CONTROL && !path.startsWith(`${CONTROL}/`)) return false;
  response.on('error', () => {});
  answer(lab, request, path.slice(CONTROL.length + 1), query).then(
    (value) => reply(response, 200, value ?? {}),
    (error: unknown) => {
      const status = error instanceof Refused ? (STATUS[error.code] ?? 500) : 500;
      const detail = reasonOf(error);
      reply(response, status, { status, detail });
    },
  );
  return true;
}

async function answer(
  lab: Controlled,
  request: IncomingMessage,
  name: string,
  query: string,
): Promise<unknown> {
  refuseOthers(request);
  const { method = '' } = request;
  const [, fault] = /^faults\/(f\d+)$/.exec(name) ?? [];
  if (method === 'DELETE' && fault !== undefined) return lab.removeFaults(fault);
  const reading: Readonly<Record<string, () => unknown>> = {
    'GET clock': () => lab.clock(),
    'GET faults': () => lab.faults(),
    'DELETE faults': () => lab.removeFaults(null),
    'GET report': () => lab.report(afterOf(query)),
    'DELETE report': () => lab.clearReport(),
    'GET openapi.json': () => lab.openApi(),
  };
  const read = reading[`${method} ${name}`];
  if (read !== undefined) return read();
  if (isActionName(name) && method === 'POST') return lab.run(name, await bodyOf(request));
  const known = [...Object.keys(reading), ...Object.keys(ACTIONS).map((action) => `POST ${action}`)];
  const methods = known.filter((one) => one.endsWith(` ${name}`)).map((one) => one.split(' ', 1)[0]);
  if (methods.length > 0)
    throw new Refused('method_not_allowed', `${CONTROL}/${name} takes ${methods.join(', ')}, not ${method}`);
  throw new Refused('not_found', `the lab has no ${CONTROL}/${name}. See GET ${CONTROL}/openapi.json`);
}

function refuseOthers({ socket, headers }: IncomingMessage): void {
  const peer = (socket.remoteAddress ?? '').replace(/^::ffff:/, '');
  if (peer !== '::1' && !peer.startsWith('127.'))
    throw new Refused(
      'forbidden',
      'the lab is controlled from this machine alone: ask on its loopback address',
    );
  if (!isHostTaken(headers.host, []))
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

function afterOf(query: string): number {
  const text = new URLSearchParams(query).get('after') ?? '0';
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new Refused('invalid_request', 'after: expected the number of a request');
}

function reply(response: ServerResponse, status: number, value: unknown): void {
  if (response.destroyed || response.headersSent) return;
  const body = JSON.stringify(value);
  response.writeHead(status, {
    'Content-Type': 'application/json',
    'Cache-Control': 'no-store',
    'Content-Length': Buffer.byteLength(body),
  });
  response.end(body);
}
