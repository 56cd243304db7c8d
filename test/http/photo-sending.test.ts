/** Sending a photo: in pieces, unchanged, and the file is closed afterwards. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, openSync, truncateSync, writeFileSync } from 'node:fs';
import fs from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { photoPath } from '../../src/detection/photo-address.ts';
import { inOpeningTurn } from '../../src/http/thread-turns.ts';
import { deriveKey } from '../../src/seal.ts';
import { openFilesBelow } from '../support/open-files.ts';
import { patchedAll } from '../support/patched-fs.ts';
import { rawRequest } from '../support/raw-http.ts';
import { sharedServer, TEST_SECRET } from '../support/server.ts';
import { testFolder } from '../support/test-folder.ts';
import { until } from '../support/until.ts';

const MIB = 1024 * 1024;
/** Much more than the buffers of a connection hold. */
const LARGE_BYTES = 48 * MIB;
const CUT_OFF = 'a photo could not be read to its end while it was being sent: the response was cut off';

const KEY = deriveKey(TEST_SECRET, 'photo');
const folder = testFolder();
const server = await sharedServer({ photos: folder });

afterEach(async () => {
  await until('the photos are closed', () => openPhotos().length === 0);
  server.lines.length = 0;
});

/** Creates a photo whose parts all differ. */
function putLarge(name: string): { file: string; content: Buffer } {
  const file = join(folder, name);
  const content = Buffer.alloc(LARGE_BYTES);
  for (let at = 0; at < LARGE_BYTES; at += 4) content.writeUInt32LE(at, at);
  writeFileSync(file, content);
  return { file, content };
}

/** Photos that this process, and therefore the server, has open; empty if the system does not report open files. */
const openPhotos = () => openFilesBelow(folder);

/** Requests a photo, and stops reading after the first bytes. */
async function beginReading(path: string) {
  const chunks: Buffer[] = [];
  const socket = connect(server.port, '127.0.0.1').on('error', () => {});
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()));
  socket.on('data', (chunk) => chunks.push(chunk)).once('data', () => socket.pause());
  socket.write(rawRequest(`GET ${path}`, 'Connection: close\r\n'));
  await once(socket, 'data');
  return { socket, chunks, closed };
}

function bodyOf(chunks: readonly Buffer[]): Buffer {
  const all = Buffer.concat(chunks);
  return all.subarray(all.indexOf('\r\n\r\n') + 4);
}

// This test is first: garbage of other tests would hide growth.
test('a client that does not read a photo costs little memory; sending continues when it reads', async () => {
  const { content } = putLarge('2.jpg');
  const { arrayBuffers } = process.memoryUsage();
  const { socket, chunks } = await beginReading(photoPath(KEY, 2));
  await wait(300);
  const grownBytes = process.memoryUsage().arrayBuffers - arrayBuffers;
  assert.ok(grownBytes < LARGE_BYTES / 2, `${grownBytes} bytes`);
  if (process.platform === 'linux') assert.equal(openPhotos().length, 1);
  socket.resume();
  await until('it is read', () => chunks.reduce((sum, { length }) => sum + length, 0) > LARGE_BYTES);
  assert.ok(bodyOf(chunks).equals(content));
  socket.destroy();
});

test('a large photo arrives completely, and so does a large range', async () => {
  const { content } = putLarge('1.jpg');
  const whole = await server.get(photoPath(KEY, 1));
  assert.ok(content.equals(Buffer.from(await whole.arrayBuffer())));
  const headers = { range: `bytes=1000-${LARGE_BYTES - 7}` };
  const part = await server.get(photoPath(KEY, 1), undefined, { headers });
  assert.equal(part.status, 206);
  assert.ok(content.subarray(1000, LARGE_BYTES - 6).equals(Buffer.from(await part.arrayBuffer())));
});

test('when the client disconnects, the file is closed without an error', async () => {
  putLarge('4.jpg');
  const { socket } = await beginReading(photoPath(KEY, 4));
  socket.destroy();
  await until('the photo is closed', () => openPhotos().length === 0);
  const socks = Array.from({ length: 30 }, (_, index) => {
    const one = connect(server.port, '127.0.0.1');
    one.on('error', () => {});
    one.write(rawRequest(`GET ${photoPath(KEY, 4)}`), () => setTimeout(() => one.destroy(), index % 4));
    return new Promise((resolve) => one.on('close', resolve));
  });
  await Promise.all(socks);
  await until('the photos are closed', () => openPhotos().length === 0);
  const warnings = server.lines.filter(({ level }) => Number(level) > 30);
  assert.deepEqual(warnings, []);
  assert.equal((await server.get('/photos/4')).status, 404, 'the server must still respond');
});

test('a photo that shrinks while it is sent ends the connection', async () => {
  const { file } = putLarge('5.jpg');
  const { socket, chunks, closed } = await beginReading(photoPath(KEY, 5));
  truncateSync(file, MIB);
  socket.resume();
  await closed;
  assert.match(Buffer.concat(chunks).toString('latin1', 0, 1000), /\r\nContent-Length: 50331648\r\n/);
  assert.ok(bodyOf(chunks).length < LARGE_BYTES);
  await until('it is logged', () => server.lines.some(({ msg }) => msg === CUT_OFF));
  const line = server.lines.find(({ msg }) => msg === CUT_OFF);
  assert.match(JSON.stringify(line), /the file shrank/);
  assert.match(String(line?.request_id), /^[0-9a-f-]{36}$/);
});

test('a share that hangs while photos are opened does not keep other answers waiting', async () => {
  const pipe = join(folder, '8.jpg');
  execFileSync('mkfifo', [pipe]);
  let opens = 0;
  // To open a pipe blocks one of Node's threads until somebody writes to it, as a share does until its server is back.
  using _ = patchedAll(fs, ['open'], (open, args) => {
    if (args[0] !== pipe) return open(...args);
    opens += 1;
    return open(pipe, constants.O_RDONLY);
  });
  const photos = Array.from({ length: 6 }, () => server.get(photoPath(KEY, 8)));
  await until('the first ones hang', () => opens >= 2);
  // It is compressed, for which a thread is needed.
  const other = server.get('/v1/openapi.json').then(({ headers }) => headers.get('content-encoding'));
  const answered = await Promise.race([other, wait(5000, 'nothing')]);
  const writer = openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK);
  for (const photo of photos) assert.equal((await photo).status, 404);
  closeSync(writer);
  assert.notEqual(answered, 'nothing');
});

test('of the photos on a share that hangs, a bounded number waits to be opened', async () => {
  const hanging = Promise.withResolvers<void>();
  const asked = Array.from({ length: 201 }, () =>
    inOpeningTurn(() => hanging.promise).then(
      () => 'opened',
      ({ code }) => code,
    ),
  );
  assert.equal(await asked.at(-1), 'unavailable');
  hanging.resolve();
  assert.equal((await Promise.all(asked)).filter((outcome) => outcome === 'opened').length, 200);
});

test('a share that hangs while photos are read holds two threads', async () => {
  writeFileSync(join(folder, '9.jpg'), 'the photo');
  await using handle = await fs.open(join(folder, '9.jpg'));
  const { promise: back, resolve: comeBack } = Promise.withResolvers<void>();
  let [reads, most] = [0, 0];
  using _ = patchedAll(Object.getPrototypeOf(handle), ['read'], async (read, range) => {
    most = Math.max(most, ++reads);
    await back;
    reads -= 1;
    return read(...range);
  });
  const photos = Array.from({ length: 6 }, () => server.get(photoPath(KEY, 9)));
  await until('the first ones hang', () => reads >= 2);
  await wait(200);
  comeBack();
  for (const photo of photos) assert.equal(await (await photo).text(), 'the photo');
  assert.equal(most, 2);
});
