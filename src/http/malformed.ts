/** What is no request, with the reply that it gets, which looks like every other answer. Node's own do not. */
import { errorCode, isErrorCode } from '../refused.ts';
import type { Problem } from './problem.ts';
import { type FindRoute, NO_PATH, splitTarget } from './routes.ts';

/** A request of which at most the first line could be read. */
export interface Malformed {
  /** Empty where it could not be read; `target` too. */
  readonly method: string;
  readonly target: string;
  readonly problem: Problem;
  readonly headers?: readonly string[];
}

const REQUEST_LINE = /^([\w!#$%&'*+.^`|~-]+) (\S+) HTTP\/1\.[01]\r?\n/;
const BEGINNING = /^([A-Z]+) (\S+) HTTP\//;

/** @param error that the parser or a timeout gave; @param find of the route table: the parser knows few methods */
export function malformedBy(error: Error, find: FindRoute): Malformed {
  if (isErrorCode(error, 'HPE_INVALID_METHOD')) {
    const [, method, target] = REQUEST_LINE.exec(headOf(error, Number.POSITIVE_INFINITY)) ?? [];
    if (method !== undefined && target !== undefined) {
      const found = find(splitTarget(target).path, method);
      if ('problem' in found) return { method, target, ...found };
    }
  }
  const reason = REASONS[errorCode(error)] ?? { detail: 'The request is not well-formed HTTP/1.1.' };
  const [, method = '', target = ''] = BEGINNING.exec(headOf(error, 0)) ?? [];
  return { method, target, problem: { code: 'invalid_request', ...reason } };
}

const REASONS: Readonly<Record<string, Pick<Problem, 'status' | 'detail'>>> = {
  HPE_HEADER_OVERFLOW: { status: 431, detail: 'The request line and headers are too large.' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, detail: 'The request was not received in time.' },
  HPE_INVALID_URL: {
    detail:
      'The request target is not well-formed: expected a path in which all characters outside of ASCII are percent-encoded.',
  },
};

/** A CONNECT names an address, which is no path of this service. */
export const CONNECT: Malformed = { method: 'CONNECT', target: '', ...NO_PATH };

export const PLAIN_HTTP: Malformed = {
  method: '',
  target: '',
  problem: { code: 'invalid_request', detail: 'This port accepts HTTPS only.' },
};

/** Whether TLS failed: the client cannot read an answer then. */
export const isTlsFailure = (error: Error): error is Error & { readonly code: string } =>
  /^ERR_(SSL|TLS)_/.test(errorCode(error));

/** The head in which the parser stopped: up to that place, and so many bytes further. */
function headOf(error: Error, further: number): string {
  if (!('rawPacket' in error) || !(error.rawPacket instanceof Uint8Array)) return '';
  const read = 'bytesParsed' in error ? Number(error.bytesParsed) : 0;
  const text = Buffer.from(error.rawPacket).toString('latin1');
  const start = text.slice(0, read).lastIndexOf('\r\n\r\n') + 1;
  return text.slice(start, read + further).replace(/^[\r\n]+/, '');
}
