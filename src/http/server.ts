/** The HTTP server put together: its listener, endpoints and judgement, and the one door to polka. */
import type { Server } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import polka, { type Polka } from 'polka';
import type { AccessReader } from '../auth/access-reader.ts';
import { createCredentialReader } from '../auth/authorize.ts';
import { createAccessTokens } from '../auth/token.ts';
import type { Settings } from '../config/schema.ts';
import { CONTENT_TYPES, EXPORT_OF_CONTENT_TYPE } from '../detection/content-type.ts';
import type { Conditions } from '../health/alert-conditions.ts';
import type { HealthSource } from '../health/monitor.ts';
import { createDailyAllowance, type DailyAllowance } from '../limits/daily-allowance.ts';
import type { DailyRows } from '../limits/daily-rows.ts';
import type { KeyUses } from '../limits/key-uses.ts';
import { createRequestRate } from '../limits/request-rate.ts';
import { createTokenRate } from '../limits/token-rate.ts';
import { createUnseenKeyIds } from '../limits/unseen-key-ids.ts';
import type { Logger } from '../log.ts';
import type { RecentDeliveries } from '../query/delivery.ts';
import { createQueryCursors } from '../query/query-cursor.ts';
import { createStreamCursors } from '../query/stream-cursor.ts';
import { isErrorCode } from '../refused.ts';
import { deriveKey } from '../seal.ts';
import type { Database } from '../store/database.ts';
import { MINUTE_MS, type Now } from '../time.ts';
import { createClientAddress } from './client-address.ts';
import { createConnectionRoom, type RoomOptions } from './connection-limit.ts';
import { CONNECTION_TIMES, type ConnectionTimes } from './connection-times.ts';
import { watchConnections } from './connections.ts';
import { createCors } from './cors.ts';
import { guardDamaged } from './damage.ts';
import { createEncoder } from './encoding.ts';
import { changesRoute } from './endpoints/changes.ts';
import { detectionRoute } from './endpoints/detection.ts';
import { digestsRoute } from './endpoints/digests.ts';
import { healthRoute } from './endpoints/health.ts';
import { meRoute } from './endpoints/me.ts';
import { periodRoute } from './endpoints/period.ts';
import { photoRoute } from './endpoints/photo.ts';
import { schemaRoute } from './endpoints/schema.ts';
import { type TokenSources, tokenRoute } from './endpoints/token.ts';
import { createFaultLog } from './fault-log.ts';
import type { Interventions } from './interventions.ts';
import { closeServer, createListener, listening, listeningUrl } from './listener.ts';
import {
  CONNECT_REPLY,
  isTlsFailure,
  malformedReply,
  PLAIN_HTTP_REPLY,
  type RawReply,
  replyRaw,
} from './malformed.ts';
import { answerRequest, type Pipeline, refuseExpectation, refuseUnrouted } from './pipeline.ts';
import { NO_ENDPOINT, type RequestMetrics } from './request-metrics.ts';
import { createRouteTable, type Route, splitTarget } from './routes.ts';
import { checkTlsPair, readTlsFiles, type TlsPair, type TlsPaths } from './tls-pair.ts';
import { watchTlsPair } from './tls-renewal.ts';
import { createProxyWarning } from './untrusted-proxy.ts';
import type { Waiting } from './waiting.ts';

export interface ServerOptions {
  readonly config: Pick<Settings, 'server' | 'exports' | 'limits' | 'photos'>;
  readonly stores: {
    /** A reader on `detections.db`; throws while it is not there yet. */
    readonly detections: () => Database;
    readonly access: AccessReader;
  };
  readonly health: HealthSource;
  /** Told when the certificate is about to expire, and of a proxy that is not trusted. */
  readonly conditions: Pick<Conditions, 'set'>;
  /** Of the data folder. */
  readonly secret: Buffer;
  /** Delivery times that are not in the database yet; read at every request. */
  readonly recentDeliveries: RecentDeliveries;
  /** What was used of the daily allowances; the caller has it kept over a restart. */
  readonly dailyRows: DailyRows;
  /** Told of every use of a key. */
  readonly keyUses: Pick<KeyUses, 'note'>;
  /** Told of an authentic cursor that the log never gave out, which proves that its end is lost. */
  readonly onEndLost: (position: number) => void;
  /** Those who wait for the next change; closed with the server. */
  readonly waiting: Waiting;
  /** Of a lab alone. */
  readonly interventions?: Interventions;
  /** null where nobody counts. */
  readonly metrics: RequestMetrics | null;
  readonly log: Logger;
  readonly now: Now;
  /** Others than the usual ones. */
  readonly times?: ConnectionTimes;
}

export interface RunningServer {
  /** Where it listens; a wildcard address is shown as the loopback one. */
  readonly url: string;
  /** Looks for a renewed certificate now, rather than within seconds; null without TLS. */
  readonly renewCertificate: (() => void) | null;
  /** How many are open. */
  connections(): number;
  /** When the certificate in use expires, epoch milliseconds; null without TLS. */
  certificateExpiresMs(): number | null;
  /**
   * Accepts nothing more, lets requests finish, and closes what is left after `graceMs`. Stores stay open: they are
   * the caller's.
   */
  close(graceMs: number): Promise<void>;
}

/** @throws Refused `failed` when it cannot listen, `configuration` when not with the certificate that is set */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { config, log, times = CONNECTION_TIMES } = options;
  const tls = await openTls(config.server);
  const { server, renew } = createListener(tls?.pair ?? null, times);
  const room = createConnectionRoom({ limits: config.server, onRefused: onRefusedConnection(options) });
  const state = { baseUrl: config.server.base_url, isClosing: false };
  const tokens = createAccessTokens(options.secret);
  const allowance = createDailyAllowance(options.dailyRows, config.limits.daily_rows);
  const unseen = createUnseenKeyIds(config.limits.unseen_key_ids_per_minute);
  const tokenRate = createTokenRate(config.limits.token_requests_per_minute, unseen);
  const token = { tokens, rate: tokenRate };
  const routes = createRoutes(options, token, allowance, () => state.baseUrl).map((route) =>
    guardDamaged(route, options.health),
  );
  const pipeline: Pipeline = {
    find: createRouteTable(routes),
    access: options.stores.access,
    credentials: createCredentialReader(tokens),
    unseen,
    rate: createRequestRate(config.limits.requests_per_minute),
    allowance,
    clientAddress: createClientAddress(config.server.trusted_proxies, createProxyWarning(options)),
    baseUrl: () => state.baseUrl,
    isClosing: () => state.isClosing,
    log,
    now: options.now,
    connections: watchConnections(server, room),
    faults: createFaultLog(options),
    metrics: options.metrics,
    encode: config.server.compression ? createEncoder() : (answer) => answer,
    cors: createCors(config.server.cors_origins),
    keyUses: options.keyUses,
    interventions: options.interventions ?? null,
  };
  answerMalformed(server, pipeline);
  server.on('checkExpectation', (request, response) => refuseExpectation(pipeline, request, response));
  const router = createRouter(server, routes, pipeline);
  const { host, port } = config.server;
  await listening(server, config.server, (onListening) => router.listen(port, host, onListening));
  server.on('error', (error) => log.error({ err: error }, 'http server'));
  const url = listeningUrl(server, tls === null ? 'http' : 'https');
  if (state.baseUrl === '') state.baseUrl = url;
  let pair = tls?.pair ?? null;
  const onRenewed = (renewed: TlsPair) => {
    renew(renewed);
    pair = renewed;
  };
  const renewal = tls === null ? null : watchTlsPair({ ...options, ...tls, onRenewed });
  return {
    url,
    renewCertificate: renewal === null ? null : () => void renewal.look(),
    connections: room.open,
    certificateExpiresMs: () => pair?.validToMs ?? null,
    async close(graceMs) {
      state.isClosing = true;
      options.waiting.close();
      renewal?.close();
      await closeServer(server, graceMs);
      pipeline.faults.close();
    },
  };
}

/** Counts those that are closed at once, and tells of them at most once a minute: they may come by the thousand. */
function onRefusedConnection({ metrics, log, now }: ServerOptions): RoomOptions['onRefused'] {
  let toldMs = Number.NEGATIVE_INFINITY;
  let untold = 0;
  return (address, limit) => {
    metrics?.refused(limit);
    untold += 1;
    const nowMs = now();
    // A clock that was set back must not silence it.
    if (Math.abs(nowMs - toldMs) < MINUTE_MS) return;
    log.warn(
      { address, limit, connections: untold },
      'new connections were closed: too many connections are open',
    );
    toldMs = nowMs;
    untold = 0;
  };
}

/** Every endpoint, one row each. */
function createRoutes(
  {
    config,
    stores,
    health,
    secret,
    recentDeliveries,
    onEndLost,
    waiting,
    now,
    times = CONNECTION_TIMES,
  }: ServerOptions,
  token: Pick<TokenSources, 'tokens' | 'rate'>,
  allowance: DailyAllowance,
  baseUrl: () => string,
): Route[] {
  const enabledContentTypes = new Set(
    CONTENT_TYPES.filter((contentType) => config.exports[EXPORT_OF_CONTENT_TYPE[contentType]].enabled),
  );
  const cursors = createStreamCursors(secret);
  const { detections, access } = stores;
  const periods = { detections, cursors: createQueryCursors(secret), enabledContentTypes, baseUrl };
  return [
    changesRoute({ detections, cursors, recentDeliveries, enabledContentTypes, baseUrl, onEndLost, waiting }),
    periodRoute(periods),
    digestsRoute(periods),
    detectionRoute({ detections, enabledContentTypes, baseUrl }),
    meRoute({ detections, enabledContentTypes, allowance, limits: config.limits }),
    schemaRoute(),
    healthRoute(health),
    tokenRoute({ ...token, access, bodyTimeoutMs: times.tokenBodyMs, now }),
    photoRoute({ folder: config.photos.folder, key: deriveKey(secret, 'photo') }),
  ];
}

/** The certificate and key that are set; null where none are. @throws Refused `configuration` */
async function openTls({
  tls_certificate,
  tls_key,
}: Settings['server']): Promise<{ paths: TlsPaths; pair: TlsPair } | null> {
  if (tls_certificate === '') return null;
  const paths = { certificate: tls_certificate, key: tls_key };
  return { paths, pair: checkTlsPair(paths, await readTlsFiles(paths)) };
}

/** Hands requests to polka, which hands those that the table lets through to their endpoint. */
function createRouter(server: Server, routes: readonly Route[], pipeline: Pipeline): Polka {
  const router = polka({ server });
  router.parse = (request) => parsedUrl(splitTarget(request.url ?? '').path);
  router.use((request, response, next) => {
    pipeline.connections.inTurn(request, response, () => {
      if (pipeline.interventions?.control(request, response) || refuseUnrouted(pipeline, request, response))
        return;
      next();
    });
  });
  // Of two patterns that match, polka takes the one added first: fixed paths come before those that vary.
  const inOrder = [...routes].sort((a, b) => Number(a.path.endsWith('}')) - Number(b.path.endsWith('}')));
  for (const route of inOrder) {
    const pattern = route.path.replace(/\{(\w+)\}$/, ':$1');
    for (const method of route.head ? ([route.method, 'HEAD'] as const) : [route.method]) {
      router.add(method, pattern, (request, response) => answerRequest(pipeline, route, request, response));
    }
  }
  return router;
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

function answerMalformed(server: Server, pipeline: Pipeline): void {
  const breakOff = (socket: Duplex, reply: RawReply) =>
    pipeline.connections.breakOff(socket, () => sendRaw(pipeline, socket, reply));
  server.on('clientError', (error: Error, socket: Duplex) => {
    const bare = pipeline.connections.endHandshake(socket);
    // Said in plain HTTP, since that is what the client speaks.
    if (bare !== null && isErrorCode(error, 'ERR_SSL_HTTP_REQUEST'))
      sendRaw(pipeline, bare, PLAIN_HTTP_REPLY);
    else if (isTlsFailure(error)) {
      pipeline.log.info(
        { address: peerAddress(pipeline, bare ?? socket), reason: error.code },
        'TLS handshake failed',
      );
      socket.destroy();
      bare?.destroy();
    } else if (isErrorCode(error, 'ECONNRESET')) socket.destroy();
    else breakOff(socket, malformedReply(error, pipeline.find));
  });
  server.on('connect', (_request, socket) => breakOff(socket, CONNECT_REPLY));
}

function sendRaw(pipeline: Pipeline, socket: Duplex, reply: RawReply): void {
  const request_id = replyRaw(socket, reply, pipeline.baseUrl());
  const { status, code } = reply.problem;
  pipeline.log.info(
    { request_id, address: peerAddress(pipeline, socket), status, code },
    'malformed request',
  );
  pipeline.metrics?.answered(NO_ENDPOINT, status, 0, 0);
}

/** Of the peer itself: what it says about a client cannot be read. */
function peerAddress(pipeline: Pipeline, socket: Duplex): string {
  return pipeline.clientAddress(socket instanceof Socket ? socket.remoteAddress : undefined, undefined);
}
