/** Puts the HTTP server together: listener, endpoints and pipeline; the only user of polka. */
import type { IncomingMessage, Server } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import polka from 'polka';
import { isErrorCode } from '../refused.ts';
import type { Connections } from './connections.ts';
import { DISCOVERY, ENDPOINTS } from './endpoints/all.ts';
import { openListener } from './listener.ts';
import { CONNECT, isTlsFailure, type Malformed, malformedBy, PLAIN_HTTP } from './malformed.ts';
import { answerRequest, refuseMalformed, refuseUnrouted } from './pipeline.ts';
import { createRouteTable, type FindRoute, type Route, splitTarget } from './routes.ts';
import { createService, type ServerOptions, type Service } from './service.ts';

/** @throws Refused `failed` where it cannot listen, `configuration` where the certificate cannot be used */
export async function startServer(options: ServerOptions) {
  const service = createService(options);
  const { config, metrics, strangers, log } = service;
  const listener = await openListener({
    ...service,
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
  server.on('connection', service.turns.arrived);
  const routes = ENDPOINTS.filter((route) => config.server.discovery || !DISCOVERY.includes(route));
  const find = createRouteTable(routes);
  answerMalformed(server, service, connections, find);
  // The pipeline checks it: Node's own reply lacks our headers.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  server.on('request', createRouter(routes, service, connections, find).handler);
  const url = await listener.listen();
  if (service.baseUrl === '') service.baseUrl = url;
  return {
    url,
    connections: connections.open,
    /** When the certificate in use expires, epoch milliseconds; null without TLS. */
    certificateExpiresMs: () => listener.pair()?.validToMs ?? null,
    /** Accepts nothing more, lets requests finish, and closes what is left after `graceMs`. The stores stay open. */
    async close(graceMs: number): Promise<void> {
      service.isClosing = true;
      service.waiting.close();
      await listener.close(graceMs);
      service.faults.close();
      strangers.close();
    },
  };
}

function createRouter(routes: readonly Route[], service: Service, connections: Connections, find: FindRoute) {
  const router = polka();
  // In place of polka's parsing of the query, which the endpoints parse.
  const parse = (request: IncomingMessage) => ({ pathname: splitTarget(request.url ?? '').path });
  Object.assign(router, { parse });
  router.use((request, response, next) => {
    connections.inTurn(response, () => {
      if (service.interventions?.control(request, response)) return;
      if (!refuseUnrouted(service, find, response)) next();
    });
  });
  // The table has checked the method.
  for (const route of routes)
    router.all(route.path.replace(/\{(\w+)\}$/, ':$1'), (_request, response) =>
      answerRequest(service, route, response),
    );
  return router;
}

function answerMalformed(server: Server, service: Service, connections: Connections, find: FindRoute): void {
  const breakOff = (socket: Duplex, malformed: Malformed) =>
    connections.breakOff(socket, () => refuseMalformed(service, socket, malformed));
  server.on('clientError', (error: Error, socket: Duplex) => {
    const bare = connections.ofHandshake(socket);
    if (bare !== null && isErrorCode(error, 'ERR_SSL_HTTP_REQUEST'))
      refuseMalformed(service, bare, PLAIN_HTTP);
    else if (isTlsFailure(error)) {
      const peer = bare ?? socket;
      const remote = peer instanceof Socket ? peer.remoteAddress : undefined;
      const address = service.clientAddress(remote, undefined);
      service.strangers.note(address, 'handshake', () =>
        service.log.info({ address, reason: error.code }, 'TLS handshake failed'),
      );
      socket.destroy();
      bare?.destroy();
    } else if (isErrorCode(error, 'ECONNRESET')) socket.destroy();
    else breakOff(socket, malformedBy(error, find));
  });
  server.on('connect', (_request, socket) => breakOff(socket, CONNECT));
}
