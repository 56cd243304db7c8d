/**
 * The open connections: answers the requests on each in turn, and closes them in an orderly way. Node would answer all
 * pipelined requests at once, and a client that never reads could make it hold hundreds of pages.
 *
 * Node counts a connection as idle once the answer is handed over, and closing it then cuts off what a slow client has
 * not read yet. It never counts one as idle on which nothing was sent.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Server as TlsServer } from 'node:tls';
import { SECOND_MS } from '../time.ts';
import { breakBody } from './body.ts';
import type { ConnectionRoom, Member } from './connection-limit.ts';

interface Turn {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly answer: () => void;
}

interface Connection {
  readonly member: Member;
  isAnswering: boolean;
  /** The newest request, answered or not. */
  last: Turn | null;
  readonly waiting: Turn[];
  /** Set when nothing more can be read: ends the connection after the answers that are due. */
  end: (() => void) | null;
}

/** Requests that wait on one connection; with more of them it is closed. */
const WAITING_MAX = 100;
/** How long a connection that is ended still reads what a client sends. */
const LINGER_MS = 2 * SECOND_MS;

export type Connections = ReturnType<typeof watchConnections>;

/** @param room limits how many are open */
export function watchConnections(server: Server, room: ConnectionRoom) {
  const connections = new Map<Duplex, Connection>();
  const handshakes = new Map<string, Member>();
  const serve = (socket: Socket, member: Member) => {
    connections.set(socket, { member, isAnswering: false, last: null, waiting: [], end: null });
    socket.once('close', () => connections.delete(socket));
    // Node ends a connection with this after an answer that says "Connection: close".
    socket.destroySoon = () => endSoon(socket);
  };
  const shake = (socket: Socket, member: Member) => {
    const peer = peerOf(socket);
    handshakes.set(peer, member);
    socket.once('close', () => {
      if (handshakes.get(peer) === member) handshakes.delete(peer);
    });
  };
  const start = server instanceof TlsServer ? shake : serve;
  server.on('connection', (socket) => {
    const member = room.admit(socket);
    if (member !== null) start(socket, member);
  });
  server.on('secureConnection', (socket: Socket) => {
    const member = handshakes.get(peerOf(socket));
    if (member === undefined) return void socket.destroy();
    handshakes.delete(peerOf(socket));
    member.socket = socket;
    serve(socket, member);
  });
  server.closeIdleConnections = () => {
    for (const { socket } of handshakes.values()) socket.destroy();
    for (const [socket, { isAnswering }] of connections) if (!isAnswering) socket.destroy();
  };

  return {
    /** Answers a request after those before it on its connection; not at all once its connection is gone or ends. */
    inTurn(request: IncomingMessage, response: ServerResponse, answer: () => void): void {
      const { socket } = request;
      const connection = connections.get(socket);
      if (connection === undefined || socket.writableEnded) return;
      const turn = { request, response, answer };
      connection.last = turn;
      if (!connection.isAnswering) begin(connection, turn, room);
      else if (connection.waiting.length >= WAITING_MAX) socket.destroy();
      else connection.waiting.push(turn);
    },
    /**
     * Ends a connection whose next bytes are no request: calls `reply` once the requests before are answered, so that
     * it is never taken for the answer to one of them. If the malformed bytes are the body of a request, its endpoint
     * answers, and that is the last answer.
     */
    breakOff(socket: Duplex, reply: () => void): void {
      const connection = connections.get(socket);
      if (connection === undefined) return void socket.destroy();
      if (connection.end !== null || socket.writableEnded) return;
      const { last } = connection;
      if (last === null || last.request.complete) connection.end = reply;
      else {
        connection.end = () => endSoon(socket);
        last.response.shouldKeepAlive = false;
        breakBody(last.request);
      }
      if (!connection.isAnswering) connection.end();
    },
    endHandshake(socket: Duplex): Socket | null {
      if (!(socket instanceof Socket) || connections.has(socket)) return null;
      return handshakes.get(peerOf(socket))?.socket ?? null;
    },
  };
}

/** Address and port of the other end: the same for the TCP and the TLS socket of a connection. */
function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

function begin(connection: Connection, { request, response, answer }: Turn, room: ConnectionRoom): void {
  const { socket } = request;
  const { member } = connection;
  connection.isAnswering = true;
  if (hasBody(request)) room.setWaiting(member, request);
  else room.setBusy(member);
  response.on('close', () => {
    connection.isAnswering = false;
    if (socket.writableEnded || socket.destroyed) return;
    const next = connection.waiting.shift();
    if (next !== undefined) begin(connection, next, room);
    else if (connection.end !== null) connection.end();
    else if (request.complete) room.setWaiting(member, null);
  });
  answer();
}

/** RFC 9112, 6.3. */
function hasBody({ headers }: IncomingMessage): boolean {
  return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
}

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
