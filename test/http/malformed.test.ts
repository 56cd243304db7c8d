/** Responses to unusual requests: malformed HTTP, odd targets, bodies, pipelines, closing. */
import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { exchangeBytes } from '../support/raw-http.ts';
import { NOW_MS, sharedServer, startTestServer, type TestServer } from '../support/server.ts';

const server = await sharedServer();
const key = server.makeKey().key;

const GOOD = '/v1/detections/changes?since=2026-11-21T11:00:00Z';

const exchange = (bytes: string | Buffer) => exchangeBytes(server.port, bytes);

function get(target: string, headers = 'Host: x\r\nConnection: close\r\n', version = '1.1'): string {
  return `GET ${target} HTTP/${version}\r\nAuthorization: Bearer ${key}\r\n${headers}\r\n`;
}

function parseReply(reply: string) {
  const [head = '', body = ''] = reply.split('\r\n\r\n');
  const [statusLine = '', ...lines] = head.split('\r\n');
  const headers = new Map(lines.map((line) => [line.split(': ')[0]?.toLowerCase(), line.split(': ')[1]]));
  return { status: Number(statusLine.split(' ')[1]), headers, body };
}

function assertProblem(reply: string, status: number, code: string): void {
  const { status: found, headers, body } = parseReply(reply);
  assert.equal(found, status, reply);
  assert.equal(headers.get('content-type'), 'application/problem+json');
  assert.equal(headers.get('cache-control'), 'no-store');
  assert.equal(headers.get('content-length'), String(Buffer.byteLength(body)));
  assert.match(headers.get('date') ?? '', /GMT$/);
  const problem = JSON.parse(body);
  assert.deepEqual([problem.type, problem.status], [`${server.url}/errors/${code}`, status]);
  assert.equal(problem.request_id, headers.get('x-request-id'));
}

test('bytes that are not HTTP get an ordinary error, and the connection ends', async () => {
  const malformed = [
    'nonsense\r\n\r\n',
    'GET / HTTP/9.9\r\n\r\n',
    'GET / HTTP/1.1\r\nHost: x\r\nBad Header: 1\r\n\r\n',
    'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n',
    'GET /a b HTTP/1.1\r\nHost: x\r\n\r\n',
    '\u0016\u0003\u0001\u0002\u0000\u0001',
  ];
  for (const bytes of malformed) assertProblem(await exchange(bytes), 400, 'invalid_request');
});

test('a target with a character outside of ASCII is 400, and the detail says to encode it', async () => {
  for (const target of [`${GOOD}&domain=bücher.de`, '/v1/ü', '/v1/health?\u00e9']) {
    const reply = await exchange(get(target));
    assertProblem(reply, 400, 'invalid_request');
    assert.match(reply, /characters outside of ASCII are percent-encoded/);
  }
});

test('a head that is too large is 431; one of a legal size is accepted', async () => {
  const large = `GET / HTTP/1.1\r\nHost: x\r\nX-Large: ${'x'.repeat(40_000)}\r\n\r\n`;
  assertProblem(await exchange(large), 431, 'invalid_request');
  const legal = parseReply(await exchange(get(`${GOOD}&source_id=${'x'.repeat(20_000)}`)));
  assert.equal(legal.status, 400);
  assert.match(legal.body, /source_id: must not exceed 200 characters/);
});

test('an unknown expectation is 400; 100-continue works', async () => {
  assertProblem(
    await exchange(get(GOOD, 'Host: x\r\nExpect: tea\r\nConnection: close\r\n')),
    400,
    'invalid_request',
  );
  const reply = await exchange(get(GOOD, 'Host: x\r\nExpect: 100-continue\r\nConnection: close\r\n'));
  assert.match(reply, /^HTTP\/1\.1 (100 Continue\r\n\r\nHTTP\/1\.1 )?200 OK/);
});

test('closing ends idle and silent connections and completes a response in progress', async () => {
  const other = await startWithLargePage();
  const silent = connect(other.port, '127.0.0.1');
  const idle = connect(other.port, '127.0.0.1');
  idle.write('GET /x HTTP/1.1\r\nHost: x\r\n\r\n');
  await nextData(idle);
  const slow = connect(other.port, '127.0.0.1');
  const request = get(`${GOOD}&limit=1000`, 'Host: x\r\n').replace(key, other.makeKey().key);
  slow.write(request);
  const start = await nextData(slow);
  slow.pause();
  const ended = [silent, idle].map(closed);
  const closing = other.running.close(30_000);
  await Promise.all(ended);
  const rest = readAll(slow);
  await closing;
  const { status, headers, body } = parseReply(start + (await rest));
  assert.equal(status, 200);
  assert.equal(Buffer.byteLength(body), Number(headers.get('content-length')));
  await assert.rejects(fetch(`${other.url}/x`));
  await other.close();
});

/** Starts a server with a response that does not fit into the buffers of a connection. */
async function startWithLargePage(): Promise<TestServer> {
  const started = await startTestServer();
  const rows = Array.from({ length: 1000 }, (_, index) => ({
    content_type: 'text' as const,
    version: 1,
    row: { source_internal_id: index, article_headline: 'x'.repeat(20_000) },
  }));
  started.store.deliver(rows, NOW_MS - 1000);
  return started;
}

function nextData(socket: Socket): Promise<string> {
  return new Promise((resolve) => socket.once('data', (chunk) => resolve(chunk.toString())));
}

function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once('close', () => resolve()));
}

function readAll(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('close', () => resolve(Buffer.concat(chunks).toString()));
    socket.resume();
  });
}
