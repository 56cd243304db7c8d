/** Malformed requests: violations of HTTP, and good requests with random bytes changed. */
import type { Prng } from '../../../src/tools/generate/prng.ts';
import type { FuzzFacts } from './requests.ts';

type Breakage = (facts: FuzzFacts) => string;

const GET = 'GET /v1/health HTTP/1.1\r\n';

/** Each must get a response. */
const BREAKAGES: readonly Breakage[] = [
  ({ host }) => `GET /v1/health HTTP/9.9\r\nHost: ${host}\r\n\r\n`,
  ({ host }) => `get /v1/health HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
  ({ host }) => `GET /v1/he\u0001alth HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
  ({ host }) => `BREW /v1/health HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
  () => `${GET}\r\n`,
  ({ host }) => `${GET}Host: ${host}\r\nHost: ${host}\r\n\r\n`,
  () => `${GET}Host: a b\r\n\r\n`,
  () => `${GET}Host: x/y@z\r\n\r\n`,
  ({ host }) => `${GET}Host: ${host}\r\nBad Name: x\r\n\r\n`,
  ({ host }) => `${GET}Host: ${host}\r\n: x\r\n\r\n`,
  ({ host }) => `${GET}Host: ${host}\r\nX: a\u0000b\r\n\r\n`,
  ({ host }) => `${GET}Host: ${host}\r\nContent-Length: -1\r\n\r\n`,
  ({ host }) => `${GET}Host: ${host}\r\nContent-Length: 1, 2\r\n\r\n`,
  ({ host }) => `${GET}Host: ${host}\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  ({ host }) => `${GET}Host: ${host}\r\nTransfer-Encoding: chunked, gzip\r\n\r\n`,
  ({ host }) => `${GET}Host: ${host}\r\nX: ${'x'.repeat(40_000)}\r\n\r\n`,
  ({ host }) => `GET /${'x'.repeat(40_000)} HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
  ({ host }) => `${GET}Host: ${host}\r\nExpect: the-unexpected\r\nConnection: close\r\n\r\n`,
  ({ host }) => `CONNECT ${host} HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
  () => '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003'.repeat(20),
  () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
];

export interface Malformed {
  readonly bytes: Buffer;
  /** Whether a response is required: changed bytes may still be the start of a good request. */
  readonly mustRespond: boolean;
}

/** @param good a well-formed request, some bytes of which may be changed */
export function makeMalformed(prng: Prng, facts: FuzzFacts, good: Buffer): Malformed {
  if (prng.chance(0.6)) {
    return { bytes: Buffer.from(prng.pick(BREAKAGES)(facts), 'latin1'), mustRespond: true };
  }
  const bytes = Buffer.from(good);
  for (let left = 1 + prng.below(4); left > 0; left -= 1) bytes[prng.below(bytes.length)] = prng.below(256);
  const cut = prng.chance(0.2) ? prng.below(bytes.length) : bytes.length;
  return { bytes: bytes.subarray(0, cut), mustRespond: false };
}
