/** A listening server: HTTP or TLS with a renewed certificate, the same limits, timeouts and room for connections. */
import { once } from 'node:events';
import { createServer, type ServerOptions } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { Server as TlsServer } from 'node:tls';
import { OTHER_ADDRESS, reachableUrl } from '../config/listening.ts';
import type { Settings } from '../config/schema.ts';
import type { Logger } from '../logger.ts';
import { Refused, reasonOf } from '../refused.ts';
import { MINUTE_MS, SECOND_MS } from '../time.ts';
import { type ConnectionLimits, watchConnections } from './connections.ts';
import { loadTlsPair, type RenewalOptions, type TlsPair, type TlsPaths, watchTlsPair } from './tls-pair.ts';

/** A legal request line reaches 15 KB: fifty publisher ids, twice, and forty domains. */
const HEADER_BYTES_MAX = 32 * 1024;
const CLOSING_CHECK_MS = 20;

/** Timeouts of connections: a slow one costs memory, and counts against `max_connections`. */
export const CONNECTION_TIMES = {
  /** TLS handshake. Node's default lets a silent client hold a connection for two minutes. */
  handshakeMs: 15 * SECOND_MS,
  /** A request's head, from its first byte or the connection's start. */
  headMs: 15 * SECOND_MS,
  /** A whole request, with its body. */
  requestMs: 30 * SECOND_MS,
  // Longer than the usual timeouts of proxies: a connection must not be closed while a proxy sends a request on it.
  keepAliveMs: 75 * SECOND_MS,
  /** Without any traffic, as with a client that never reads its answer. */
  idleMs: MINUTE_MS,
  /** An event stream without events gets a comment this often: shorter than `idleMs`, and than proxies' timeouts. */
  commentMs: 15 * SECOND_MS,
  checkEveryMs: 5 * SECOND_MS,
};

export type ConnectionTimes = Readonly<typeof CONNECTION_TIMES>;

export interface ListenerOptions extends ConnectionLimits, Pick<RenewalOptions, 'conditions' | 'now'> {
  readonly settings: Pick<Settings['server'], 'host' | 'port'> & TlsPaths;
  /** For the error when it cannot listen: its subject, and what to do. */
  readonly subject?: string;
  readonly advice?: string;
  readonly times?: ConnectionTimes;
  readonly log: Logger;
}

/** A listener that does not listen yet. @throws Refused `configuration` where the certificate cannot be used */
export async function openListener(options: ListenerOptions) {
  const { settings, subject = '', advice = OTHER_ADDRESS, times = CONNECTION_TIMES, log } = options;
  const pair = settings.tls_certificate === '' ? null : await loadTlsPair(settings);
  const server = createNodeServer(pair, times).setTimeout(times.idleMs);
  const connections = watchConnections(server, options);
  const onRenewed = ({ context }: TlsPair) => {
    if (server instanceof TlsServer) server.setSecureContext(context);
  };
  const renewal = pair === null ? null : watchTlsPair({ ...options, pair, onRenewed });
  return {
    server,
    connections,
    pair: () => renewal?.pair() ?? null,
    /** @returns its URL; @throws Refused `failed` when it cannot listen */
    async listen(): Promise<string> {
      const { host, port } = settings;
      const isListening = once(server, 'listening');
      server.listen(port, host);
      await isListening.catch((error: unknown) => {
        renewal?.close();
        const reason = `${subject}cannot listen on ${host}, port ${port}: ${reasonOf(error)}. ${advice}`;
        // Not `configuration`: a later attempt of the service manager may succeed.
        throw new Refused('failed', reason, { cause: error });
      });
      server.on('error', (error) => log.error({ err: error }, 'http server'));
      const listening = server.address();
      if (listening === null || typeof listening === 'string')
        throw new Error('the server is not listening on a port');
      return reachableUrl(pair === null ? 'http' : 'https', listening.address, listening.port);
    },
    /** Accepts nothing more, lets requests finish, and closes what is left after `graceMs`. */
    async close(graceMs: number): Promise<void> {
      renewal?.close();
      const closing = setInterval(() => server.closeIdleConnections(), CLOSING_CHECK_MS);
      const grace = setTimeout(() => server.closeAllConnections(), graceMs);
      await new Promise((resolve) => server.close(resolve));
      clearInterval(closing);
      clearTimeout(grace);
    },
  };
}

function createNodeServer(pair: TlsPair | null, times: ConnectionTimes) {
  const options: ServerOptions = {
    maxHeaderSize: HEADER_BYTES_MAX,
    // Node's own reply lacks our headers: the pipeline checks it.
    requireHostHeader: false,
    // Node would otherwise ignore all but the first of a repeated header: two credentials, or two hosts, could then be
    // read one way here and another way by a proxy.
    joinDuplicateHeaders: true,
    noDelay: true,
    headersTimeout: times.headMs,
    requestTimeout: times.requestMs,
    keepAliveTimeout: times.keepAliveMs,
    connectionsCheckingInterval: times.checkEveryMs,
  };
  if (pair !== null)
    return createTlsServer({ ...options, ...pair.context, handshakeTimeout: times.handshakeMs });
  // A client that has ended its side still gets all answers: Node has no option for it.
  return Object.assign(createServer(options), { httpAllowHalfOpen: true });
}
