/** Timeouts of connections: a slow one costs memory, and counts against `max_connections`. */
import { MINUTE_MS, SECOND_MS } from '../time.ts';

export interface ConnectionTimes {
  /** TLS handshake. Node's default lets a silent client hold a connection for two minutes. */
  readonly handshakeMs: number;
  /** A request's head, from its first byte or the connection's start. */
  readonly headMs: number;
  /** A request with its body. */
  readonly requestMs: number;
  /** The body of a request for a token. */
  readonly tokenBodyMs: number;
  /** Between two requests. */
  readonly keepAliveMs: number;
  /** Without any traffic, as with a client that never reads its answer. */
  readonly idleMs: number;
  /** How often connections are checked for these. */
  readonly checkEveryMs: number;
}

export const CONNECTION_TIMES: ConnectionTimes = {
  handshakeMs: 15 * SECOND_MS,
  headMs: 15 * SECOND_MS,
  requestMs: 30 * SECOND_MS,
  tokenBodyMs: 10 * SECOND_MS,
  // Longer than the usual timeouts of proxies: a connection must not be closed while a proxy sends a request on it.
  keepAliveMs: 75 * SECOND_MS,
  idleMs: MINUTE_MS,
  checkEveryMs: 5 * SECOND_MS,
};
