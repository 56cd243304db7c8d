/** Bodies: malformed, with unsupported codings, and unexpected ones (RFC 9112, 6 to 9). */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { photoPath } from '../../src/detection/photo-address.ts';
import { deriveKey } from '../../src/seal.ts';
import { bearer, checkedResponses, exchangeBytes, rawRequest } from '../support/raw-http.ts';
import { sharedServer, TEST_SECRET } from '../support/server.ts';
import { testFolder } from '../support/test-folder.ts';

const photos = testFolder();
writeFileSync(join(photos, '1.jpg'), 'a photo');
const server = await sharedServer({ photos });
const { key } = server.makeKey();
const PHOTO = photoPath(deriveKey(TEST_SECRET, 'photo'), 1);
const CHANGES = '/v1/detections/changes?since=2026-11-21T11:00:00Z';
const POST_TOKEN = 'POST /oauth/token';
const TOKEN_HEAD = `${POST_TOKEN} HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n`;
const CHUNKED = 'Transfer-Encoding: chunked\r\n\r\n';

const get = (target: string, headers = '') => rawRequest(`GET ${target}`, bearer(key) + headers);

/** Sends bytes. @returns the statuses of the answers to the requests in them, each checked against the document */
async function statusesOf(bytes: string, requests: readonly string[], thenEnd = false): Promise<number[]> {
  const received = await exchangeBytes(server.port, bytes, thenEnd);
  return checkedResponses(received, requests).map(({ status }) => status);
}

/** A well-formed token request without a body, which gets a specific error. */
const UNTYPED = `${POST_TOKEN} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n`;

/** What is ambiguous besides is in hostile-requests.test.ts. */
const BROKEN: readonly (readonly [what: string, rest: string, thenEnd?: true])[] = [
  ['a chunk size that is none', `${CHUNKED}zz\r\n`],
  ['a chunk that is longer than its size', `${CHUNKED}5\r\nabcdeXX\r\n`],
  ['a chunk size beyond all numbers', `${CHUNKED}${'f'.repeat(40)}\r\n`],
  ['a flood of chunk extensions', `${CHUNKED}5;${'x'.repeat(3_000_000)}\r\nabcde\r\n0\r\n\r\n`],
  ['a chunked body that ends early', `${CHUNKED}5\r\nab`, true],
  ['a body shorter than its Content-Length', 'Content-Length: 50\r\n\r\ngrant_type=', true],
  ['a malformed Host', 'Host: y\r\nConnection: close\r\n\r\n'],
  ['an expectation nobody meets', 'Expect: tea\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'],
];

for (const [what, rest, thenEnd] of BROKEN) {
  test(`the token endpoint answers ${what} with 400 in its own form, then ends`, async () => {
    const received = await exchangeBytes(server.port, TOKEN_HEAD + rest, thenEnd);
    const [answer, ...more] = checkedResponses(received, [POST_TOKEN]);
    assert.ok(answer !== undefined && more.length === 0, received);
    assert.deepEqual([answer.status, JSON.parse(answer.body).error], [400, 'invalid_request']);
    assert.equal(answer.headers.get('connection'), 'close');
  });
}

test('a malformed body is answered in turn, after the earlier requests', async () => {
  const bytes = UNTYPED + get('/v1/me') + UNTYPED + TOKEN_HEAD;
  const received = await exchangeBytes(server.port, `${bytes}${CHUNKED}zz\r\n`);
  const answers = checkedResponses(received, [POST_TOKEN, 'GET /v1/me', POST_TOKEN, POST_TOKEN]);
  const shown = answers.map(({ status, body }) => `${status} ${/form|incomplete/.exec(body)?.[0]}`);
  assert.deepEqual(shown, ['400 form', '200 undefined', '400 form', '400 incomplete']);
});

test('bytes after a request that are not a request are answered last, and once', async () => {
  const bytes = `${UNTYPED}${UNTYPED}nonsense\r\n\r\n${'more'.repeat(50_000)}`;
  const received = await exchangeBytes(server.port, bytes);
  const answers = checkedResponses(received, [POST_TOKEN, POST_TOKEN, 'GET /v1/me']);
  const shown = answers.map(({ status, headers }) => `${status} ${headers.get('content-type')}`);
  assert.deepEqual(shown, [...Array(2).fill('400 application/json'), '400 application/problem+json']);
});

test('a request answered before its body fails gets no second response', async () => {
  const bytes = `${get('/v1/me', 'Transfer-Encoding: chunked\r\n')}zz\r\n`;
  assert.deepEqual(await statusesOf(bytes, ['GET /v1/me', '?']), [200]);
});

test('a client that half-closes still gets every response', async () => {
  const requests = [POST_TOKEN, `GET ${PHOTO}`, POST_TOKEN, 'GET /v1/me'];
  const bytes = UNTYPED + get(PHOTO) + UNTYPED + get('/v1/me');
  assert.deepEqual(await statusesOf(bytes, requests, true), [400, 200, 400, 200]);
});

test('an unexpected body is discarded, and the next request is parsed after it', async () => {
  const inner = get('/v1/nowhere');
  const bodies = [
    `Content-Length: ${inner.length}\r\n\r\n${inner}`,
    `Transfer-Encoding: chunked\r\n\r\n${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n`,
    `Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nTrailer: ${'x'.repeat(50)}\r\n\r\n`,
    `Content-Length: 500000\r\n\r\n${inner.padEnd(500_000, 'x')}`,
  ];
  const requests: [string, number][] = [
    [`GET ${CHANGES}`, 200],
    ['GET /v1/detections?from=2026-11-20&to=2026-11-20', 200],
    ['GET /v1/detections/t.7001.1.1', 404],
    ['GET /v1/me', 200],
    ['GET /v1/schema/detection', 200],
    ['HEAD /v1/schema/detection', 200],
    ['GET /v1/health', 200],
    ['HEAD /v1/health', 200],
    [`GET ${PHOTO}`, 200],
    ['GET /oauth/token', 405],
    ['POST /v1/me', 405],
    ['DELETE /nowhere', 404],
  ];
  for (const [request, status] of requests) {
    for (const body of bodies) {
      const head = `${request} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n`;
      const last = get('/v1/detections/x', 'Connection: close\r\n');
      const statuses = await statusesOf(head + body + last, [request, 'GET /v1/detections/x']);
      assert.deepEqual(statuses, [status, 400], `${request} ${body.slice(0, 60)}`);
    }
  }
});

test('a response that ends the connection reaches a client that is still sending', async () => {
  const body = 'x'.repeat(8_000_000);
  const head = `POST /v1/me HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n`;
  assert.match(await exchangeBytes(server.port, head + body), /^HTTP\/1\.1 405 [\s\S]*\}$/, 'not reset');
});

test('an unknown method is 405 on an existing path, 404 elsewhere', async () => {
  const send = (request: string) => exchangeBytes(server.port, rawRequest(request, 'Connection: close\r\n'));
  for (const method of ['FOO', 'get', 'GETX', 'X', 'BREW', 'HEAD_', "M-%!'~"]) {
    for (const [target, allow] of [
      ['/v1/me', 'GET'],
      ['/v1/health?x=1', 'GET, HEAD'],
      ['/v1/detections/x', 'GET'],
      ['/oauth/token', 'POST'],
      ['http://x/v1/me', 'GET'],
    ] as const) {
      const request = `${method} ${target}`;
      const received = await send(request);
      assert.match(received, new RegExp(`^HTTP/1\\.1 405 [\\s\\S]*\r\nAllow: ${allow}\r\n`), request);
      assert.equal(received.includes('\r\nPragma: no-cache\r\n'), target === '/oauth/token');
      const body = JSON.parse(received.slice(received.indexOf('\r\n\r\n')));
      assert.deepEqual([body.title, body.status], ['Method not allowed', 405]);
    }
    assert.match(await send(`${method} /nope`), /^HTTP\/1\.1 404 /);
    assert.match(await send(`${method} /v1/me/`), /^HTTP\/1\.1 404 /);
  }
  const second = `${get('/v1/nowhere')}BREW /v1/me HTTP/1.1\r\nHost: x\r\n\r\n`;
  assert.match(await exchangeBytes(server.port, second), /^HTTP\/1\.1 404 [\s\S]*HTTP\/1\.1 405 /);
  for (const malformed of ['FO(O /v1/me', 'FOO', 'FOO /v1/me x', ' FOO /v1/me'])
    assert.match(await send(malformed), /^HTTP\/1\.1 400 /, malformed);
});
