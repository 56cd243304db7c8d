/**
 * Requests of hostile or careless clients, byte by byte (contract: Endpoints, Common detection
 * filters, Authentication): each gets the response that the contract requires, and none causes a fault.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { ambiguousRequests } from '../support/ambiguous-requests.ts';
import { exchangeBytes } from '../support/raw-http.ts';
import { NOW_MS, sharedServer } from '../support/server.ts';

const CHANGES = '/v1/detections/changes';
const GOOD = `${CHANGES}?since=2026-11-21T11:00:00Z`;
const ROWS = 100;

const server = await sharedServer();
const rows = Array.from({ length: ROWS }, (_, at) => ({
  content_type: 'text' as const,
  version: 1,
  row: { article_id: at + 1 },
}));
server.store.deliver(rows, NOW_MS - 1000);
const { key } = server.makeKey();
const authorization = `Authorization: Bearer ${key}\r\n`;
after(() =>
  assert.deepEqual(
    server.lines.filter(({ msg }) => msg === 'fault'),
    [],
  ),
);

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

async function answerTo(target: string, headers = authorization, method = 'GET'): Promise<string> {
  return summaryOf(
    await exchange(`${method} ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${headers}\r\n`),
  );
}

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
    return summaryOf(
      await exchange(`GET ${GOOD} HTTP/1.1\r\n${lines}Connection: close\r\n${authorization}\r\n`),
    );
  };
  for (const host of [
    '',
    'x',
    'a_b.example:8080',
    '127.0.0.1:80',
    '[::1]:80',
    '[fe80::1%25eth0]',
    'b%C3%BC.x',
  ])
    assert.equal(await withHosts(host), '200 100', host);
  for (const hosts of [[], ['a', 'b'], ['a', 'a'], ['a,b'], ['a b'], ['a/b'], ['u@a'], ['a?b'], ['\xfc']])
    assert.match(await withHosts(...hosts), /^400 The Host header is /, hosts.join());
  const old = await exchange(`GET ${GOOD} HTTP/1.0\r\n${authorization}\r\n`);
  assert.equal(summaryOf(old), '200 100', 'HTTP/1.0 needs none');
});

test('an ambiguous request is 400, and nothing after it is read', async () => {
  const hidden = `GET ${GOOD} HTTP/1.1\r\nHost: x\r\n${authorization}Connection: close\r\n\r\n`;
  for (const [what, bytes] of Object.entries(ambiguousRequests(hidden))) {
    const statuses = [...(await exchange(bytes)).matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);
    assert.deepEqual(statuses, ['400'], what);
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
