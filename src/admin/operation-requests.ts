/**
 * `POST /operations/NAME`: operations over HTTP, on the administration port and on the control socket. The body is a JSON
 * object of the operation's members; the answer is its outcome, or a problem document.
 *
 * | request | answer |
 * |---|---|
 * | `POST /operations/NAME` | when it is done |
 * | with `Prefer: respond-async`, for what may take long | 202 with the job, when it has begun |
 * | with `Accept: application/x-ndjson` | at once: a line for each progress, the outcome or the problem in the last one |
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { readJson } from '../http/body.ts';
import { operationAt } from '../operations/table.ts';
import { Refused } from '../refused.ts';
import type { Operations } from './thread-client.ts';
import { type AskOperation, problem, type Told } from './thread-messages.ts';

export const OPERATIONS_PATH = '/operations/';

const BODY_BYTES_MAX = 256 * 1024;
const LINES = 'application/x-ndjson';
const READ_ONLY = 'This session may only read: it was made with wirewatch console --read-only.';

/** `isValid`: asked once the body is there, which its sender can hold back until the session has ended. */
export type Asker = Pick<AskOperation, 'way' | 'by'> & Readonly<{ mayAct: boolean; isValid: () => boolean }>;

/** @returns the answer to send; null if it was sent, in lines */
export async function answerRequest(
  request: IncomingMessage,
  response: ServerResponse,
  operations: Operations,
  { way, by, mayAct, isValid }: Asker,
): Promise<Told | null> {
  const { socket, headers, url = '' } = request;
  const [, path = ''] = /^\/operations\/([^?]+)/.exec(url) ?? [];
  const operation = operationAt(path);
  if (operation === null)
    return problem(404, `There is no operation ${path}. See /openapi-admin.json.`, 'not_found');
  if (request.method !== 'POST') return problem(405, 'Only POST.', 'method_not_allowed', { Allow: 'POST' });
  if (operation.kind === 'act' && !mayAct) return problem(403, READ_ONLY, 'forbidden');
  const given: unknown = await readJson(request, BODY_BYTES_MAX).catch(refusedOf);
  if (given instanceof Refused) return problem(400, given.message, 'invalid_request');
  if (!isValid()) return problem(401, 'The session has ended.', 'unauthorized');
  // A session that made links would not end after its hours, nor keep to its name.
  if (operation.name === 'console' && way !== 'command' && Object(given).end_all !== true)
    return problem(403, 'Only a command makes a link: wirewatch console.', 'forbidden');
  const asking = { path, given, way, by };
  const idleMs = socket.timeout;
  // The idle timeout must not end what takes long.
  socket.setTimeout(0);
  try {
    if (headers.accept === LINES) {
      response.writeHead(200, { 'Content-Type': LINES });
      // At once: whoever waits for it knows that Wirewatch is alive.
      response.flushHeaders();
      const tell = (progress: string) => response.write(`${JSON.stringify({ progress })}\n`);
      const { status, body } = await operations.run(asking, tell);
      response.end(`{"${status === 200 ? 'outcome' : 'problem'}":${body}}\n`);
      return null;
    }
    const isAsync = operation.job !== undefined && /\brespond-async\b/.test(String(headers.prefer ?? ''));
    const told = await operations.run({ ...asking, isAsync });
    return isAsync && told.status === 200 ? { ...told, status: 202 } : told;
  } finally {
    socket.setTimeout(idleMs ?? 0);
  }
}

/** Writes an answer, unless one was begun. */
export function send(response: ServerResponse, told: Told | null): void {
  if (told === null || response.headersSent || response.destroyed) return;
  const { status, body, headers } = told;
  response.writeHead(status, {
    'Content-Type': status < 300 ? 'application/json' : 'application/problem+json',
    'Content-Length': Buffer.byteLength(body),
    ...headers,
  });
  response.end(body);
}

/** A refusal as a value; any other error is thrown. */
export function refusedOf(error: unknown): Refused {
  if (error instanceof Refused) return error;
  throw error;
}
