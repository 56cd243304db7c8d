/** Compressed responses (RFC 9110, 12.5.3), and the link to the next page. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { syncBuiltinESMExports } from 'node:module';
import { buffer } from 'node:stream/consumers';
import { describe, mock, test } from 'node:test';
import zlib, { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { encodingFor } from '../../src/http/encoding.ts';
import { NOW_MS, sharedServer } from '../support/server.ts';
import { textRows } from '../support/store.ts';
import { inBody, postToken } from '../support/token-client.ts';

const server = await sharedServer({ base_url: 'https://api.example/ww' });
const { key } = server.makeKey();
server.store.deliver(textRows(30), NOW_MS);

test('the encoding is the supported one with the highest weight', () => {
  for (const [encoding, ...headers] of [
    ['gzip', 'gzip', 'GZIP', 'gzip;q=1, zstd;q=0.5', 'gzip ; q=0.2 , zstd ; q=0'],
    ['zstd', 'zstd', 'gzip, deflate, br, zstd'],
    [null, undefined, '', '*', 'br, deflate', 'identity, gzip;q=0.5', 'gzip;q=0', 'gzip;q=2', 'gzip;level=9'],
  ] as const)
    for (const header of headers) assert.equal(encodingFor(header), encoding, header);
});

test('a text that was just compressed is not compressed again: anybody may ask for the OpenAPI document', async () => {
  const { gzip: original } = zlib;
  const compress = mock.method(zlib, 'gzip');
  syncBuiltinESMExports();
  const counted: typeof import('../../src/http/encoding.ts') = await import(
    `../../src/http/encoding.ts${'?counted'}`
  );
  zlib.gzip = original;
  syncBuiltinESMExports();
  const encode = counted.createEncoder();
  const unpacked = async (body: string) => {
    const encoded = await encode({ status: 200, body }, 'gzip');
    assert.ok(Array.isArray(encoded.body));
    return `${gunzipSync(encoded.body[0] ?? '')}`;
  };
  const text = 'a document '.repeat(1000);
  const answers = await Promise.all(Array.from({ length: 30 }, () => unpacked(text)));
  assert.ok(answers.every((answer) => answer === text));
  assert.equal(compress.mock.callCount(), 1);
  for (const other of [`${text}.`, text]) assert.equal(await unpacked(other), other);
  assert.ok((await encode({ status: 200, body: text }, 'zstd')).headers?.includes('zstd'));
});

describe('an answer', () => {
  /** Uses node:http, since fetch decodes bodies itself. */
  async function ask(path: string, headers: Record<string, string> = {}) {
    const sent = request(`${server.url}${path}`, { headers: { authorization: `Bearer ${key}`, ...headers } });
    sent.end();
    const [response]: IncomingMessage[] = await once(sent, 'response');
    assert.ok(response);
    return { status: response.statusCode, headers: response.headers, body: await buffer(response) };
  }
  const CHANGES = '/v1/detections/changes?since=2026-11-20T00:00:00Z';

  test('is plain without Accept-Encoding, and has Vary', async () => {
    const { headers, body } = await ask(CHANGES);
    assert.deepEqual([headers['content-encoding'], headers.vary], [undefined, 'Accept-Encoding']);
    assert.equal(Number(headers['content-length']), body.length);
    assert.equal(JSON.parse(`${body}`).data.length, 30);
  });

  test('with a token is never compressed: its length would depend on the token', async () => {
    const { id, key: secret } = server.makeKey();
    const response = await postToken(server, inBody({ id, secret }), { 'accept-encoding': 'gzip, zstd' });
    assert.deepEqual([response.status, response.headers.get('content-encoding')], [200, null]);
  });

  test('over 1 KiB is compressed with gzip or zstd, with the compressed length', async () => {
    const plain = (await ask(CHANGES)).body;
    for (const [encoding, unpack] of Object.entries({ gzip: gunzipSync, zstd: zstdDecompressSync })) {
      const { headers, body } = await ask(CHANGES, { 'accept-encoding': encoding });
      assert.equal(headers['content-encoding'], encoding);
      assert.equal(headers['content-type'], 'application/json');
      assert.equal(Number(headers['content-length']), body.length);
      assert.ok(body.length < plain.length / 4);
      assert.deepEqual(unpack(body), plain);
    }
  });

  test('under 1 KiB, or with a strong entity tag, is plain', async () => {
    for (const path of ['/v1/health', '/v1/schema/detection']) {
      const { headers } = await ask(path, { 'accept-encoding': 'gzip' });
      assert.deepEqual([headers['content-encoding'], headers.vary], [undefined, undefined], path);
    }
  });

  test('with a next page links to it', async () => {
    const all: string[] = [];
    let path: string | null = `${CHANGES}&limit=12&content_type=text`;
    while (path !== null) {
      const { headers, body } = await ask(path);
      const page: { data: { id: string }[]; has_more: boolean; next_cursor: string } = JSON.parse(`${body}`);
      all.push(...page.data.map(({ id }) => id));
      assert.equal(headers.link !== undefined, page.has_more);
      const [, next = null] =
        /^<https:\/\/api\.example\/ww(\/v1\/detections\/changes\?[^>]+)>; rel="next"$/.exec(
          `${headers.link}`,
        ) ?? [];
      if (next !== null) assert.match(next, /[?&]limit=12&/);
      path = next;
    }
    assert.equal(new Set(all).size, 30);
    const period = await ask('/v1/detections?from=2026-11-20&to=2026-11-21&limit=20');
    const { next_cursor } = JSON.parse(`${period.body}`);
    assert.match(`${period.headers.link}`, new RegExp(`cursor=${next_cursor}>; rel="next"$`));
  });

  test('omits a link that would make the headers too long for proxies and clients', async () => {
    const domains = (end: string) =>
      Array.from({ length: 20 }, (_, at) => `${`${at}`.padStart(63, 'd')}.${'x'.repeat(60)}.${end}`).join();
    const many = `exclude_domain=${domains('example')}&exclude_publisher_id=${'1'.repeat(15)}`;
    const { status, headers, body } = await ask(`${CHANGES}&limit=12&${many}`);
    assert.deepEqual([status, JSON.parse(`${body}`).has_more], [200, true]);
    assert.equal(headers.link, undefined);
  });
});
