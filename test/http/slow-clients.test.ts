/** Clients that are slow, silent, or never read are disconnected, and their memory is freed. */
import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { afterEach, test } from 'node:test';
import { CONNECTION_TIMES, type ConnectionTimes } from '../../src/http/listener.ts';
import { memoryInUse } from '../support/memory.ts';
import { checkedResponses, follow } from '../support/raw-http.ts';
import { NOW_MS, startTestServer, type TestServer } from '../support/server.ts';
import { textRows } from '../support/store.ts';
import { until } from '../support/until.ts';

const CHANGES = '/v1/detections/changes?since=2026-11-21T11:00:00Z';
const SHORT_MS = 150;
const MIB = 1024 * 1024;

let server: TestServer | undefined;
const sockets: Socket[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await server?.close();
  server = undefined;
});

/** Starts a server with some shorter timeouts. */
async function startWith(times: Partial<ConnectionTimes>): Promise<TestServer> {
  server = await startTestServer({ times: { ...CONNECTION_TIMES, checkEveryMs: 20, ...times } });
  return server;
}

/** Sends bytes and keeps the connection open. @returns the socket and the bytes received so far */
function open(port: number, bytes = '') {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  if (bytes !== '') socket.write(bytes);
  sockets.push(socket);
  return follow(socket);
}

function get(target: string, key: string): string {
  return `GET ${target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`;
}

async function untilNoneIsOpen({ running }: TestServer): Promise<void> {
  await until('all connections are closed', () => running.connections() === 0);
}

test('a slow head and a silent connection are 408 and closed', async () => {
  const slow = await startWith({ headMs: SHORT_MS });
  const half = open(slow.port, 'GET /v1/health HTTP/1.1\r\nHost: x\r\n');
  const trickle = setInterval(() => half.socket.write('X: y\r\n'), 20);
  const silent = open(slow.port);
  // The clients never close their side, but the server must end the connections.
  await untilNoneIsOpen(slow);
  clearInterval(trickle);
  await until('the clients know', () => half.ended() && silent.ended());
  for (const { received } of [half, silent]) {
    assert.match(received(), /^HTTP\/1\.1 408 [\s\S]*\r\nX-Request-Id: [\s\S]*was not received in time/);
  }
});

test('a slow body for a token is 400 in the form of that endpoint', async () => {
  const slow = await startWith({ headMs: SHORT_MS, requestMs: SHORT_MS });
  const head = 'POST /oauth/token HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n';
  const client = open(slow.port, `${head}grant_type=`);
  const trickle = setInterval(() => client.socket.write('x'), 20);
  await until('the client is disconnected', client.ended);
  clearInterval(trickle);
  const [answer] = checkedResponses(client.received(), ['POST /oauth/token']);
  assert.deepEqual([answer?.status, answer?.headers.get('pragma')], [400, 'no-cache']);
  await untilNoneIsOpen(slow);
});

test('clients that never read a large page are disconnected, and the memory is freed', async () => {
  // Longer than a good client needs for its page on a busy machine.
  const slow = await startWith({ idleMs: 10_000 });
  const { key } = slow.makeKey();
  slow.store.deliver(textRows(1000, { article_headline: 'x'.repeat(12_000) }), NOW_MS - 1000);
  const clients = 10;
  const pageBytes = 12 * MIB;
  await (await slow.get(`${CHANGES}&limit=1000`, key)).arrayBuffer();
  const before = memoryInUse().buffers;
  for (let count = 0; count < clients; count += 1) {
    const { socket } = open(slow.port, get(`${CHANGES}&limit=1000`, key).repeat(5));
    socket.pause();
  }
  const pages = () => slow.lines.filter(({ msg, rows }) => msg === 'request' && rows === 1000).length;
  await until('each has a page', () => pages() === clients + 1);
  await until('all clients are disconnected', () => slow.running.connections() <= 1);
  assert.equal(pages(), clients + 1, 'of the five requested responses, only one may be built');
  await until('their memory is free again', () => memoryInUse().buffers < before + 2 * pageBytes);
});
