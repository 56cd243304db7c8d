/**
 * The open connections, and on which of them an answer is being made or sent.
 *
 * On one connection one request is answered after the other, each when the answer before it is sent. Node would
 * make the answers to all requests that arrive at once, and a client that never reads could have it hold hundreds
 * of pages.
 *
 * Nor is Node's own reckoning enough for an orderly end: it closes a connection as idle once the answer is handed
 * over, which cuts off what a slow client has not read yet, and never one on which nothing was sent.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Server as TlsServer } from 'node:tls';
import { SECOND_MS } from '../time.ts';
import { breakBody } from './body.ts';
import { type ConnectionRoom, peerOf } from './connection-limit.ts';

export interface Connections {
  /**
   * Answers a request when those before it on its connection are answered: when their answers are wholly with the
   * operating system. A request whose connection is gone by then, or ends with an answer before it, is not answered
   * at all.
   */
  inTurn(request: IncomingMessage, response: ServerResponse, answer: () => void): void;
  /**
   * Ends a connection of which the rest cannot be read as requests: once the requests before are answered, by
   * `reply`, so that it is never taken for the answer to one of them. A request whose body is what cannot be read
   * is answered by its endpoint, and that is the last answer.
   */
  breakOff(socket: Duplex, reply: () => void): void;
  /** The bare connection below one whose TLS handshake has failed; null when it did not fail there. */
  endHandshake(socket: Duplex): Socket | null;
}

interface Turn {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly answer: () => void;
}

interface Connection {
  isAnswering: boolean;
  /** The one that came last, answered or not. */
  last: Turn | null;
  readonly waiting: Turn[];
  /** Set when nothing more can be read: what ends the connection after the answers that are due. */
  end: (() => void) | null;
}

/** Requests that wait on one connection; with more of them it is closed. */
const WAITING_MAX = 100;
/** How long a connection that is ended still takes what a client sends. */
const LINGER_MS = 2 * SECOND_MS;

/** Watches a server's connections, and has it close only those as idle that are. @param room which of them may be open */
export function watchConnections(server: Server, room: ConnectionRoom): Connections {
  const connections = new Map<Duplex, Connection>();
  /** Under TLS: bare connections whose handshake is not done, by their other end. */
  const handshakes = new Map<string, Socket>();
  const serve = (socket: Socket) => {
    handshakes.delete(peerOf(socket));
    connections.set(socket, { isAnswering: false, last: null, waiting: [], end: null });
    socket.once('close', () => connections.delete(socket));
    // This is what Node ends a connection with, behind an answer that says "Connection: close".
    socket.destroySoon = () => endSoon(socket);
  };
  const shake = (socket: Socket) => {
    const peer = peerOf(socket);
    handshakes.set(peer, socket);
    socket.once('close', () => {
      if (handshakes.get(peer) === socket) handshakes.delete(peer);
    });
  };
  const isTls = server instanceof TlsServer;
  server.on('connection', (socket) => {
    if (room.admit(socket)) (isTls ? shake : serve)(socket);
  });
  if (isTls) server.on('secureConnection', serve);
  server.closeIdleConnections = () => {
    for (const socket of handshakes.values()) socket.destroy();
    for (const [socket, { isAnswering }] of connections) if (!isAnswering) socket.destroy();
  };

  return {
    inTurn(request, response, answer) {
      const { socket } = request;
      const connection = connections.get(socket);
      if (connection === undefined || socket.writableEnded) return;
      const turn = { request, response, answer };
      connection.last = turn;
      room.setBusy(socket);
      if (!connection.isAnswering) begin(connection, turn, room);
      else if (connection.waiting.length >= WAITING_MAX) socket.destroy();
      else connection.waiting.push(turn);
    },
    breakOff(socket, reply) {
      const connection = connections.get(socket);
      if (connection === undefined) {
        socket.destroy();
        return;
      }
      // More of what cannot be read may come while it is being ended.
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
    endHandshake(socket) {
      if (!(socket instanceof Socket) || connections.has(socket)) return null;
      return handshakes.get(peerOf(socket)) ?? null;
    },
  };
}

function begin(connection: Connection, { request, response, answer }: Turn, room: ConnectionRoom): void {
  const { socket } = request;
  connection.isAnswering = true;
  response.on('close', () => {
    connection.isAnswering = false;
    // After an answer that says "Connection: close" nothing more can be sent.
    if (socket.writableEnded || socket.destroyed) return;
    const next = connection.waiting.shift();
    if (next !== undefined) begin(connection, next, room);
    else if (connection.end !== null) connection.end();
    else if (request.complete) room.setIdle(socket);
  });
  answer();
}

/**
 * Ends a connection in stages (RFC 9112, 9.6): what was written is sent, and then what still comes is thrown away
 * for a while. Closed at once, a connection with something unread is reset, and a client that is still sending loses
 * the answer; `end()` alone leaves it open for as long as the client likes.
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
