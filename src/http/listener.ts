/**
 * The listening socket: plain HTTP or TLS, with the same limits and timeouts, from its start to its end.
 *
 * https://nodejs.org/api/http.html, https://nodejs.org/api/https.html
 */
import { createServer, type Server, type ServerOptions } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { OTHER_ADDRESS } from '../config/listening.ts';
import { Refused, reasonOf } from '../refused.ts';
import type { ConnectionTimes } from './connection-times.ts';
import { secureContext, type TlsPair } from './tls-pair.ts';

/** A legal request line reaches 15 KB: fifty publisher ids, twice, and forty domains. */
const HEADER_BYTES_MAX = 32 * 1024;
/** How often a closing server looks for connections that have become idle. */
const CLOSING_CHECK_MS = 20;

const OPTIONS: ServerOptions = {
  maxHeaderSize: HEADER_BYTES_MAX,
  // Its own reply lacks our headers; the check is made with the others.
  requireHostHeader: false,
  // Of a header that is given twice, Node would otherwise pass over all but the first: two credentials, or two
  // hosts, are then read in one way here and in another by a proxy.
  joinDuplicateHeaders: true,
  noDelay: true,
};

/** A server that does not listen yet, with what takes a renewed certificate into use for new connections. */
export interface Listener {
  readonly server: Server;
  renew(pair: TlsPair): void;
}

/** @param pair null for plain HTTP */
export function createListener(pair: TlsPair | null, times: ConnectionTimes): Listener {
  const options = { ...OPTIONS, ...timeoutsOf(times) };
  if (pair === null) {
    const server = createServer(options);
    // Who has sent all, and says so, still gets the answers. Without this Node, which knows it by no option, drops
    // those that are not begun. (Node's TLS ends both ways at once, as its clients do.)
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

function timeoutsOf({ headMs, requestMs, keepAliveMs, checkEveryMs }: ConnectionTimes): ServerOptions {
  return {
    headersTimeout: headMs,
    requestTimeout: requestMs,
    keepAliveTimeout: keepAliveMs,
    connectionsCheckingInterval: checkEveryMs,
  };
}

/** Settles when it listens. @param start has it do so; @throws Refused `failed` when it cannot */
export function listening(
  server: Server,
  { host, port }: { readonly host: string; readonly port: number },
  start: (onListening: () => void) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => {
      reject(
        new Refused(
          // It may come: another process ends, an address is brought up. A service manager tries again.
          'failed',
          `cannot listen on ${host}, port ${port}: ${reasonOf(error)}. ${OTHER_ADDRESS}`,
          { cause: error },
        ),
      );
    });
    start(() => {
      server.removeAllListeners('error');
      resolve();
    });
  });
}

/** Accepts nothing more, lets requests finish, and closes what is left after `graceMs`. */
export function closeServer(server: Server, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    const looking = setInterval(() => server.closeIdleConnections(), CLOSING_CHECK_MS);
    const grace = setTimeout(() => server.closeAllConnections(), graceMs);
    server.close(() => {
      clearInterval(looking);
      clearTimeout(grace);
      resolve();
    });
  });
}

/** Where it listens; a wildcard address is shown as the loopback one, an IPv6 address in brackets (RFC 3986, 3.2.2). */
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
