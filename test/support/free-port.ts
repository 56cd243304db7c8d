/** Free ports of 127.0.0.1. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';

/** Has a server of a test listen. @returns its port */
export async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** A port that was free a moment ago, for settings where 0 has another meaning. */
export async function freePort(): Promise<number> {
  const server = createServer();
  const port = await listen(server);
  server.close();
  await once(server, 'close');
  return port;
}
