/** Reads a request's body, with a limit on its size; the listener limits its time. */
import type { IncomingMessage } from 'node:http';
import { Refused, reasonOf } from '../refused.ts';

/**
 * `too large` is known before the end; the rest is read and discarded, so that the client can read the answer. `broken`:
 * malformed or too slow, or the client went away before its end.
 */
export type Body = Buffer | 'too large' | 'broken';

const brokenBodies = new WeakSet<IncomingMessage>();
const BROKEN = Symbol('broken');

/** The rest of the body cannot be read: a {@link readBody} in progress, or a later one, ends as `broken`. */
export function breakBody(request: IncomingMessage): void {
  brokenBodies.add(request);
  request.emit(BROKEN);
}

export async function readBody(request: IncomingMessage, bytesMax: number): Promise<Body> {
  // A client that sends `Expect: 100-continue` waits for the answer before it sends a body.
  if (Number(request.headers['content-length'] ?? 0) > bytesMax) return 'too large';
  if (brokenBodies.has(request) || (request.destroyed && !request.complete)) return 'broken';
  return new Promise((resolve) => {
    const pieces: Buffer[] = [];
    let bytes = 0;
    const finish = (body: Body) => {
      request.off('data', onData);
      request.resume();
      resolve(body);
    };
    const onData = (piece: Buffer) => {
      pieces.push(piece);
      bytes += piece.length;
      if (bytes > bytesMax) finish('too large');
    };
    request.on('data', onData);
    request.once('end', () => finish(Buffer.concat(pieces)));
    // Only the first outcome counts.
    for (const event of [BROKEN, 'close', 'error']) request.on(event, () => finish('broken'));
  });
}

/** Reads a JSON body; an empty object for none. @throws Refused `content_too_large`, `invalid_request` */
export async function readJson(request: IncomingMessage, bytesMax: number): Promise<unknown> {
  const body = await readBody(request, bytesMax);
  if (body === 'too large')
    throw new Refused('content_too_large', `the body must not exceed ${bytesMax} bytes`);
  if (body === 'broken') throw new Refused('invalid_request', 'the body is incomplete');
  if (body.length === 0) return {};
  // What a page can send anywhere without asking has another type.
  if (!/^application\/json\b/i.test(request.headers['content-type'] ?? ''))
    throw new Refused('invalid_request', 'Content-Type: expected application/json');
  try {
    return JSON.parse(body.toString());
  } catch (error) {
    throw new Refused('invalid_request', `the body is not JSON: ${reasonOf(error)}`);
  }
}
