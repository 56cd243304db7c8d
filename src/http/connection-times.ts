/** How long a connection may take for what. Slow ones cost memory and a place among those that can be open. */
import { MINUTE_MS, SECOND_MS } from '../time.ts';

export interface ConnectionTimes {
  /** For the handshake of TLS. Node's own would let a client that says nothing hold a connection for two minutes. */
  readonly handshakeMs: number;
  /** For a request's head, from its first byte or the connection's start. */
  readonly headMs: number;
  /** For a request with its body. */
  readonly requestMs: number;
  /** For the body of a request for a token. */
  readonly tokenBodyMs: number;
  /** Between two requests. */
  readonly keepAliveMs: number;
  /** While nothing moves, as with a client that never reads its answer. */
  readonly idleMs: number;
  /** How often those are looked for that are late. */
  readonly checkEveryMs: number;
}

export const CONNECTION_TIMES: ConnectionTimes = {
  handshakeMs: 15 * SECOND_MS,
  headMs: 15 * SECOND_MS,
  requestMs: 30 * SECOND_MS,
  tokenBodyMs: 10 * SECOND_MS,
  // Longer than proxies keep theirs, so that it is not us who closes as one sends.
  keepAliveMs: 75 * SECOND_MS,
  idleMs: MINUTE_MS,
  checkEveryMs: 5 * SECOND_MS,
};
