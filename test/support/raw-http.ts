/** Raw HTTP, for requests that no client library would send. */
import { connect, type Socket } from 'node:net';
import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { checkResponse } from './checked-fetch.ts';

export type RawResponse = Readonly<{ status: number; headers: Headers; body: string }>;

/** Much longer than a response takes, even among hundreds. */
const TIMEOUT_MS = 120_000;

/** A request without a body. @param headers lines, each with its end */
export const rawRequest = (request: string, headers = ''): string =>
  `${request} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`;

/** The line of a key. */
export const bearer = (key: string) => `Authorization: Bearer ${key}\r\n`;

/** Sends bytes on a new connection. @returns everything received until it ends, `isEnough` or the timeout */
export function sendBytes(
  socket: Socket,
  bytes: Buffer,
  isEnough: (received: Buffer) => boolean = () => false,
  timeoutMs = TIMEOUT_MS,
): Promise<Buffer> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    socket.write(bytes);
    const end = () => {
      socket.destroy();
      resolve(Buffer.concat(chunks));
    };
    socket.setTimeout(timeoutMs, end);
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      if (isEnough(Buffer.concat(chunks))) end();
    });
    // After a reset, keep what was received before.
    socket.on('error', () => {});
    socket.on('close', end);
  });
}

/**
 * Parses received bytes into responses, without interim ones; there may be fewer than `methods`.
 *
 * @param methods of the requests, in order
 * @throws Error if a response is malformed or incomplete
 */
export function parseResponses(bytes: Buffer, methods: readonly string[]): RawResponse[] {
  const responses: RawResponse[] = [];
  let at = 0;
  while (at < bytes.length) {
    const end = bytes.indexOf('\r\n\r\n', at);
    if (end < 0) throw new Error(`incomplete head: ${bytes.toString('latin1', at, at + 200)}`);
    const [line = '', ...fields] = bytes.toString('latin1', at, end).split('\r\n');
    const [, code] = /^HTTP\/1\.1 (\d{3}) /.exec(line) ?? [];
    if (code === undefined) throw new Error(`no status line: ${line.slice(0, 200)}`);
    const status = Number(code);
    const headers = new Headers(
      fields.map((field) => [field.split(':', 1)[0] ?? '', field.replace(/^[^:]*:\s*/, '')]),
    );
    at = end + 4;
    if (status < 200) continue;
    const hasBody = methods[responses.length] !== 'HEAD' && status !== 304 && status !== 204;
    const length = hasBody ? Number(headers.get('content-length')) : 0;
    if (!Number.isInteger(length) || at + length > bytes.length)
      throw new Error(`${line}: Content-Length is ${length}, but ${bytes.length - at} bytes were received`);
    const sent = bytes.subarray(at, at + length);
    const body = unpacked(sent, headers.get('content-encoding')).toString('utf8');
    responses.push({ status, headers, body });
    at += length;
  }
  return responses;
}

/** HEAD has no body to decode. */
function unpacked(bytes: Buffer, encoding: string | null): Buffer {
  if (bytes.length === 0 || encoding === null) return bytes;
  return encoding === 'gzip' ? gunzipSync(bytes) : zstdDecompressSync(bytes);
}

/**
 * Sends bytes, and with `thenEnd` closes this side of the connection.
 *
 * @returns everything received until the server ends the connection, with `reset` at the end if it was reset
 */
export function exchangeBytes(port: number, bytes: string | Buffer, thenEnd = false): Promise<string> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }, () => {
      if (thenEnd) socket.end(bytes);
      else socket.write(bytes);
    });
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.on('error', () => chunks.push(Buffer.from('reset')));
    socket.on('end', () => socket.end());
    socket.on('close', () => resolve(Buffer.concat(chunks).toString('latin1')));
  });
}

/** What a socket has received so far, and whether the server has ended or reset it. */
export function follow(socket: Socket) {
  let text = '';
  let hasEnded = false;
  const end = () => {
    hasEnded = true;
  };
  socket.on('data', (chunk) => {
    text += chunk;
  });
  for (const event of ['end', 'error', 'close']) socket.on(event, end);
  return { socket, received: () => text, ended: () => hasEnded };
}

/** The responses to requests written as `METHOD target`, each checked against the document. */
export function checkedResponses(received: string, requests: readonly string[]): RawResponse[] {
  const parts = requests.map((request) => request.split(' '));
  const methods = parts.map(([method = '']) => method);
  const responses = parseResponses(Buffer.from(received, 'latin1'), methods);
  for (const [at, answer] of responses.entries()) {
    const [method = '', target = ''] = parts[at] ?? [];
    checkResponse({ method, target, ...answer });
  }
  return responses;
}
