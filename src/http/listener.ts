/**
 * The listening server: plain HTTP or TLS, with the same limits and timeouts.
 *
 * https://nodejs.org/api/http.html, https://nodejs.org/api/https.html
 */
import { once } from 'node:events';
import { createServer, type Server, type ServerOptions } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { OTHER_ADDRESS } from '../config/listening.ts';
import { Refused, reasonOf } from '../refused.ts';
import type { ConnectionTimes } from './connection-times.ts';
import { secureContext, type TlsPair } from './tls-pair.ts';

/** A legal request line reaches 15 KB: fifty publisher ids, twice, and forty domains. */
const HEADER_BYTES_MAX = 32 * 1024;
/** How often a closing server closes connections that have become idle. */
const CLOSING_CHECK_MS = 20;

const OPTIONS: ServerOptions = {
  maxHeaderSize: HEADER_BYTES_MAX,
  // Node's own reply lacks our headers: the pipeline checks it.
  requireHostHeader: false,
  // Node would otherwise ignore all but the first of a repeated header: two credentials, or two hosts, could then be
  // read one way here and another way by a proxy.
  joinDuplicateHeaders: true,
  noDelay: true,
};

/** A server that does not listen yet. */
export interface Listener {
  readonly server: Server;
  /** Uses a renewed certificate for new connections. */
  renew(pair: TlsPair): void;
}

/** @param pair null for plain HTTP */
export function createListener(pair: TlsPair | null, times: ConnectionTimes): Listener {
  const options = {
    ...OPTIONS,
    headersTimeout: times.headMs,
    requestTimeout: times.requestMs,
    keepAliveTimeout: times.keepAliveMs,
    connectionsCheckingInterval: times.checkEveryMs,
  };
  if (pair === null) {
    const server = createServer(options);
    // A client that has ended its side still gets all answers. Node drops those that are not begun, and has no option
    // for it. (Node's TLS ends both sides at once, as clients do.)
    Object.assign(server, { httpAllowHalfOpen: true });
    server.setTimeout(times.idleMs);
    return { server, renew: () => {} };
  }
  const server = createTlsServer({
    ...options,
    ...secureContext(pair),
    handshakeTimeout: times.handshakeMs,
  });
  server.setTimeout(times.idleMs);
  return { server, renew: (renewed) => server.setSecureContext(secureContext(renewed)) };
}

/** Resolves when it listens. @param start calls listen; @throws Refused `failed` when it cannot */
export async function listening(
  server: Server,
  { host, port }: { readonly host: string; readonly port: number },
  start: () => void,
): Promise<void> {
  const isListening = once(server, 'listening');
  start();
  try {
    await isListening;
  } catch (error) {
    const reason = `cannot listen on ${host}, port ${port}: ${reasonOf(error)}. ${OTHER_ADDRESS}`;
    // Not `configuration`: a later attempt of the service manager may succeed.
    throw new Refused('failed', reason, { cause: error });
  }
}

/** Accepts nothing more, lets requests finish, and closes what is left after `graceMs`. */
export function closeServer(server: Server, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    const closing = setInterval(() => server.closeIdleConnections(), CLOSING_CHECK_MS);
    const grace = setTimeout(() => server.closeAllConnections(), graceMs);
    server.close(() => {
      clearInterval(closing);
      clearTimeout(grace);
      resolve();
    });
  });
}

/** The URL; loopback for a wildcard address, an IPv6 address in brackets (RFC 3986, 3.2.2). */
export function listeningUrl(server: Server, scheme: 'http' | 'https'): string {
  const address = server.address();
  if (address === null || typeof address === 'string')
    throw new Error('the server is not listening on a port');
  return `${scheme}://${loopbackIfWildcard(address)}:${address.port}`;
}

function loopbackIfWildcard({ address, family }: AddressInfo): string {
  if (family === 'IPv6') return address === '::' ? '[::1]' : `[${address}]`;
  return address === '0.0.0.0' ? '127.0.0.1' : address;
}
