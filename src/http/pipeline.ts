/**
 * From a request to its answer, in the order of its checks: path, method, unseen key ids, credential, account and address,
 * rate, scope, parameters, daily allowance, the detection itself. Every error becomes a problem document here.
 */
import { randomUUID } from 'node:crypto';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { requireScope } from '../auth/credential-check.ts';
import { isDamage } from '../store/database-errors.ts';
import { endSoon } from './connections.ts';
import type { Answer, Exchange } from './exchange.ts';
import type { Malformed } from './malformed.ts';
import { oauthError, type Problem, problemAnswer, problemOf, retryAfter } from './problem.ts';
import { isEvents, sendAnswer, TOKEN_PATH } from './reply.ts';
import { countRefusal, noteAnswer } from './request-log.ts';
import { type FindRoute, NO_PATH, type Route, splitTarget } from './routes.ts';
import type { Service } from './service.ts';
import { verify } from './verification.ts';

/** One host and port, or nothing (RFC 9112, 3.2; RFC 9110, 7.2); with a comma it would be two. */
const HOST = /^[\w.~!$&'()*+;=%:[\]-]*$/;
const VERSION = /^1\.[01]$/;
const CHUNKED = /^chunked$/i;
const CONTINUE = /^100-continue$/i;
const CLOSE = ['Connection', 'close'];

/** Answers a request without a route. @returns false, with nothing done, for one that has a route */
export function refuseUnrouted(service: Service, find: FindRoute, response: ServerResponse): boolean {
  const refuse = (detail: string, headers: readonly string[] = []) => {
    const problem = { code: 'invalid_request', detail } as const;
    sendProblem(service, openExchange(service, response), problem, ...headers);
    return true;
  };
  const { httpVersion, headers: asked, method = '', url = '' } = response.req;
  const { host, 'transfer-encoding': coding } = asked;
  // The parser also reads HTTP/0.9, whose heads a proxy may end elsewhere, and HTTP/2.0.
  if (!VERSION.test(httpVersion)) return refuse('Unsupported HTTP version. Use HTTP/1.1.', CLOSE);
  // A malformed Host comes before an unknown path: so does one that is missing in HTTP/1.1, or repeated.
  if (host === undefined ? httpVersion === '1.1' : !HOST.test(host)) {
    const what = host === undefined ? 'missing' : 'malformed or repeated';
    return refuse(`The Host header is ${what}. Send exactly one.`);
  }
  // Proxies may disagree on where such a body ends (RFC 9112, 6.1): nothing after it is read.
  if (coding !== undefined && (httpVersion !== '1.1' || !CHUNKED.test(coding)))
    return refuse('Unsupported Transfer-Encoding. Use chunked with HTTP/1.1, or send Content-Length.', CLOSE);
  if (asked.expect !== undefined && !CONTINUE.test(asked.expect))
    return refuse('Unsupported Expect header. The only supported value is 100-continue.');
  const found = find(splitTarget(url).path, method);
  if (!('problem' in found)) return false;
  const exchange = openExchange(service, response);
  const preflight =
    method === 'OPTIONS' && found !== NO_PATH
      ? service.cors.preflight(asked.origin, asked['access-control-request-method'])
      : null;
  if (preflight !== null) send(service, exchange, { status: 204, body: '', headers: preflight });
  else sendProblem(service, exchange, found.problem, ...found.headers);
  return true;
}

/** Answers on a socket what is no request, and ends the connection. */
export function refuseMalformed(service: Service, socket: Duplex, malformed: Malformed): void {
  const { method, target, problem, headers = [] } = malformed;
  if (!(socket instanceof Socket) || socket.destroyed) return void socket.destroy();
  const request = new IncomingMessage(socket);
  Object.assign(request, { method, url: target });
  const response = new ServerResponse(request);
  socket.on('error', () => socket.destroy());
  response.on('finish', () => endSoon(socket)).assignSocket(socket);
  sendProblem(service, openExchange(service, response), problem, ...headers);
}

/** Answers a request that has a route: in this turn, unless its endpoint or its encoding takes longer. Never rejects. */
export async function answerRequest(service: Service, route: Route, response: ServerResponse): Promise<void> {
  const exchange = openExchange(service, response, route);
  const { intervention } = exchange;
  if (intervention?.isTaken) return;
  try {
    const handled = handleRequest(service, route, exchange);
    const made = handled instanceof Promise ? await handled : handled;
    const { reader } = exchange;
    if (reader !== null) service.allowance.count(reader.credential, made.rows ?? 0, reader.atMs);
    const accepted = response.req.headers['accept-encoding']?.toString();
    const encoded = service.encode(intervention?.answered(made) ?? made, accepted);
    send(service, exchange, encoded instanceof Promise ? await encoded : encoded);
  } catch (error) {
    sendError(service, exchange, error);
  }
}

function handleRequest(service: Service, route: Route, exchange: Exchange): Answer | Promise<Answer> {
  const { nowMs, startedMs, intervention } = exchange;
  if (route.access !== 'key') {
    intervention?.atEndpoint(null);
    return route.answer(service, exchange);
  }
  const credential = verify(service, exchange);
  intervention?.atEndpoint(credential);
  if (route.scope !== null) requireScope(credential, route.scope);
  exchange.reader = { credential, atMs: nowMs, startedMs };
  return route.answer(service, exchange, credential);
}

function openExchange(service: Service, response: ServerResponse, route: Route | null = null): Exchange {
  const request = response.req;
  // Without a listener, a write to a client that is gone would be an uncaught exception.
  response.on('error', () => {});
  const forwarded = request.headers['x-forwarded-for']?.toString();
  const exchange: Exchange = {
    request_id: randomUUID(),
    request,
    response,
    endpoint: route,
    ...splitTarget(request.url ?? ''),
    nowMs: service.now(),
    startedMs: performance.now(),
    address: service.clientAddress(request.socket.remoteAddress, forwarded),
    cors: service.cors.headers(request.headers.origin),
    claimed_key_id: null,
    key_id: null,
    reader: null,
    rate: null,
    intervention: null,
  };
  exchange.intervention = service.interventions?.begin(exchange, service.baseUrl) ?? null;
  return exchange;
}

function send(service: Service, exchange: Exchange, answer: Answer): void {
  if (answer.waited_ms !== undefined && exchange.key_id !== null)
    exchange.rate = service.rate.current(exchange.key_id, service.now());
  // Node drops what a client sends together with a request that asks for another protocol.
  const closing = service.isClosing || exchange.request.headers.upgrade !== undefined;
  const { intervention } = exchange;
  const sending = intervention?.send(answer, closing) ?? sendAnswer(exchange, answer, closing);
  noteAnswer(service, exchange, answer);
  sending?.catch((err: unknown) => {
    if (isEvents(answer.body)) sendError(service, exchange, err);
    else
      service.log.warn(
        { request_id: exchange.request_id, err },
        'a photo could not be read to its end while it was being sent: the response was cut off',
      );
  });
}

/** A problem document; an invalid request for a token in that endpoint's form. @param further headers */
function sendProblem(service: Service, exchange: Exchange, problem: Problem, ...further: string[]): void {
  const { code, detail, status } = problem;
  const isForToken = exchange.path === TOKEN_PATH && code === 'invalid_request' && status === undefined;
  const answer = isForToken
    ? oauthError(code, detail)
    : problemAnswer(problem, exchange.request_id, service.baseUrl);
  send(service, exchange, { ...answer, headers: [...(answer.headers ?? []), ...further] });
}

function sendError(service: Service, exchange: Exchange, error: unknown): void {
  const { request_id, response } = exchange;
  const problem = problemOf(error);
  const again = retryAfter(error);
  if (exchange.reader !== null) service.health.noteFault(error);
  // A known state that passes, as while detections.db is being rebuilt, is logged where it begins.
  if (problem.code === 'internal' && (again.length === 0 || isDamage(error)))
    service.faults.note('fault', error, request_id);
  else if (problem.code === 'unavailable') service.faults.note('unavailable', error, request_id);
  // Part of the answer is sent already: cutting it shows the client that it is incomplete.
  if (response.headersSent) response.destroy();
  else sendProblem(service, exchange, problem, ...again);
  countRefusal(service, exchange, problem);
}
