/** GET and HEAD /v1/schema/detection. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { schemaFields } from '../../src/detection/fields.ts';
import { bearer, exchangeBytes, rawRequest } from '../support/raw-http.ts';
import { sharedServer } from '../support/server.ts';

const PATH = '/v1/schema/detection';

const server = await sharedServer();
const key = server.makeKey().key;

const currentEtag = async (): Promise<string> =>
  (await server.get(PATH, key)).headers.get('etag') ?? assert.fail('no ETag');

const conditional = (tag: string) => ({ headers: { 'if-none-match': tag } });

test('each field has its members, its column, its position and a description', async () => {
  const { fields }: { fields: ReturnType<typeof schemaFields> } = await server.json(PATH, key);
  for (const [index, field] of fields.entries()) {
    assert.equal(Object.keys(field).join(), 'path,column,position,type,nullable,content_types,description');
    assert.deepEqual([field.position, field.column], [index + 1, field.path.split('.').join('_')]);
    assert.match(field.description, /^[A-Za-z].{15,}\.$/, field.path);
  }
  for (const name of ['path', 'column', 'description'] as const)
    assert.equal(new Set(fields.map((field) => field[name])).size, fields.length, name);
});

test('schema_version is the only parameter, and v1 its only value', async () => {
  assert.equal((await server.get(`${PATH}?schema_version=v1`, key)).status, 200);
  for (const [query, detail] of [
    ['schema_version=v2', /^schema_version: must be v1/],
    ['schema_version=V1', /^schema_version: must be v1/],
    ['schema_version=', /^schema_version: must not be empty/],
    ['schema_version=v1&schema_version=v1', /^schema_version: must not be repeated/],
    ['fields=id', /unknown parameter "fields"/],
    ['nope=1', /unknown parameter "nope"/],
  ] as const) {
    const response = await server.get(`${PATH}?${query}`, key);
    assert.deepEqual([response.status, response.headers.get('etag')], [400, null], query);
    assert.match(JSON.parse(await response.text()).detail, detail);
  }
});

test('If-None-Match with the current ETag is 304, with its headers and without a body', async () => {
  const etag = await currentEtag();
  const response = await server.get(PATH, key, conditional(etag));
  assert.equal(response.status, 304);
  assert.equal(await response.text(), '');
  const { headers } = response;
  assert.deepEqual([headers.get('etag'), headers.get('cache-control')], [etag, 'no-cache']);
  for (const name of ['x-request-id', 'ratelimit-limit', 'ratelimit-policy', 'ratelimit-remaining'])
    assert.ok(headers.has(name), name);
  for (const name of ['content-type', 'content-length']) assert.ok(!headers.has(name), name);
});

test('If-None-Match is compared weakly, in lists, and supports *; a malformed one matches nothing', async () => {
  const etag = await currentEtag();
  const bare = etag.slice(1, -1);
  const named = [etag, `W/${etag}`, '*', ' * ', `"a", ${etag}`, `"a","b, c" ,\tW/${etag} , "d"`];
  const malformed = [bare, `w/${etag}`, `W/ ${etag}`, `"${bare}`, `${etag}x`, `${etag} "a"`, `"a ${etag}`];
  for (const [status, headers] of [
    [304, [...named, `,, ${etag}`, `nonsense, ${etag}`]],
    [200, [...malformed, '"a"', '"*"', `"a,${bare}"`, '', ',', '""', '*x', 'nonsense']],
  ] as const)
    for (const header of headers)
      assert.equal(await server.statusOf(PATH, key, conditional(header)), status, header);
});

test('If-None-Match may be repeated', async () => {
  const lines = `If-None-Match: "a"\r\nIf-None-Match: ${await currentEtag()}\r\n`;
  assert.match(await exchange('GET', lines), /^HTTP\/1\.1 304 /);
});

test('HEAD has the status and the headers of GET, and no body', async () => {
  const etag = await currentEtag();
  for (const [query, header, status] of [
    ['', '', 200],
    ['?schema_version=v1', 'If-None-Match: "a"\r\n', 200],
    ['', `If-None-Match: W/${etag}\r\n`, 304],
    ['?schema_version=v2', `If-None-Match: ${etag}\r\n`, 400],
    ['?nope=1', 'If-None-Match: *\r\n', 400],
  ] as const) {
    const get = await exchange('GET', header, query);
    const head = await exchange('HEAD', header, query);
    assert.match(head, new RegExp(`^HTTP/1.1 ${status} `));
    const [getHead = '', body = ''] = get.split('\r\n\r\n');
    assert.equal(head.endsWith('\r\n\r\n'), true, 'a body');
    assert.equal(comparable(head), comparable(`${getHead}\r\n\r\n`));
    const length = /Content-Length: (\d+)/.exec(head)?.[1];
    assert.equal(length, status === 304 ? undefined : String(Buffer.byteLength(body)));
  }
  const unnamed = await exchange('HEAD', '', '', '');
  assert.match(unnamed, /^HTTP\/1\.1 401 /);
  assert.ok(unnamed.endsWith('\r\n\r\n'));
});

/** A head without the parts that differ between requests. */
const comparable = (head: string): string =>
  head
    .replace(/^(X-Request-Id|Date|RateLimit-Remaining|RateLimit-Reset): .*$/gm, '$1')
    .replace(/"request_id":"[^"]*"/, '');

function exchange(method: string, headers: string, query = '', authorization?: string): Promise<string> {
  const all = `Connection: close\r\n${authorization ?? bearer(key)}${headers}`;
  return exchangeBytes(server.port, rawRequest(`${method} ${PATH}${query}`, all));
}
