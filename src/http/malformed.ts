/** Replies to what is no request. They look like every other answer; Node's own do not. */
import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { now } from '../clock.ts';
import { PROBLEM_CONTENT_TYPE, PROBLEMS } from '../error-codes.ts';
import { errorCode, isErrorCode } from '../refused.ts';
import { endSoon } from './connections.ts';
import { type Problem, renderOAuthError, renderProblem } from './problem.ts';
import { TOKEN_PATH } from './reply.ts';
import { type Found, splitTarget, type Unrouted, unroutedProblem } from './routes.ts';

export interface RawReply {
  readonly problem: Required<Problem>;
  /** To the token endpoint, whose answers have a header and a form of their own. */
  readonly isForToken: boolean;
  readonly headers?: readonly string[];
}

const REQUEST_LINE = /^([\w!#$%&'*+.^`|~-]+) (\S+) HTTP\/1\.[01]\r?\n/;
const TOKEN_REQUEST = /^POST (\S+) HTTP\//;

/** @param error that the parser or a timeout gave; @param find of the route table: the parser knows few methods */
export function malformedReply(error: Error, find: (path: string, method: string) => Found): RawReply {
  if (isErrorCode(error, 'HPE_INVALID_METHOD')) {
    const [, method, target] = REQUEST_LINE.exec(headOf(error, Number.POSITIVE_INFINITY)) ?? [];
    if (method !== undefined && target !== undefined) {
      const { path } = splitTarget(target);
      const found = find(path, method);
      if (found.kind !== 'route') return unroutedReply(found, path === TOKEN_PATH);
    }
  }
  const reply = (status: number, detail: string): RawReply => ({
    problem: { code: 'invalid_request', status, detail },
    isForToken: isForToken(error),
  });
  if (isErrorCode(error, 'HPE_HEADER_OVERFLOW'))
    return reply(431, 'The request line and headers are too large.');
  if (isErrorCode(error, 'ERR_HTTP_REQUEST_TIMEOUT'))
    return reply(408, 'The request was not received in time.');
  if (isErrorCode(error, 'HPE_INVALID_URL'))
    return reply(
      400,
      'The request target is not well-formed: expected a path in which all characters outside of ASCII are percent-encoded.',
    );
  return reply(400, 'The request is not well-formed HTTP/1.1.');
}

function unroutedReply(found: Unrouted, isForToken: boolean): RawReply {
  const problem = unroutedProblem(found);
  const headers = found.kind === 'no_method' ? [`Allow: ${found.allow}`] : [];
  return { problem: { ...problem, status: PROBLEMS[problem.code].status }, isForToken, headers };
}

/** A CONNECT names an address, which is no path of this service. */
export const CONNECT_REPLY: RawReply = unroutedReply({ kind: 'no_path' }, false);

/** To a client that sends plain HTTP to a TLS port. */
export const PLAIN_HTTP_REPLY: RawReply = {
  problem: { code: 'invalid_request', status: 400, detail: 'This port accepts HTTPS only.' },
  isForToken: false,
};

/** Whether TLS failed: the client cannot read an answer then. */
export function isTlsFailure(error: Error): error is Error & { readonly code: string } {
  return /^ERR_(SSL|TLS)_/.test(errorCode(error));
}

/** Whether the head, as far as it was read, begins as a request to the token endpoint. */
function isForToken(error: Error): boolean {
  return splitTarget(TOKEN_REQUEST.exec(headOf(error, 0))?.[1] ?? '').path === TOKEN_PATH;
}

/** The head in which the parser stopped: up to that place, and so many bytes further. */
function headOf(error: Error, further: number): string {
  if (!('rawPacket' in error) || !(error.rawPacket instanceof Uint8Array)) return '';
  const read = 'bytesParsed' in error ? Number(error.bytesParsed) : 0;
  const text = Buffer.from(error.rawPacket).toString('latin1');
  const start = text.slice(0, read).lastIndexOf('\r\n\r\n') + 1;
  return text.slice(start, read + further).replace(/^[\r\n]+/, '');
}

/** Writes an answer to a socket and ends the connection. @returns the request id in the answer */
export function replyRaw(
  socket: Duplex,
  { problem, isForToken, headers = [] }: RawReply,
  baseUrl: string,
): string {
  const request_id = randomUUID();
  const { status, detail } = problem;
  const isOAuth = isForToken && status === 400;
  const body = isOAuth
    ? renderOAuthError('invalid_request', detail)
    : renderProblem(problem, request_id, baseUrl);
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    `X-Request-Id: ${request_id}`,
    'Cache-Control: no-store',
    ...(isForToken ? ['Pragma: no-cache'] : []),
    `Content-Type: ${isOAuth ? 'application/json' : PROBLEM_CONTENT_TYPE}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    `Date: ${new Date(now()).toUTCString()}`,
    ...headers,
    'Connection: close',
  ];
  socket.on('error', () => socket.destroy());
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
  endSoon(socket);
  return request_id;
}
