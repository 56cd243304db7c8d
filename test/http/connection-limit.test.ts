/** How many connections may be open, in total and per address, and which are closed to make room. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, test } from 'node:test';
import type { Limit } from '../../src/http/request-metrics.ts';
import { follow } from '../support/raw-http.ts';
import { startTestServer, type TestServer, type TestServerOptions } from '../support/server.ts';
import { until } from '../support/until.ts';

const CHANGES = '/v1/detections/changes?since=2026-11-21T11:00:00Z';
const HEALTH = 'GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n';
/** Only Linux accepts every address of 127.0.0.0/8 as local. */
const skip = process.platform !== 'linux' && 'only Linux has several addresses of its own';

let server: TestServer;
let refused: Limit[] = [];
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await server.close();
});

async function start(options: TestServerOptions): Promise<void> {
  refused = [];
  const metrics = { answered() {}, keyRefused() {}, refused: (limit: Limit) => refused.push(limit) };
  server = await startTestServer({ ...options, metrics });
}

type Client = ReturnType<typeof asking>;

function asking(socket: Socket) {
  sockets.push(socket);
  const { received, ended } = follow(socket);
  return {
    socket,
    isClosed: ended,
    /** Sends a request for health. @returns the status, or `closed` */
    async ask() {
      const known = received().length;
      socket.write(HEALTH);
      await until('an answer', () => ended() || received().slice(known).endsWith('}'));
      return ended() ? 'closed' : (received().slice(known).split(' ')[1] ?? '');
    },
  };
}

/** Connects; the server may close the connection immediately. */
async function client(from = '127.0.0.1'): Promise<Client> {
  const socket = connect({ port: server.port, host: '127.0.0.1', localAddress: from, allowHalfOpen: true });
  const followed = asking(socket);
  await once(socket, 'connect');
  return followed;
}

/** Opens an idle connection. */
async function idleClient(from?: string): Promise<Client> {
  const one = await client(from);
  assert.equal(await one.ask(), '200');
  return one;
}

/** Opens a connection with a request that waits for its answer. */
async function busyClient(from?: string, rest = '\r\n'): Promise<Client> {
  const one = await client(from);
  const { key } = server.makeKey();
  const known = server.waiting.count();
  const head = `GET ${CHANGES} HTTP/1.1\r\nHost: x\r\nPrefer: wait=60\r\nAuthorization: Bearer ${key}\r\n`;
  one.socket.write(head + rest);
  await until('it waits', () => server.waiting.count() > known);
  return one;
}

const closed = (one: Client) => until('its end', () => one.isClosed());
const areClosed = (...clients: readonly Client[]) => clients.map((one) => one.isClosed());

test('connections per address are limited, so that others can connect', { skip }, async () => {
  await start({ max_connections_per_address: 2 });
  const busy = [await busyClient('127.0.0.2'), await busyClient('127.0.0.2')];
  await closed(await client('127.0.0.2'));
  await closed(await client('127.0.0.2'));
  await idleClient('127.0.0.3');
  assert.deepEqual(refused, ['connections_per_address', 'connections_per_address']);
  const line = server.lines.find(({ msg }) => String(msg).startsWith('a connection was refused'));
  assert.deepEqual([line?.address, line?.limit], ['127.0.0.2', 'connections_per_address']);

  // The server frees the slot once it notices the end of the connection.
  busy[0]?.socket.destroy();
  await until('a place', async () => (await (await client('127.0.0.2')).ask()) === '200');
});

test('a trusted proxy may open as many as the total limit', { skip }, async () => {
  // All five are busy, so that none makes room.
  const limits = { max_connections: 5, max_connections_per_address: 2, waits_of: 10 };
  await start({ ...limits, trusted_proxies: ['127.0.0.2'] });
  const proxied = [];
  for (let count = 0; count < 5; count += 1) proxied.push(await busyClient('127.0.0.2'));
  await closed(await client('127.0.0.3'));
  assert.deepEqual(refused, ['connections']);
  assert.ok(proxied.every((one) => !one.isClosed()));
});

test('the one that has waited longest for a request is closed first, and none with a request in progress', async () => {
  await start({ max_connections: 4 });
  const [busy, first, second] = [await busyClient(), await idleClient(), await idleClient()];
  const silent = await client();
  assert.equal(await first.ask(), '200');
  await until('all', () => server.running.connections() === 4);
  const next = await idleClient();
  await closed(second);
  const last = await idleClient();
  await closed(silent);
  assert.deepEqual(areClosed(busy, first, next, last), [false, false, false, false]);
  assert.deepEqual([server.running.connections(), refused], [4, []]);
});

test('an address with too many loses its own idle ones first', { skip }, async () => {
  await start({ max_connections_per_address: 2 });
  const other = await idleClient('127.0.0.3');
  const [first, second] = [await idleClient('127.0.0.2'), await idleClient('127.0.0.2')];
  const third = await idleClient('127.0.0.2');
  await closed(first);
  assert.deepEqual(areClosed(other, second, third), [false, false, false]);
});

/** What a connection has sent whose request is not complete. */
const INCOMPLETE = {
  nothing: '',
  'a part of a head': 'GET /v1/health HTTP/1.1\r\nHost: x\r\n',
  'a part of a second head': 'GET /v1/he',
  'a head without its body': 'POST /oauth/token HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n',
  'a part of a body': 'POST /oauth/token HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab',
};

for (const [what, bytes] of Object.entries(INCOMPLETE)) {
  test(`of connections that have sent ${what}, the oldest makes room`, async () => {
    await start({ max_connections: 4 });
    const busy = await busyClient();
    const open = async () => {
      const one = what.includes('second') ? await idleClient() : await client();
      one.socket.write(bytes);
      return one;
    };
    const slow = [await open(), await open(), await open()];
    await until('all', () => server.running.connections() === 4);
    const late = await client();
    assert.equal(await late.ask(), '200');
    assert.deepEqual(areClosed(busy, ...slow, late), [false, true, false, false, false]);
    assert.deepEqual(refused, []);
  });
}

/** What holds a connection once its answer is given. */
const ANSWERED: Record<string, (one: Client) => Promise<void>> = {
  'a body that ends after its answer': async ({ socket }) => {
    socket.write('POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n');
    await once(socket, 'data');
    socket.write('x');
  },
  'answers that nobody reads': async ({ socket }) => {
    socket.pause();
    socket.write('GET /v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(99));
    await until('an answer', () => socket.readableLength > 0);
  },
};

for (const [what, hold] of Object.entries(ANSWERED))
  test(`of connections with ${what}, the oldest makes room`, async () => {
    await start({ max_connections: 3 });
    const busy = await busyClient();
    for (let held = 0; held < 2; held += 1) await hold(await client());
    await until('a place', async () => (await (await client()).ask()) === '200');
    assert.equal(busy.isClosed(), false);
  });

/** What is sent before the server ends the connection. */
const LAST = {
  'a last request': 'GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
  'malformed bytes after a request': 'GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n\r\nnothing\r\n\r\n',
};

for (const [what, bytes] of Object.entries(LAST))
  test(`of connections that end after ${what}, one makes room, whatever its client does`, async () => {
    await start({ max_connections: 3 });
    const busy = await busyClient();
    for (const { socket } of [await client(), await client()]) {
      socket.write(bytes);
      await once(socket, 'end');
    }
    assert.equal(await (await client()).ask(), '200');
    assert.deepEqual([busy.isClosed(), refused], [false, []]);
  });

test('a body that was complete before its request was answered holds its connection', async () => {
  await start({ max_connections: 1 });
  const busy = await busyClient(undefined, 'Content-Length: 2\r\n\r\nab');
  await closed(await client());
  assert.equal(busy.isClosed(), false);
});
