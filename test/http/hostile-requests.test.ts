/** Requests of hostile or careless clients, byte by byte: each gets an ordinary response, and none causes a fault. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { ambiguousRequests } from '../support/ambiguous-requests.ts';
import { bearer, checkedResponses, exchangeBytes, rawRequest } from '../support/raw-http.ts';
import { NOW_MS, sharedServer } from '../support/server.ts';
import { textRows } from '../support/store.ts';
import { words } from '../support/words.ts';

const GOOD = '/v1/detections/changes?since=2026-11-21T11:00:00Z';

const server = await sharedServer();
server.store.deliver(textRows(100), NOW_MS - 1000);
const { key } = server.makeKey();
const authorization = bearer(key);
after(() => assert.ok(server.lines.every(({ msg }) => msg !== 'fault')));

const exchange = (bytes: string) => exchangeBytes(server.port, bytes);

/** `400` with the detail, or `200` with the number of rows. */
function summaryOf(reply: string): string {
  const [head = '', body = ''] = reply.split('\r\n\r\n');
  const status = Number(head.split(' ')[1]);
  assert.match(head, /\r\nX-Request-Id: [0-9a-f-]{36}\r\n/);
  assert.match(head, /\r\nCache-Control: no-store\r\n/);
  const parsed = JSON.parse(body);
  if (status !== 200) return `${status} ${parsed.detail}`;
  return `200 ${Array.isArray(parsed.data) ? parsed.data.length : parsed.id}`;
}

const answerTo = async (target: string, headers = authorization, method = 'GET'): Promise<string> =>
  summaryOf(await exchange(rawRequest(`${method} ${target}`, `Connection: close\r\n${headers}`)));

test('one credential, sent once, as Bearer', async () => {
  const { key: other } = server.makeKey();
  const once = authorization;
  const good = [once, `authorization:\tbearer   ${key}\t\r\n`, `${once}Cookie: a=b\r\n`];
  for (const headers of good) assert.equal(await answerTo(GOOD, headers), '200 100', headers);
  const bad = [
    '',
    'Authorization: Bearer \xfc\xff\r\n',
    `X-Api-Key: ${key}\r\n`,
    `Proxy-Authorization: Bearer ${key}\r\n`,
    `${once}${once}`,
    `${once}Authorization: Bearer ${other}\r\n`,
    `${once}Authorization: Bearer x\r\n`,
    `${once}Authorization:\r\n`,
  ];
  for (const headers of bad) assert.match(await answerTo(GOOD, headers), /^401 /, headers);
});

test('a request has one valid Host', async () => {
  const withHosts = async (...hosts: string[]) => {
    const lines = hosts.map((host) => `Host: ${host}\r\n`).join('');
    const head = `GET ${GOOD} HTTP/1.1\r\n${lines}Connection: close\r\n${authorization}`;
    return summaryOf(await exchange(`${head}\r\n`));
  };
  const good = words('x a_b.example:8080 127.0.0.1:80 [::1]:80 [fe80::1%25eth0] b%C3%BC.x');
  for (const host of ['', ...good]) assert.equal(await withHosts(host), '200 100', host);
  for (const hosts of [[], ['a', 'b'], ['a', 'a'], ['a,b'], ['a b'], ['a/b'], ['u@a'], ['a?b'], ['\xfc']])
    assert.match(await withHosts(...hosts), /^400 The Host header is /, hosts.join());
  const old = await exchange(`GET ${GOOD} HTTP/1.0\r\n${authorization}\r\n`);
  assert.equal(summaryOf(old), '200 100', 'HTTP/1.0 needs none');
});

test('an ambiguous request is 400, and nothing after it is read', async () => {
  const hidden = `GET ${GOOD} HTTP/1.1\r\nHost: x\r\n${authorization}Connection: close\r\n\r\n`;
  for (const [what, bytes] of Object.entries(ambiguousRequests(hidden))) {
    const received = await exchange(bytes);
    const statuses = [...received.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);
    assert.deepEqual(statuses, ['400'], what);
    assert.match(received, /\r\nConnection: close\r\n/, what);
  }
});

test('with more headers than can be read, the request is refused: none is left out', async () => {
  const more = Array.from({ length: 2500 }, (_, at) => `a${at}:\r\n`).join('');
  assert.match(await answerTo(GOOD, `${more}${authorization}`), /^431 /);
});

test('an upgrade is ignored, and ends the connection', async () => {
  const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\n';
  const reply = await exchange(`GET ${GOOD} HTTP/1.1\r\nHost: x\r\n${authorization}${upgrade}\r\n`);
  assert.match(reply, /^HTTP\/1\.1 200 .*\r\nConnection: close\r\n/s);
});

/** Checks the problem in a reply, and what the document says of it. */
function assertProblem(reply: string): void {
  const [answer, ...more] = checkedResponses(reply, ['GET /v1/me']);
  assert.deepEqual([answer?.status, more], [400, []], reply);
  assert.match(answer?.headers.get('date') ?? '', /GMT$/);
  assert.equal(JSON.parse(answer?.body ?? '').type, `${server.url}/errors/invalid_request`);
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
  for (const bytes of malformed) assertProblem(await exchange(bytes));
});

test('a target with a character outside of ASCII is 400, and the detail says to encode it', async () => {
  for (const target of [`${GOOD}&domain=bücher.de`, '/v1/ü', '/v1/health?\u00e9']) {
    const reply = await exchange(rawRequest(`GET ${target}`, `${authorization}Connection: close\r\n`));
    assertProblem(reply);
    assert.match(reply, /characters outside of ASCII are percent-encoded/);
  }
});

test('a head that is too large is 431; one of a legal size is accepted', async () => {
  const large = `GET / HTTP/1.1\r\nHost: x\r\nX-Large: ${'x'.repeat(40_000)}\r\n\r\n`;
  assert.match(await exchange(large), /^HTTP\/1\.1 431 .*: application\/problem\+json\r\n.*"status":431,/s);
  const legal = await answerTo(`${GOOD}&source_id=${'x'.repeat(20_000)}`);
  assert.match(legal, /^400 source_id: must not exceed 200 characters/);
});

test('100-continue works', async () => {
  const headers = `${authorization}Expect: 100-continue\r\nConnection: close\r\n`;
  const reply = await exchange(rawRequest(`GET ${GOOD}`, headers));
  assert.match(reply, /^HTTP\/1\.1 (100 Continue\r\n\r\nHTTP\/1\.1 )?200 OK/);
});
