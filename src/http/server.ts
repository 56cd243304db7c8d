/** Puts the HTTP server together: listener, endpoints and pipeline; the only user of polka. */
import type { IncomingMessage, Server } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import polka, { type Polka } from 'polka';
import { createAccessTokens } from '../auth/token.ts';
import type { ExportSwitches } from '../config/load.ts';
import type { Settings } from '../config/schema.ts';
import { CONTENT_TYPES, TYPE_RULES } from '../detection/content-type.ts';
import type { Conditions } from '../health/alert-conditions.ts';
import { createDailyAllowance, type DailyAllowance, type DailyRows } from '../limits/daily-rows.ts';
import { createRequestRate, createTokenRate } from '../limits/request-rate.ts';
import { createQueryCursors, createStreamCursors, type StreamPosition } from '../query/cursors.ts';
import type { RecentDeliveries } from '../query/delivery.ts';
import { isErrorCode } from '../refused.ts';
import { deriveKey } from '../seal.ts';
import type { Database } from '../store/database.ts';
import { createClientAddress, createProxyWarning } from './client-address.ts';
import { createCors } from './cors.ts';
import { createEncoder } from './encoding.ts';
import { authorizationServerRoute } from './endpoints/authorization-server.ts';
import { changesRoute } from './endpoints/changes.ts';
import { detectionRoute } from './endpoints/detection.ts';
import { healthRoute } from './endpoints/health.ts';
import { meRoute } from './endpoints/me.ts';
import { openApiRoute } from './endpoints/openapi.ts';
import { periodRoute } from './endpoints/period.ts';
import { photoRoute } from './endpoints/photo.ts';
import { schemaRoute } from './endpoints/schema.ts';
import { type TokenSources, tokenRoute } from './endpoints/token.ts';
import type { Interventions } from './exchange.ts';
import { createFaultLog, createStrangerLog } from './line-limit.ts';
import { CONNECTION_TIMES, type ConnectionTimes, openListener } from './listener.ts';
import { CONNECT, isTlsFailure, type Malformed, malformedBy, PLAIN_HTTP } from './malformed.ts';
import { createPageTurns } from './page-turns.ts';
import { answerRequest, type Pipeline, refuseMalformed, refuseUnrouted } from './pipeline.ts';
import { createRouteTable, type Route, splitTarget } from './routes.ts';
import type { Waiting } from './waiting.ts';

export interface ServerOptions
  extends Pick<Pipeline, 'access' | 'health' | 'keyUses' | 'log' | 'metrics' | 'now' | 'seenKeys'> {
  readonly config: ExportSwitches & Pick<Settings, 'server' | 'limits' | 'photos'>;
  readonly detections: () => Database;
  readonly conditions: Pick<Conditions, 'set'>;
  readonly secret: Buffer;
  /** Delivery times that are not in the database yet. */
  readonly recentDeliveries: RecentDeliveries;
  readonly dailyRows: DailyRows;
  /** Called for an authentic cursor beyond the log's end, which proves that its end is lost. */
  readonly onEndLost: (cursor: StreamPosition) => void;
  readonly waiting: Waiting;
  readonly openApi: (baseUrl: string) => string;
  readonly interventions?: Interventions;
  readonly times?: ConnectionTimes;
}

export type RunningServer = Awaited<ReturnType<typeof startServer>>;

/** @throws Refused `failed` where it cannot listen, `configuration` where the certificate cannot be used */
export async function startServer(options: ServerOptions) {
  const { config, metrics, log } = options;
  const strangers = createStrangerLog(log);
  const listener = await openListener({
    ...options,
    settings: config.server,
    limits: config.server,
    onRefused: (address, limit) => {
      metrics?.refused(limit);
      strangers.note(address, limit, () =>
        log.warn({ address, limit }, 'a connection was refused: too many are open'),
      );
    },
  });
  const { server, connections } = listener;
  const turns = createPageTurns();
  server.on('connection', turns.arrived);
  const state = { baseUrl: config.server.base_url, isClosing: false };
  const tokens = createAccessTokens(options.secret);
  const allowance = createDailyAllowance(options.dailyRows, config.limits.daily_rows);
  const tokenRate = createTokenRate(config.limits.token_requests_per_minute, options.seenKeys);
  const token = { tokens, rate: tokenRate };
  const routes = createRoutes(options, token, allowance, () => state.baseUrl);
  const pipeline: Pipeline = {
    ...options,
    find: createRouteTable(routes),
    tokens,
    unseen: createRequestRate(config.limits.unseen_key_ids_per_minute),
    rate: createRequestRate(config.limits.requests_per_minute),
    allowance,
    clientAddress: createClientAddress(config.server.trusted_proxies, createProxyWarning(options.conditions)),
    baseUrl: () => state.baseUrl,
    isClosing: () => state.isClosing,
    connections,
    turns,
    faults: createFaultLog(log),
    strangers,
    encode: config.server.compression ? createEncoder() : (answer) => answer,
    cors: createCors(config.server.cors_origins),
    interventions: options.interventions ?? null,
  };
  answerMalformed(server, pipeline);
  // The pipeline checks it: Node's own reply lacks our headers.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  const router = createRouter(routes, pipeline);
  server.on('request', router.handler);
  const url = await listener.listen();
  if (state.baseUrl === '') state.baseUrl = url;
  return {
    url,
    connections: connections.open,
    /** When the certificate in use expires, epoch milliseconds; null without TLS. */
    certificateExpiresMs: () => listener.pair()?.validToMs ?? null,
    /** Accepts nothing more, lets requests finish, and closes what is left after `graceMs`. The stores stay open. */
    async close(graceMs: number): Promise<void> {
      state.isClosing = true;
      options.waiting.close();
      await listener.close(graceMs);
      pipeline.faults.close();
      pipeline.strangers.close();
    },
  };
}

function createRoutes(
  options: ServerOptions,
  token: Pick<TokenSources, 'tokens' | 'rate'>,
  allowance: DailyAllowance,
  baseUrl: () => string,
): Route[] {
  const { config, detections, secret, times = CONNECTION_TIMES } = options;
  const enabledContentTypes = new Set(
    CONTENT_TYPES.filter((contentType) => config.exports[TYPE_RULES[contentType].export].enabled),
  );
  const sources = { detections, enabledContentTypes, baseUrl };
  // polka takes the first of two that match: fixed paths come before those that vary.
  return [
    changesRoute({ ...options, ...sources, ...times, cursors: createStreamCursors(secret) }),
    periodRoute({ ...sources, cursors: createQueryCursors(secret) }),
    detectionRoute(sources),
    meRoute({ detections, enabledContentTypes, allowance, limits: config.limits }),
    schemaRoute(),
    healthRoute(options.health),
    tokenRoute({ ...options, ...token }),
    photoRoute({ folder: config.photos.folder, key: deriveKey(secret, 'photo') }),
    ...(config.server.discovery
      ? [openApiRoute(options.openApi, baseUrl), authorizationServerRoute(baseUrl)]
      : []),
  ];
}

function createRouter(routes: readonly Route[], pipeline: Pipeline): Polka {
  const router = polka();
  // In place of polka's parsing of the query, which the endpoints parse.
  const parse = (request: IncomingMessage) => ({ pathname: splitTarget(request.url ?? '').path });
  Object.assign(router, { parse });
  router.use((request, response, next) => {
    pipeline.connections.inTurn(request, response, () => {
      if (pipeline.interventions?.control(request, response) || refuseUnrouted(pipeline, request, response))
        return;
      next();
    });
  });
  for (const route of routes) {
    const pattern = route.path.replace(/\{(\w+)\}$/, ':$1');
    for (const method of route.head ? ([route.method, 'HEAD'] as const) : [route.method])
      router.add(method, pattern, (request, response) => answerRequest(pipeline, route, request, response));
  }
  return router;
}

function answerMalformed(server: Server, pipeline: Pipeline): void {
  const breakOff = (socket: Duplex, malformed: Malformed) =>
    pipeline.connections.breakOff(socket, () => refuseMalformed(pipeline, socket, malformed));
  server.on('clientError', (error: Error, socket: Duplex) => {
    const bare = pipeline.connections.endHandshake(socket);
    if (bare !== null && isErrorCode(error, 'ERR_SSL_HTTP_REQUEST'))
      refuseMalformed(pipeline, bare, PLAIN_HTTP);
    else if (isTlsFailure(error)) {
      const peer = bare ?? socket;
      const remote = peer instanceof Socket ? peer.remoteAddress : undefined;
      const address = pipeline.clientAddress(remote, undefined);
      pipeline.strangers.note(address, 'handshake', () =>
        pipeline.log.info({ address, reason: error.code }, 'TLS handshake failed'),
      );
      socket.destroy();
      bare?.destroy();
    } else if (isErrorCode(error, 'ECONNRESET')) socket.destroy();
    else breakOff(socket, malformedBy(error, pipeline.find));
  });
  server.on('connect', (_request, socket) => breakOff(socket, CONNECT));
}
