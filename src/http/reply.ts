/** Writes answers, with the headers that every one has, and the rate-limit headers once a credential was verified. */
import type { ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { pushRateLimitHeaders } from '../limits/request-rate.ts';
import { isErrorCode } from '../refused.ts';
import { releaseMemory } from '../release-memory.ts';
import type { Answer, EventBody, Exchange, FileBody } from './exchange.ts';
import { inFileTurn } from './thread-turns.ts';

/** All its answers, problems too, carry `Pragma: no-cache` (RFC 6749, 5.1). */
export const TOKEN_PATH = '/oauth/token';

/** @param closing whether the connection ends with it; @returns for a file or events, a promise that rejects when they fail */
export function sendAnswer(exchange: Exchange, answer: Answer, closing: boolean): Promise<void> | null {
  const { response } = exchange;
  const { body } = answer;
  // The client is gone: writing would end in an unhandled error.
  if (response.destroyed) return typeof body === 'object' && 'handle' in body ? body.handle.close() : null;
  writeHead(exchange, answer, closing);
  if (typeof body === 'string') response.end(body);
  else if ('handle' in body) return sendFile(response, body);
  // Each event is sent once the client has read most of those before.
  else if (isEvents(body)) return pipeline(body.events, response).catch(unlessClientGone);
  else {
    // One system call for the head and all pieces, without copying them.
    response.cork();
    for (const piece of body) response.write(piece, () => releaseMemory(piece));
    response.uncork();
    response.end();
  }
  return null;
}

export function writeHead(exchange: Exchange, answer: Answer, closing: boolean): void {
  const { response, request_id, endpoint, path, rate, cors } = exchange;
  const { status, body } = answer;
  const cacheControl = endpoint?.responses[status]?.cacheControl ?? 'no-store';
  const headers = ['X-Request-Id', request_id, 'Cache-Control', cacheControl];
  if (status !== 304 && status !== 204) {
    headers.push('Content-Type', answer.contentType ?? 'application/json');
    if (!isEvents(body)) headers.push('Content-Length', `${byteLength(body)}`);
  }
  if (path === TOKEN_PATH) headers.push('Pragma', 'no-cache');
  if (rate !== null) pushRateLimitHeaders(headers, rate);
  headers.push(...cors);
  if (answer.headers !== undefined) headers.push(...answer.headers);
  if (closing) headers.push('Connection', 'close');
  response.writeHead(status, headers);
}

/**
 * Only one piece is in memory, however slowly a client reads. Nothing is thrown where the client goes away.
 * @throws where the file cannot be read or has become shorter; the connection is cut then
 */
export async function sendFile(response: ServerResponse, file: FileBody): Promise<void> {
  try {
    await pipeline(piecesOf(file), response);
  } catch (error) {
    response.destroy();
    unlessClientGone(error);
  } finally {
    await file.handle.close();
  }
}

const PIECE_BYTES = 64 * 1024;

async function* piecesOf({ handle, start, bytes }: FileBody): AsyncGenerator<Buffer> {
  for (let sent = 0; sent < bytes; ) {
    const piece = Buffer.allocUnsafeSlow(Math.min(PIECE_BYTES, bytes - sent));
    const { bytesRead } = await inFileTurn(() => handle.read(piece, 0, piece.length, start + sent));
    if (bytesRead === 0) throw new Error('the file shrank while it was being sent');
    sent += bytesRead;
    yield piece.subarray(0, bytesRead);
  }
}

function unlessClientGone(error: unknown): void {
  if (!isErrorCode(error, 'ERR_STREAM_PREMATURE_CLOSE', 'ERR_STREAM_DESTROYED')) throw error;
}

export const isEvents = (body: Answer['body']): body is EventBody =>
  typeof body === 'object' && 'events' in body;

/** Neither a file nor events. */
export const isBytes = (body: Answer['body']): body is string | readonly Buffer[] =>
  typeof body === 'string' || Array.isArray(body);

export function byteLength(body: Exclude<Answer['body'], EventBody>): number {
  if (typeof body === 'string') return Buffer.byteLength(body);
  if ('handle' in body) return body.bytes;
  return body.reduce((bytes, piece) => bytes + piece.length, 0);
}
