/**
 * The open connections, and on which of them an answer is being made or sent.
 *
 * Node's own reckoning is not enough for an orderly end: it closes a connection as idle once the answer is handed
 * over, which cuts off what a slow client has not read yet, and never one on which nothing was sent.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

export interface Connections {
  /** Counts an answer until it is wholly with the operating system, or the connection is gone. */
  begin(request: IncomingMessage, response: ServerResponse): void;
  isBusy(socket: Duplex): boolean;
}

/** Watches a server's connections, and has it close only those as idle that are. */
export function watchConnections(server: Server): Connections {
  // An answer that was queued behind another never ends when its connection does: the count goes with the connection.
  const connections = new Map<Duplex, { answers: number }>();
  server.on('connection', (socket) => {
    connections.set(socket, { answers: 0 });
    socket.once('close', () => connections.delete(socket));
  });
  server.closeIdleConnections = () => {
    for (const [socket, { answers }] of connections) if (answers === 0) socket.destroy();
  };
  return {
    begin(request, response) {
      const connection = connections.get(request.socket);
      if (connection === undefined) return;
      connection.answers += 1;
      response.on('close', () => {
        connection.answers -= 1;
      });
    },
    isBusy: (socket) => (connections.get(socket)?.answers ?? 0) > 0,
  };
}
