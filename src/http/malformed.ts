/**
 * Replies to what is no request: bytes that are not HTTP, heads that are too large or too slow, CONNECT. They have
 * the headers and the problem document of every other answer; Node's own have neither.
 */
import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Logger } from '../log.ts';
import { isErrorCode } from '../store/folder.ts';
import { PROBLEM_TYPE, type Problem, renderProblem } from './problem.ts';

/** @param error that the parser or a timeout gave */
export function malformedProblem(error: Error): Required<Problem> {
  if (isErrorCode(error, 'HPE_HEADER_OVERFLOW')) {
    return { code: 'invalid_request', status: 431, detail: 'The request line and headers are too large.' };
  }
  if (isErrorCode(error, 'ERR_HTTP_REQUEST_TIMEOUT')) {
    return { code: 'invalid_request', status: 408, detail: 'The request did not arrive in time.' };
  }
  return { code: 'invalid_request', status: 400, detail: 'This is not a well-formed HTTP/1.1 request.' };
}

/** A CONNECT names an address, which is no path of this service. */
export const CONNECT_PROBLEM: Required<Problem> = {
  code: 'not_found',
  status: 404,
  detail: 'There is no endpoint at this path.',
};

/** Writes an answer to a bare connection and ends it. */
export function replyRaw(socket: Duplex, problem: Required<Problem>, baseUrl: string, log: Logger): void {
  const request_id = randomUUID();
  const { status } = problem;
  const body = renderProblem(problem, request_id, baseUrl);
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    `X-Request-Id: ${request_id}`,
    'Cache-Control: no-store',
    `Content-Type: ${PROBLEM_TYPE}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    `Date: ${new Date().toUTCString()}`,
    'Connection: close',
  ];
  socket.on('error', () => socket.destroy());
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
  endSoon(socket);
  log.info({ request_id, status }, 'malformed request');
}

/** Ends a connection once what was written is sent; `end()` alone leaves it open for as long as the client likes. */
export function endSoon(socket: Duplex): void {
  if ('destroySoon' in socket && typeof socket.destroySoon === 'function') socket.destroySoon();
  else socket.end(() => socket.destroy());
}
