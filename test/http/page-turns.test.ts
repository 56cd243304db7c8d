/** Pages are read in turn, key by key, and nothing else waits for them. */
import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { createPageTurns } from '../../src/http/page-turns.ts';
import { bearer, rawRequest } from '../support/raw-http.ts';
import { NOW_MS, startTestServer, type TestServer } from '../support/server.ts';
import { textRows } from '../support/store.ts';
import { until } from '../support/until.ts';

/** Counts the turns of the event loop, and does something in each. */
function countTurns(inTurn: () => void = () => {}) {
  let turn = 0;
  let coming = setImmediate(function next() {
    turn += 1;
    inTurn();
    coming = setImmediate(next);
  });
  return { now: () => turn, [Symbol.dispose]: () => clearImmediate(coming) };
}

describe('turns', () => {
  test('a key that asks for much has one place among the keys', async () => {
    const { take } = createPageTurns();
    const order: string[] = [];
    await Promise.all([...'aaabbc'].map((key) => take(key).then(() => order.push(key))));
    assert.equal(order.join(''), 'abcaba');
  });

  test('a turn of the event loop reads large pages one by one', async () => {
    const { take } = createPageTurns();
    using turns = countTurns();
    const read = async () => {
      await take('a');
      for (const endMs = performance.now() + 3; performance.now() < endMs; );
      return turns.now();
    };
    const inTurns = await Promise.all(Array.from({ length: 20 }, read));
    assert.equal(new Set(inTurns).size, inTurns.length);
  });

  test('new connections come first, but not for ever', async () => {
    const { take, arrived } = createPageTurns();
    let arrivals = 0;
    // They end at last, so that the test does.
    using turns = countTurns(() => {
      arrivals += 1;
      if (arrivals < 20_000) arrived();
    });
    await until('connections arrive', () => turns.now() > 0);
    const begun = turns.now();
    await take('a');
    const waited = turns.now() - begun;
    assert.ok(waited > 50 && waited < 1000, `${waited} turns`);
  });
});

describe('a hundred pages at once', () => {
  let server: TestServer;
  const sockets: Socket[] = [];

  before(async () => {
    server = await startTestServer({ max_connections: 1000, max_connections_per_address: 1000 });
    server.store.deliver(textRows(1000), NOW_MS - 1000);
  });
  after(async () => {
    for (const socket of sockets) socket.destroy();
    await server.close();
  });

  const PAGE = 'GET /v1/detections?from=2026-11-20&to=2026-11-21&limit=1000';

  function send(text: string): void {
    const socket = connect(server.port, '127.0.0.1').on('data', () => {});
    sockets.push(socket);
    socket.write(text);
  }

  const answers = () => server.lines.filter(({ msg }) => msg === 'request').map(({ path }) => path);

  test('delay neither the connection nor the answer of a health check', async () => {
    const page = rawRequest(PAGE, bearer(server.makeKey().key));
    for (let sent = 0; sent < 100; sent += 1) send(page);
    send('GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n');
    await until('all are answered', () => answers().length === 101);
    const before = answers().indexOf('/v1/health');
    assert.ok(before < 50, `after ${before} pages`);
  });
});
