/**
 * The open connections, limited in all and from one address: for a new one, the one is closed that has waited longest for
 * a complete request; without one, the oldest whose client has not read its answer. The requests on each are answered in
 * turn: Node would answer all pipelined ones at once, and a client that never reads could make it hold hundreds of pages.
 * And each is closed in an orderly way: Node counts one as idle once the answer is handed over, though a slow client has
 * not read it, and never one on which nothing was sent.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Server as TlsServer } from 'node:tls';
import { addressNetwork, createAddressList, normalAddress } from '../addresses.ts';
import type { Settings } from '../config/schema.ts';
import { SECOND_MS } from '../time.ts';
import { breakBody } from './body.ts';
import type { Limit } from './request-metrics.ts';

type Turn = Readonly<{ response: ServerResponse; answer: () => void }>;

interface Connection {
  /** The TCP socket; under TLS, once the handshake is done, the TLS one. */
  socket: Socket;
  /** What counts as one address; null for a trusted proxy, which many clients share. */
  readonly network: string | null;
  /** The request that is being answered, and those that wait for that. */
  readonly turns: Turn[];
  /** The newest request, answered or not. */
  last: Turn | null;
  /** Set when nothing more can be read: ends the connection after the answers that are due. */
  end: (() => void) | null;
}

/** Requests that wait on one connection; with more of them it is closed. */
const TURNS_MAX = 100;
/** How long a connection that is ended still reads what a client sends. */
const LINGER_MS = 2 * SECOND_MS;

export type ConnectionLimits = Readonly<{
  limits: Pick<Settings['server'], 'max_connections' | 'max_connections_per_address' | 'trusted_proxies'>;
  onRefused?: (address: string, limit: Limit) => void;
}>;

export type Connections = ReturnType<typeof watchConnections>;

export function watchConnections(server: Server, { limits, onRefused = () => {} }: ConnectionLimits) {
  const isTrusted = createAddressList(limits.trusted_proxies);
  /** The oldest first. */
  const open = new Set<Connection>();
  /** Of these, by network. */
  const counts = new Map<string, number>();
  /** Without a complete request, the longest first, with the request whose body arrives; null before its head. */
  const waiting = new Map<Connection, IncomingMessage | null>();
  /** By the socket on which their requests come: not during a TLS handshake. */
  const served = new Map<Duplex, Connection>();
  /** During their TLS handshake, by the other end, which is the same for the TCP and the TLS socket. */
  const handshakes = new Map<string, Connection>();

  function leave(connection: Connection): void {
    const { network } = connection;
    waiting.delete(connection);
    if (!open.delete(connection) || network === null) return;
    const left = (counts.get(network) ?? 0) - 1;
    if (left > 0) counts.set(network, left);
    else counts.delete(network);
  }

  /** Closes one of a network; null: of any. @returns whether there was one */
  function makeRoom(network: string | null): boolean {
    const isOf = (connection: Connection) => network === null || connection.network === network;
    for (const [connection, request] of waiting) {
      if (!isOf(connection)) continue;
      if (connection.turns.length === 0 || request?.complete !== true) return close(connection);
      waiting.delete(connection);
    }
    for (const connection of open)
      if (isOf(connection) && connection.turns[0]?.response.writableEnded === true) return close(connection);
    return false;
  }

  function close(connection: Connection): true {
    leave(connection);
    connection.socket.destroy();
    return true;
  }

  /** Makes room where there is none. @returns the limit that still refuses the connection; null: none */
  function limitBefore(network: string | null): Limit | null {
    const isCrowded = network !== null && (counts.get(network) ?? 0) >= limits.max_connections_per_address;
    if (isCrowded && !makeRoom(network)) return 'connections_per_address';
    return open.size >= limits.max_connections && !makeRoom(null) ? 'connections' : null;
  }

  /** Accepts a connection, or closes it at once: null. @param socket the TCP one, before any handshake */
  function admit(socket: Socket): Connection | null {
    const address = normalAddress(socket.remoteAddress ?? '');
    const network = address === null || isTrusted(address) ? null : addressNetwork(address);
    const limit = address === null ? null : limitBefore(network);
    if (address === null || limit !== null) {
      socket.destroy();
      if (address !== null && limit !== null) onRefused(address, limit);
      return null;
    }
    const connection = { socket, network, turns: [], last: null, end: null };
    open.add(connection);
    waiting.set(connection, null);
    if (network !== null) counts.set(network, (counts.get(network) ?? 0) + 1);
    socket.once('close', () => leave(connection));
    return connection;
  }

  function setWaiting(connection: Connection, request: IncomingMessage | null): void {
    waiting.delete(connection);
    if (open.has(connection)) waiting.set(connection, request);
  }

  function serve(socket: Socket, connection: Connection): void {
    connection.socket = socket;
    served.set(socket, connection);
    socket.once('close', () => served.delete(socket));
    // Node ends a connection with this after an answer that says "Connection: close".
    socket.destroySoon = () => endSoon(socket);
  }

  function shake(socket: Socket, connection: Connection): void {
    const peer = peerOf(socket);
    handshakes.set(peer, connection);
    socket.once('close', () => {
      if (handshakes.get(peer) === connection) handshakes.delete(peer);
    });
  }

  function begin(connection: Connection, { response, answer }: Turn): void {
    const request = response.req;
    const { socket, headers } = request;
    // While it is answered it is not closed for others, once it has its body (RFC 9112, 6.3).
    if ('content-length' in headers || 'transfer-encoding' in headers) setWaiting(connection, request);
    else waiting.delete(connection);
    response.on('close', () => {
      connection.turns.shift();
      // One that ends, too: until its client closes it, it takes a place.
      if (request.complete) setWaiting(connection, null);
      if (socket.writableEnded || socket.destroyed) return;
      const [next] = connection.turns;
      if (next !== undefined) begin(connection, next);
      else connection.end?.();
    });
    answer();
  }

  const start = server instanceof TlsServer ? shake : serve;
  server.on('connection', (socket) => {
    const connection = admit(socket);
    if (connection !== null) start(socket, connection);
  });
  server.on('secureConnection', (socket: Socket) => {
    const connection = handshakes.get(peerOf(socket));
    if (connection === undefined) return void socket.destroy();
    handshakes.delete(peerOf(socket));
    serve(socket, connection);
  });
  server.closeIdleConnections = () => {
    for (const { socket, turns } of open) if (turns.length === 0) socket.destroy();
  };

  return {
    open: () => open.size,
    /** Answers a request after those before it on its connection; not at all once its connection is gone or ends. */
    inTurn(response: ServerResponse, answer: () => void): void {
      const { socket } = response.req;
      const connection = served.get(socket);
      if (connection === undefined || socket.writableEnded) return;
      connection.last = { response, answer };
      connection.turns.push(connection.last);
      if (connection.turns.length === 1) begin(connection, connection.last);
      else if (connection.turns.length - 1 > TURNS_MAX) socket.destroy();
    },
    /**
     * Ends a connection whose next bytes are no request: calls `reply` once the requests before are answered, so that
     * it is never taken for the answer to one of them. If the malformed bytes are the body of a request, its endpoint
     * answers, and that is the last answer.
     */
    breakOff(socket: Duplex, reply: () => void): void {
      const connection = served.get(socket);
      if (connection === undefined) return void socket.destroy();
      if (connection.end !== null || socket.writableEnded) return;
      const { last, turns } = connection;
      if (last === null || last.response.req.complete) connection.end = reply;
      else {
        connection.end = () => endSoon(socket);
        last.response.shouldKeepAlive = false;
        breakBody(last.response.req);
      }
      if (turns.length === 0) connection.end();
    },
    /** The TCP socket of a TLS handshake that failed; null where it had succeeded. */
    ofHandshake(socket: Duplex): Socket | null {
      if (!(socket instanceof Socket) || served.has(socket)) return null;
      return handshakes.get(peerOf(socket))?.socket ?? null;
    },
  };
}

const peerOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`;

/**
 * Ends a connection in stages (RFC 9112, 9.6): sends what was written, then discards what still arrives for a while.
 * Closing at once resets a connection with unread bytes; `end()` alone leaves it open for as long as the client likes.
 */
export function endSoon(socket: Duplex): void {
  if (socket.writableEnded) return;
  socket.end(() => {
    const lingering = setTimeout(() => socket.destroy(), LINGER_MS);
    socket.once('close', () => clearTimeout(lingering));
    if (socket.destroyed) clearTimeout(lingering);
  });
  socket.resume();
}
