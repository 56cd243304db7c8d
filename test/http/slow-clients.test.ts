/**
 * Clients that never read are disconnected, and their memory is freed. Slow and silent ones are in
 * test/torture/http/clients.ts.
 */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { CONNECTION_TIMES } from '../../src/http/listener.ts';
import { NOW_MS, startTestServer } from '../support/server.ts';
import { textRows } from '../support/store.ts';
import { until } from '../support/until.ts';

const CHANGES = '/v1/detections/changes?since=2026-11-21T11:00:00Z';
const MIB = 1024 * 1024;

setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');

/** Bytes in buffers that are in use. */
function bufferBytes(): number {
  collect();
  return process.memoryUsage().arrayBuffers;
}

test('clients that never read a large page are disconnected, and the memory is freed', async () => {
  // Longer than a good client needs for its page on a busy machine.
  const slow = await startTestServer({ times: { ...CONNECTION_TIMES, checkEveryMs: 20, idleMs: 10_000 } });
  after(slow.close);
  const { key } = slow.makeKey();
  slow.store.deliver(textRows(1000, { article_headline: 'x'.repeat(12_000) }), NOW_MS - 1000);
  const clients = 10;
  const pageBytes = 12 * MIB;
  await (await slow.get(`${CHANGES}&limit=1000`, key)).arrayBuffer();
  const before = bufferBytes();
  for (let count = 0; count < clients; count += 1) {
    const socket = connect({ port: slow.port, host: '127.0.0.1', allowHalfOpen: true });
    after(() => socket.destroy());
    // One that is cut off may be reset.
    socket.on('error', () => {});
    const request = `GET ${CHANGES}&limit=1000 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`;
    socket.write(request.repeat(5));
  }
  const pages = () => slow.lines.filter(({ msg, rows }) => msg === 'request' && rows === 1000).length;
  await until('each has a page', () => pages() === clients + 1);
  await until('all clients are disconnected', () => slow.running.connections() <= 1);
  assert.equal(pages(), clients + 1, 'of the five requested responses, only one may be built');
  await until('their memory is free again', () => bufferBytes() < before + 2 * pageBytes);
});
