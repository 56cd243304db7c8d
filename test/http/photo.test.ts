/** GET /photos/{internal_id}: access and headers. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { linkSync, mkdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { parsePhotoId, photoPath } from '../../src/detection/photo-address.ts';
import { deriveKey } from '../../src/seal.ts';
import { sharedServer, startTestServer, TEST_SECRET } from '../support/server.ts';
import { testFolder } from '../support/test-folder.ts';
import { words } from '../support/words.ts';

const IMMUTABLE = 'public, max-age=31536000, immutable';
const KEY = deriveKey(TEST_SECRET, 'photo');
const PHOTO = Buffer.from('the photo with the number five');

const folder = testFolder();
const server = await sharedServer({ photos: join(folder, 'photos'), requests_per_minute: 1 });
mkdirSync(join(folder, 'photos'));
put('5.jpg', PHOTO);

function put(name: string, content: string | Buffer): string {
  const file = join(folder, 'photos', name);
  writeFileSync(file, content);
  return file;
}

const signatureOf = (id: number): string => photoPath(KEY, id).split('=')[1] ?? '';

/** A response without the parts that differ between requests. */
async function wholeAnswer(path: string, init?: RequestInit): Promise<string> {
  const response = await server.get(path, undefined, init);
  const id = response.headers.get('x-request-id') ?? '?';
  const headers = [...response.headers].filter(([name]) => name !== 'date');
  return JSON.stringify([response.status, headers, await response.text()]).replaceAll(id, 'ID');
}

const headersOf = ({ headers }: Response, names: string) => words(names).map((name) => headers.get(name));

const bytesOf = async (response: Response): Promise<Buffer> => Buffer.from(await response.arrayBuffer());

test('the link alone serves the photo, with headers for caching', async () => {
  const response = await server.get(photoPath(KEY, 5));
  assert.equal(response.status, 200);
  assert.deepEqual(await bytesOf(response), PHOTO);
  const headers = headersOf(response, 'content-type content-length content-range accept-ranges');
  assert.deepEqual(headers, ['image/jpeg', `${PHOTO.length}`, null, 'bytes']);
  assert.deepEqual(headersOf(response, 'cache-control x-content-type-options'), [IMMUTABLE, 'nosniff']);
});

test('each kind of file has its content type, and the first kind wins', async () => {
  const kinds = words('jpg:jpeg jpeg:jpeg png:png webp:webp gif:gif tif:tiff');
  for (const [ending, subtype] of kinds.toReversed().map((kind) => kind.split(':'))) {
    put(`60.${ending}`, `60.${ending}`);
    const response = await server.get(photoPath(KEY, 60));
    assert.equal(response.headers.get('content-type'), `image/${subtype}`);
    assert.equal(await response.text(), `60.${ending}`);
  }
  for (const name of ['61.tiff', '61.svg', '61.html', '61.JPG', '61', '61.jpg.txt']) put(name, 'x');
  assert.equal((await server.get(photoPath(KEY, 61))).status, 404);
});

test('a wrong signature and a missing photo get the same response, byte for byte', async () => {
  const missing = await wholeAnswer(photoPath(KEY, 6));
  assert.match(missing, /^\[404,.*"no-store".*application\/problem\+json.*\/errors\/not_found/);
  const right = signatureOf(5);
  const foreign = photoPath(Buffer.alloc(32, 1), 7).split('=')[1];
  const wrong = [
    ...['', '?', '?signature', '?signature=', '?signature=%', '?signature=%ff%fe', '?signature=ä'],
    ...[`?Signature=${right}`, `?signature=%20${right}`, `?signature=${'A'.repeat(20_000)}`],
    ...[signatureOf(6), foreign, `${right}=`, `${right}A`, right.slice(0, -1)].map(
      (signature) => `?signature=${signature}`,
    ),
    ...[right, ''].map((second) => `?signature=${right}&signature=${second}`),
    ...[...right].map((at, index) => {
      return `?signature=${right.slice(0, index)}${at === 'x' ? 'y' : 'x'}${right.slice(index + 1)}`;
    }),
    // The last character has unused bits: other spellings of the same bytes.
    ...[...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_']
      .map((last) => `${right.slice(0, -1)}${last}`)
      .filter((one) => one !== right)
      .map((one) => `?signature=${one}`),
  ];
  for (const query of wrong) assert.equal(await wholeAnswer(`/photos/5${query}`), missing, query);
  assert.equal(await wholeAnswer('/photos/6?signature=x'), missing);
});

test('a malformed or non-canonical photo number gets the same response', async () => {
  const missing = await wholeAnswer(photoPath(KEY, 6));
  const signature = signatureOf(5);
  for (const id of words('05 -5 5e0 %35 5%0a 5.jpg ٥ 1000000000000000 %2e%2e%2fphotos%2f5 %'))
    for (const sent of [id, encodeURI(id)])
      assert.equal(await wholeAnswer(`/photos/${sent}?signature=${signature}`), missing, id);
  assert.deepEqual(['0', '5', '999999999999999'].map(parsePhotoId), [0, 5, 999_999_999_999_999]);
  for (const text of ['', '00', '05', '5\n', '1000000000000000'])
    assert.equal(parsePhotoId(text), null, text);
});

test('a URL of an earlier version is valid: its format is stable', () => {
  assert.equal(photoPath(KEY, 501), '/photos/501?signature=gtEFucFeKW4-kciXUCg7Sw');
});

test('a link stays valid with a query, and with escaped characters', async () => {
  const escaped = [...signatureOf(5)].map((one) => `%${one.charCodeAt(0).toString(16)}`).join('');
  for (const path of [`${photoPath(KEY, 5)}&utm_source=mail&x`, `/photos/5?a=1&signature=${escaped}`]) {
    const response = await server.get(path);
    assert.equal(response.status, 200, path);
    assert.deepEqual(await bytesOf(response), PHOTO);
  }
});

test('one byte range is 206 with that part', async () => {
  const size = PHOTO.length;
  for (const [range, start, end] of [
    ['bytes=0-0', 0, 1],
    ['bytes=4-8', 4, 9],
    ['bytes=4-', 4, size],
    ['bytes=0-', 0, size],
    [`bytes=${size - 1}-`, size - 1, size],
    ['bytes=4-9999999999999999999999', 4, size],
    ['bytes=-5', size - 5, size],
    ['bytes=-9999', 0, size],
    ['Bytes=4-8', 4, 9],
    ['bytes= 4-8 ', 4, 9],
  ] as const) {
    const response = await server.get(photoPath(KEY, 5), undefined, { headers: { range } });
    assert.equal(response.status, 206, range);
    assert.deepEqual(await bytesOf(response), PHOTO.subarray(start, end), range);
    const headers = headersOf(response, 'content-range content-length content-type');
    assert.deepEqual(headers, [`bytes ${start}-${end - 1}/${size}`, `${end - start}`, 'image/jpeg']);
  }
});

test('a range that is malformed, multiple, of another unit or outside the photo is ignored', async () => {
  for (const range of [
    ...[`bytes=${PHOTO.length}-`, 'bytes=-0', 'bytes=8-4', 'bytes=0-1,4-5', 'bytes=-', 'bytes=a-b'],
    'items=0-1',
  ]) {
    const response = await server.get(photoPath(KEY, 5), undefined, { headers: { range } });
    assert.equal(response.status, 200, range);
    assert.equal(response.headers.get('content-range'), null);
    assert.deepEqual(await bytesOf(response), PHOTO, range);
  }
});

test('If-Range prevents mixing parts of two photos', async () => {
  const etag = (await server.get(photoPath(KEY, 5))).headers.get('etag') ?? assert.fail('no ETag');
  assert.match(etag, /^"[0-9a-f]+-[0-9a-f]+"$/);
  for (const condition of [etag, '"another"', `W/${etag}`, new Date().toUTCString(), '']) {
    const headers = { range: 'bytes=0-3', 'if-range': condition };
    const response = await server.get(photoPath(KEY, 5), undefined, { headers });
    const found = [response.status, (await bytesOf(response)).length];
    assert.deepEqual(found, condition === etag ? [206, 4] : [200, PHOTO.length], condition);
  }
});

test('the ETag changes with the photo, and If-None-Match with it is 304', async () => {
  const file = put('62.jpg', 'one');
  const etagNow = async () => (await server.get(photoPath(KEY, 62))).headers.get('etag') ?? '';
  const first = await etagNow();
  assert.equal(await etagNow(), first);
  const conditional = { headers: { 'if-none-match': `"x", W/${first}`, range: 'bytes=0-0' } };
  const response = await server.get(photoPath(KEY, 62), undefined, conditional);
  assert.equal(response.status, 304);
  assert.equal(await response.text(), '');
  const { headers } = response;
  assert.deepEqual([headers.get('etag'), headers.get('cache-control')], [first, IMMUTABLE]);
  assert.ok(headers.has('x-request-id') && !headers.has('content-type') && !headers.has('content-length'));
  put('62.jpg', 'two');
  utimesSync(file, 1_000_000_000, 1_000_000_000);
  assert.notEqual(await etagNow(), first);
  assert.equal((await server.get(photoPath(KEY, 62), undefined, conditional)).status, 206);
  const wrong = await server.get('/photos/62?signature=x', undefined, { headers: { 'if-none-match': '*' } });
  assert.equal(wrong.status, 404, 'the signature must be checked first');
});

test('only regular files with content are served, not links, folders, pipes, sockets or empty files', async () => {
  const secret = join(folder, 'secret.jpg');
  writeFileSync(secret, 'outside the folder');
  symlinkSync(secret, join(folder, 'photos', '70.jpg'));
  symlinkSync('5.jpg', join(folder, 'photos', '71.jpg'));
  symlinkSync('nowhere', join(folder, 'photos', '72.jpg'));
  mkdirSync(join(folder, 'photos', '73.jpg'));
  execFileSync('mkfifo', [join(folder, 'photos', '74.jpg')]);
  put('75.jpg', '');
  const socket = createServer()
    .listen(join(folder, 'photos', '76.jpg'))
    .unref();
  for (const id of [70, 71, 72, 73, 74, 75, 76])
    assert.equal((await server.get(photoPath(KEY, id))).status, 404, String(id));
  for (const id of [70, 73, 74, 75]) {
    put(`${id}.gif`, 'behind it');
    assert.equal(await (await server.get(photoPath(KEY, id))).text(), 'behind it');
  }
  linkSync(secret, join(folder, 'photos', '77.jpg'));
  assert.equal((await server.get(photoPath(KEY, 77))).status, 200, 'a hard link is a regular file');
  await new Promise((resolve) => socket.close(resolve));
});

test('without the folder there is no photo; an unreadable photo is a fault, and is logged', async () => {
  for (const [photos, status] of [
    [join(folder, 'nowhere'), 404],
    [join(folder, 'photos', '5.jpg'), 404],
    [`${folder}\0`, 500],
  ] as const) {
    await using other = await startTestServer({ photos });
    const response = await other.get(photoPath(KEY, 5));
    assert.deepEqual([response.status, response.headers.get('cache-control')], [status, 'no-store']);
    assert.equal(other.lines.filter(({ msg }) => msg === 'fault').length, status === 500 ? 1 : 0);
  }
});
