/** Raw HTTP, so that a test can send what no client would. */
import { connect } from 'node:net';
import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { checkAnswer } from './checked-fetch.ts';

export interface RawAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
}

/** Much longer than a response takes, even among hundreds. */
const PATIENCE_MS = 120_000;

/** Sends bytes. @returns everything received until the connection ends, `isEnough` or the timeout */
export function sendBytes(
  host: string,
  bytes: Buffer,
  patienceMs = PATIENCE_MS,
  isEnough: (received: Buffer) => boolean = () => false,
): Promise<Buffer> {
  const { hostname, port } = new URL(`http://${host}`);
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const socket = connect(Number(port), hostname, () => socket.write(bytes));
    const end = () => {
      socket.destroy();
      resolve(Buffer.concat(chunks));
    };
    socket.setTimeout(patienceMs, end);
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
 * The answers within bytes, one for each method, interim ones left out; fewer when fewer came.
 *
 * @throws Error for what is no well-formed answer
 */
export function parseAnswers(bytes: Buffer, methods: readonly string[]): RawAnswer[] {
  const answers: RawAnswer[] = [];
  let at = 0;
  while (at < bytes.length) {
    const end = bytes.indexOf('\r\n\r\n', at);
    if (end < 0) throw new Error(`half a head: ${bytes.toString('latin1', at, at + 200)}`);
    const [line = '', ...fields] = bytes.toString('latin1', at, end).split('\r\n');
    const [, code] = /^HTTP\/1\.1 (\d{3}) /.exec(line) ?? [];
    if (code === undefined) throw new Error(`no status line: ${line.slice(0, 200)}`);
    const status = Number(code);
    const headers = new Headers(
      fields.map((field) => [field.split(':', 1)[0] ?? '', field.replace(/^[^:]*:\s*/, '')]),
    );
    at = end + 4;
    if (status < 200) continue;
    const hasBody = methods[answers.length] !== 'HEAD' && status !== 304 && status !== 204;
    const length = hasBody ? Number(headers.get('content-length')) : 0;
    if (!Number.isInteger(length) || at + length > bytes.length) {
      throw new Error(`${line}: ${length} bytes were said to come, ${bytes.length - at} came`);
    }
    const sent = bytes.subarray(at, at + length);
    answers.push({ status, headers, body: unpacked(sent, headers.get('content-encoding')).toString('utf8') });
    at += length;
  }
  return answers;
}

/** HEAD has no body to decode. */
function unpacked(bytes: Buffer, encoding: string | null): Buffer {
  if (bytes.length === 0 || encoding === null) return bytes;
  return encoding === 'gzip' ? gunzipSync(bytes) : zstdDecompressSync(bytes);
}

/**
 * Sends bytes, and with `thenEnd` the end of what is sent; the way back stays open.
 *
 * @returns all that comes back until the server ends the connection; what was cut off ends in `reset`
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

/** The responses to requests written as `METHOD target`, each checked against the document. */
export function checkedAnswers(received: string, requests: readonly string[]): RawAnswer[] {
  const parts = requests.map((request) => request.split(' '));
  const answers = parseAnswers(
    Buffer.from(received, 'latin1'),
    parts.map(([method = '']) => method),
  );
  for (const [at, answer] of answers.entries()) {
    const [method = '', target = ''] = parts[at] ?? [];
    checkAnswer({ method, target, ...answer });
  }
  return answers;
}
