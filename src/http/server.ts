/**
 * The HTTP server: its sockets, limits and timeouts, and the one door to polka.
 *
 * https://nodejs.org/api/http.html
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import polka from 'polka';
import type { AccessReader } from '../auth/access-reader.ts';
import { type AccessTokens, createAccessTokens } from '../auth/token.ts';
import type { Settings } from '../config/schema.ts';
import { CONTENT_TYPES, EXPORT_OF_CONTENT_TYPE } from '../detection/content-type.ts';
import type { HealthSource } from '../health/monitor.ts';
import { createDailyAllowance, type DailyAllowance } from '../limits/daily-allowance.ts';
import type { DailyRows } from '../limits/daily-rows.ts';
import { createRequestRate } from '../limits/request-rate.ts';
import { createTokenRate } from '../limits/token-rate.ts';
import { createUnseenKeyIds } from '../limits/unseen-key-ids.ts';
import type { Logger } from '../log.ts';
import type { RecentDeliveries } from '../query/delivery.ts';
import { createQueryCursors } from '../query/query-cursor.ts';
import { createStreamCursors } from '../query/stream-cursor.ts';
import { Refused } from '../refused.ts';
import type { Database } from '../store/database.ts';
import { deriveKey } from '../store/derived-key.ts';
import { MINUTE_MS, type Now, SECOND_MS } from '../time.ts';
import { createClientAddress } from './client-address.ts';
import { watchConnections } from './connections.ts';
import { guardDamaged } from './damage.ts';
import { changesRoute } from './endpoints/changes.ts';
import { detectionRoute } from './endpoints/detection.ts';
import { healthRoute } from './endpoints/health.ts';
import { meRoute } from './endpoints/me.ts';
import { periodRoute } from './endpoints/period.ts';
import { photoRoute } from './endpoints/photo.ts';
import { schemaRoute } from './endpoints/schema.ts';
import { tokenRoute } from './endpoints/token.ts';
import { answerRequest, type Judge, refuseExpectation, refuseUnrouted } from './judgement.ts';
import { CONNECT_REPLY, malformedReply, type RawReply, replyRaw } from './malformed.ts';
import { createRouteTable, type Route, splitTarget } from './routes.ts';

export interface ServerOptions {
  readonly config: Pick<Settings, 'server' | 'exports' | 'limits' | 'photos'>;
  readonly stores: {
    /** A reader on `detections.db`. */
    readonly detections: Database;
    readonly access: AccessReader;
  };
  readonly health: HealthSource;
  /** Of the data folder. */
  readonly secret: Buffer;
  /** Delivery times that are not in the database yet; read at every request. */
  readonly recentDeliveries: RecentDeliveries;
  /** What was used of the daily allowances; the caller has it kept over a restart. */
  readonly dailyRows: DailyRows;
  readonly log: Logger;
  readonly now: Now;
}

export interface RunningServer {
  /** Where it listens; a wildcard address is shown as the loopback one. */
  readonly url: string;
  /**
   * Accepts nothing more, lets requests finish, and closes what is left after `graceMs`. Stores stay open: they are
   * the caller's.
   */
  close(graceMs: number): Promise<void>;
}

/** A legal request line reaches 15 KB: fifty publisher ids, twice, and forty domains. */
const HEADER_BYTES_MAX = 32 * 1024;
/** Slow heads and bodies: 408. */
const HEADERS_TIMEOUT_MS = 15 * SECOND_MS;
const REQUEST_TIMEOUT_MS = 30 * SECOND_MS;
const TIMEOUT_CHECK_MS = 5 * SECOND_MS;
/** Longer than proxies keep theirs, so that it is not us who closes as one sends. */
const KEEP_ALIVE_MS = 75 * SECOND_MS;
/** A connection on which nothing moves, such as a client that never reads its answer. */
const SOCKET_IDLE_MS = MINUTE_MS;
/** How often a closing server looks for connections that have become idle. */
const CLOSING_CHECK_MS = 20;

/** @throws Refused `configuration` when it cannot listen */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { config, log } = options;
  const server = createServer({
    maxHeaderSize: HEADER_BYTES_MAX,
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionsCheckingInterval: TIMEOUT_CHECK_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // Its own reply lacks our headers; the check is made with the others.
    requireHostHeader: false,
    // Of a header that is given twice, Node would otherwise pass over all but the first: two credentials, or two
    // hosts, are then read in one way here and in another by a proxy.
    joinDuplicateHeaders: true,
    noDelay: true,
  });
  // Who has sent all, and says so, still gets the answers. Without this Node, which knows it by no option, drops those
  // that are not begun.
  Object.assign(server, { httpAllowHalfOpen: true });
  server.setTimeout(SOCKET_IDLE_MS);
  server.maxConnections = config.server.max_connections;
  const state = { baseUrl: config.server.base_url, isClosing: false };
  const tokens = createAccessTokens(options.secret);
  const allowance = createDailyAllowance(options.dailyRows, config.limits.daily_rows);
  const routes = createRoutes(options, tokens, allowance, () => state.baseUrl).map((route) =>
    guardDamaged(route, options.health),
  );
  const judge: Judge = {
    find: createRouteTable(routes),
    access: options.stores.access,
    tokens,
    unseen: createUnseenKeyIds(config.limits.unseen_key_ids_per_minute),
    rate: createRequestRate(config.limits.requests_per_minute),
    allowance,
    clientAddress: createClientAddress(config.server.trusted_proxies),
    baseUrl: () => state.baseUrl,
    isClosing: () => state.isClosing,
    log,
    now: options.now,
    connections: watchConnections(server),
  };
  answerMalformed(server, judge);
  server.on('checkExpectation', (request, response) => refuseExpectation(judge, request, response));
  await listen(server, routes, judge, config.server);
  server.on('error', (error) => log.error({ err: error }, 'http server'));
  const url = listeningUrl(server);
  if (state.baseUrl === '') state.baseUrl = url;
  return {
    url,
    close(graceMs) {
      state.isClosing = true;
      return closeServer(server, graceMs);
    },
  };
}

/** Every endpoint, one row each. */
function createRoutes(
  { config, stores, health, secret, recentDeliveries, now }: ServerOptions,
  tokens: AccessTokens,
  allowance: DailyAllowance,
  baseUrl: () => string,
): Route[] {
  const enabledContentTypes = new Set(
    CONTENT_TYPES.filter((contentType) => config.exports[EXPORT_OF_CONTENT_TYPE[contentType]].enabled),
  );
  const cursors = createStreamCursors(secret);
  const { detections, access } = stores;
  const tokenRate = createTokenRate(config.limits.token_requests_per_minute);
  return [
    changesRoute({ detections, cursors, recentDeliveries, enabledContentTypes, baseUrl }),
    periodRoute({ detections, cursors: createQueryCursors(secret), enabledContentTypes, baseUrl }),
    detectionRoute({ detections, enabledContentTypes, baseUrl }),
    meRoute({ detections, enabledContentTypes, allowance, limits: config.limits }),
    schemaRoute(),
    healthRoute(health),
    tokenRoute({ access, tokens, rate: tokenRate, now }),
    photoRoute({ folder: config.photos.folder, key: deriveKey(secret, 'photo') }),
  ];
}

/** Hands requests to polka, which hands those that the table lets through to their endpoint. */
function listen(
  server: Server,
  routes: readonly Route[],
  judge: Judge,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<void> {
  const router = polka({ server });
  router.parse = (request) => parsedUrl(splitTarget(request.url ?? '').path);
  router.use((request, response, next) => {
    judge.connections.inTurn(request, response, () => {
      if (!refuseUnrouted(judge, request, response)) next();
    });
  });
  // Of two patterns that match, polka takes the one added first: fixed paths come before those that vary.
  const inOrder = [...routes].sort((a, b) => Number(a.path.endsWith('}')) - Number(b.path.endsWith('}')));
  for (const route of inOrder) {
    const pattern = route.path.replace(/\{(\w+)\}$/, ':$1');
    for (const method of route.head ? ([route.method, 'HEAD'] as const) : [route.method]) {
      router.add(method, pattern, (request, response) => answerRequest(judge, route, request, response));
    }
  }
  return new Promise((resolve, reject) => {
    server.once('error', (error) => {
      reject(
        new Refused(
          'configuration',
          `cannot listen on ${host}, port ${port}: ${error.message}. Choose another with --host and --port.`,
          { cause: error },
        ),
      );
    });
    router.listen(port, host, () => {
      server.removeAllListeners('error');
      resolve();
    });
  });
}

/** In place of polka's own reading of the query, which the endpoints read themselves. */
function parsedUrl(path: string) {
  return {
    pathname: path,
    path,
    href: path,
    query: null,
    search: null,
    auth: null,
    hash: null,
    host: null,
    hostname: null,
    port: null,
    protocol: null,
    slashes: null,
  };
}

function answerMalformed(server: Server, judge: Judge): void {
  const breakOff = (socket: Duplex, reply: RawReply) =>
    judge.connections.breakOff(socket, () => replyRaw(socket, reply, judge.baseUrl(), judge.log));
  server.on('clientError', (error: Error, socket: Duplex) => {
    const isReset = 'code' in error && error.code === 'ECONNRESET';
    if (isReset) socket.destroy();
    else breakOff(socket, malformedReply(error));
  });
  server.on('connect', (_request, socket) => breakOff(socket, CONNECT_REPLY));
}

function closeServer(server: Server, graceMs: number): Promise<void> {
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

function listeningUrl(server: Server): string {
  const address = server.address();
  if (address === null || typeof address === 'string')
    throw new Error('the server does not listen on a port');
  return `http://${loopbackIfWildcard(address)}:${address.port}`;
}

function loopbackIfWildcard({ address, family }: AddressInfo): string {
  if (family === 'IPv6') return address === '::' ? '[::1]' : `[${address}]`;
  return address === '0.0.0.0' ? '127.0.0.1' : address;
}
