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
import type { Duplex } from 'node:stream';

export interface Connections {
  /**
   * Answers a request when those before it on its connection are answered: when their answers are wholly with the
   * operating system. A request whose connection is gone by then is not answered at all.
   */
  inTurn(request: IncomingMessage, response: ServerResponse, answer: () => void): void;
  isBusy(socket: Duplex): boolean;
}

interface Connection {
  isAnswering: boolean;
  readonly waiting: (() => void)[];
}

/** Requests that wait on one connection; with more of them it is closed. */
const WAITING_MAX = 100;

/** Watches a server's connections, and has it close only those as idle that are. */
export function watchConnections(server: Server): Connections {
  const connections = new Map<Duplex, Connection>();
  server.on('connection', (socket) => {
    connections.set(socket, { isAnswering: false, waiting: [] });
    socket.once('close', () => connections.delete(socket));
  });
  server.closeIdleConnections = () => {
    for (const [socket, { isAnswering }] of connections) if (!isAnswering) socket.destroy();
  };
  return {
    inTurn(request, response, answer) {
      const { socket } = request;
      const connection = connections.get(socket);
      if (connection === undefined) return;
      if (!connection.isAnswering) begin(connection, socket, response, answer);
      else if (connection.waiting.length >= WAITING_MAX) socket.destroy();
      else connection.waiting.push(() => begin(connection, socket, response, answer));
    },
    isBusy: (socket) => connections.get(socket)?.isAnswering === true,
  };
}

function begin(connection: Connection, socket: Duplex, response: ServerResponse, answer: () => void): void {
  connection.isAnswering = true;
  response.on('close', () => {
    connection.isAnswering = false;
    // After an answer that says "Connection: close" nothing more can be sent.
    if (!socket.writableEnded && !socket.destroyed) connection.waiting.shift()?.();
  });
  answer();
}
