/** HTTP by hand to a server of the test's own: bytes out, answers in, held against the OpenAPI document. */
import { connect } from 'node:net';
import { parseAnswers, type RawAnswer } from '../torture/http/exchange.ts';
import { checkAnswer } from './checked-fetch.ts';

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

/** The answers to requests given as `METHOD target`, each checked against the document. */
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
