/**
 * A listening server, of the API or of the administration: plain HTTP or TLS with a certificate that is renewed, with the
 * same limits, timeouts and room for connections.
 *
 * https://nodejs.org/api/http.html, https://nodejs.org/api/https.html
 */
import { once } from 'node:events';
import { createServer, type Server, type ServerOptions } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { OTHER_ADDRESS } from '../config/listening.ts';
import type { Settings } from '../config/schema.ts';
import type { Logger } from '../log.ts';
import { Refused, reasonOf } from '../refused.ts';
import { MINUTE_MS } from '../time.ts';
import { type ConnectionRoom, createConnectionRoom, type RoomOptions } from './connection-limit.ts';
import { CONNECTION_TIMES, type ConnectionTimes } from './connection-times.ts';
import { type Connections, watchConnections } from './connections.ts';
import type { Limit } from './request-metrics.ts';
import { openTls, secureContext, type TlsPair } from './tls-pair.ts';
import { type TlsRenewal, type TlsRenewalOptions, watchTlsPair } from './tls-renewal.ts';

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

export interface ListenerOptions extends Pick<TlsRenewalOptions, 'conditions' | 'now'> {
  readonly settings: Pick<Settings['server'], 'host' | 'port' | 'tls_certificate' | 'tls_key'>;
  /** Of the settings that name the certificate; default: server. */
  readonly section?: 'admin';
  readonly limits: RoomOptions['limits'];
  /** Called for each connection that a limit closed. */
  readonly onRefused?: (limit: Limit) => void;
  readonly onRenewed?: (pair: TlsPair) => void;
  /** For the error when it cannot listen: its subject, and what to do. */
  readonly subject?: string;
  readonly advice?: string;
  readonly times?: ConnectionTimes;
  readonly log: Logger;
}

export interface Listener {
  /** Requests and errors are events of it. */
  readonly server: Server;
  readonly connections: Connections;
  readonly room: Pick<ConnectionRoom, 'open'>;
  /** The certificate in use; null without TLS. */
  pair(): TlsPair | null;
  /**
   * @param start calls listen of the server
   * @returns its URL
   * @throws Refused `failed` when it cannot listen
   */
  listen(start?: (port: number, host: string) => void): Promise<string>;
  /** Checks for a renewed certificate now, not within seconds; null without TLS. */
  readonly renewCertificate: (() => void) | null;
  /** Accepts nothing more, lets requests finish, and closes what is left after `graceMs`. */
  close(graceMs: number): Promise<void>;
}

/** A listener that does not listen yet. @throws Refused `configuration` where the certificate cannot be used */
export async function openListener(options: ListenerOptions): Promise<Listener> {
  const { settings, section, limits, times = CONNECTION_TIMES, log } = options;
  const tls = await openTls(settings, section && { section });
  const { server, renew } = createNodeServer(tls?.pair ?? null, times);
  const room = createConnectionRoom({ limits, onRefused: onRefusedConnection(options) });
  const connections = watchConnections(server, room);
  let pair = tls?.pair ?? null;
  const onRenewed = (renewed: TlsPair) => {
    renew(renewed);
    pair = renewed;
    options.onRenewed?.(renewed);
  };
  let renewal: TlsRenewal | null = null;
  return {
    server,
    connections,
    room,
    pair: () => pair,
    async listen(start = (port, host) => server.listen(port, host)) {
      await listening(server, options, start);
      if (tls !== null) renewal = watchTlsPair({ ...options, ...tls, onRenewed });
      server.on('error', (error) => log.error({ err: error }, 'http server'));
      return listeningUrl(server, tls === null ? 'http' : 'https');
    },
    renewCertificate: tls === null ? null : () => void renewal?.check(),
    close(graceMs) {
      renewal?.close();
      return closeServer(server, graceMs);
    },
  };
}

/** @param pair null for plain HTTP */
function createNodeServer(pair: TlsPair | null, times: ConnectionTimes) {
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
  return { server, renew: (renewed: TlsPair) => server.setSecureContext(secureContext(renewed)) };
}

/** Counts connections that were closed, and logs them at most once a minute: there may be thousands. */
function onRefusedConnection({ onRefused, log, now }: ListenerOptions): RoomOptions['onRefused'] {
  let loggedMs = Number.NEGATIVE_INFINITY;
  let unlogged = 0;
  return (address, limit) => {
    onRefused?.(limit);
    unlogged += 1;
    const nowMs = now();
    // Also after the clock was set back.
    if (Math.abs(nowMs - loggedMs) < MINUTE_MS) return;
    log.warn({ address, limit, connections: unlogged }, 'connections were closed: too many are open');
    loggedMs = nowMs;
    unlogged = 0;
  };
}

async function listening(
  server: Server,
  options: ListenerOptions,
  start: (port: number, host: string) => void,
): Promise<void> {
  const { settings, subject = '', advice = OTHER_ADDRESS } = options;
  const { host, port } = settings;
  const isListening = once(server, 'listening');
  start(port, host);
  try {
    await isListening;
  } catch (error) {
    const reason = `${subject}cannot listen on ${host}, port ${port}: ${reasonOf(error)}. ${advice}`;
    // Not `configuration`: a later attempt of the service manager may succeed.
    throw new Refused('failed', reason, { cause: error });
  }
}

function closeServer(server: Server, graceMs: number): Promise<void> {
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
function listeningUrl(server: Server, scheme: 'http' | 'https'): string {
  const address = server.address();
  if (address === null || typeof address === 'string')
    throw new Error('the server is not listening on a port');
  return `${scheme}://${loopbackIfWildcard(address)}:${address.port}`;
}

function loopbackIfWildcard({ address, family }: AddressInfo): string {
  if (family === 'IPv6') return address === '::' ? '[::1]' : `[${address}]`;
  return address === '0.0.0.0' ? '127.0.0.1' : address;
}
