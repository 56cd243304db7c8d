/** Reads a request's body: not more of it than is wanted, and not for longer than is good. */
import type { IncomingMessage } from 'node:http';

export type Body =
  | { readonly kind: 'whole'; readonly bytes: Buffer }
  /** Told as soon as it is known; what still comes is read and thrown away, so that the answer can be read. */
  | { readonly kind: 'too_large' }
  | { readonly kind: 'too_slow' }
  /** It is no body, by the rules of HTTP, or the client went away before its end. */
  | { readonly kind: 'broken' };

const brokenBodies = new WeakSet<IncomingMessage>();
const BROKEN = Symbol('broken');

/** Tells whoever reads a request's body, now or later, that the rest of it cannot be read. */
export function breakBody(request: IncomingMessage): void {
  brokenBodies.add(request);
  request.emit(BROKEN);
}

/** @param timeoutMs from now to the body's end */
export function readBody(request: IncomingMessage, bytesMax: number, timeoutMs: number): Promise<Body> {
  // One that is announced is not waited for: a client may want to hear of it before it sends a thing.
  if (Number(request.headers['content-length'] ?? 0) > bytesMax) {
    return Promise.resolve({ kind: 'too_large' });
  }
  if (brokenBodies.has(request) || (request.destroyed && !request.complete)) {
    return Promise.resolve({ kind: 'broken' });
  }
  return new Promise((resolve) => {
    const pieces: Buffer[] = [];
    let bytes = 0;
    const settle = (body: Body) => {
      clearTimeout(timer);
      request.off('data', onData);
      request.resume();
      resolve(body);
    };
    const onData = (piece: Buffer) => {
      pieces.push(piece);
      bytes += piece.length;
      if (bytes > bytesMax) settle({ kind: 'too_large' });
    };
    const timer = setTimeout(() => settle({ kind: 'too_slow' }), timeoutMs);
    request.on('data', onData);
    request.once('end', () => settle({ kind: 'whole', bytes: Buffer.concat(pieces) }));
    // After the end, and after a second outcome, these change nothing.
    request.once(BROKEN, () => settle({ kind: 'broken' }));
    request.once('close', () => settle({ kind: 'broken' }));
    request.on('error', () => settle({ kind: 'broken' }));
  });
}
