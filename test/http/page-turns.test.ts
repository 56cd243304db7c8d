/** Pages are read in turn, key by key, and nothing else waits for them. */
import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { createPageTurns, PAGES_PER_KEY_MAX } from '../../src/http/page-turns.ts';
import { Refused } from '../../src/refused.ts';
import { checkedResponses } from '../support/raw-http.ts';
import { NOW_MS, startTestServer, type TestServer } from '../support/server.ts';
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
    const { take } = createPageTurns(1000);
    const order: string[] = [];
    await Promise.all([...'aaabbc'].map((key) => take(key).then(() => order.push(key))));
    assert.equal(order.join(''), 'abcaba');
  });

  test('a turn of the event loop reads large pages one by one', async () => {
    const { take } = createPageTurns(1000);
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
    const { take, arrived } = createPageTurns(1000);
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

  const isRefused = (error: unknown) => error instanceof Refused && error.code === 'rate_limited';

  test('a key that has too many is refused; the others are not', async () => {
    const { take } = createPageTurns(1000);
    const taken = Array.from({ length: PAGES_PER_KEY_MAX }, () => take('a'));
    assert.throws(() => take('a'), isRefused);
    await Promise.all([...taken, take('b')]);
    await take('a');
  });

  test('with too many in all, the newest of the key that has most is refused', async () => {
    const { take } = createPageTurns(16);
    const [first, second, third] = [take('a'), take('a'), take('a')];
    const others = [take('b')];
    const refused = assert.rejects(third ?? first, isRefused);
    others.push(take('c'));
    await refused;
    assert.throws(() => take('a'), isRefused, 'no other key has more');
    await Promise.all([first, second, ...others]);
  });
});

describe('a hundred pages at once', () => {
  let server: TestServer;
  const sockets: Socket[] = [];

  before(async () => {
    server = await startTestServer({ max_connections: 1000, max_connections_per_address: 1000 });
    const rows = Array.from({ length: 1000 }, (_, source_internal_id) => ({ source_internal_id }));
    const delivered = rows.map((row) => ({ content_type: 'text' as const, version: 1, row }));
    server.store.deliver(delivered, NOW_MS - 1000);
  });
  after(async () => {
    for (const socket of sockets) socket.destroy();
    await server.close();
  });

  const page = (key: string) =>
    `GET /v1/detections?from=2026-11-20&to=2026-11-21&limit=1000 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`;

  /** Connects, and sends a request. @returns what it has received so far */
  function send(text: string): () => string {
    const socket = connect(server.port, '127.0.0.1');
    sockets.push(socket);
    let received = '';
    socket.on('data', (chunk) => (received += chunk));
    if (text !== '') socket.write(text);
    return () => received;
  }

  const answers = () => server.lines.filter(({ msg }) => msg === 'request').map(({ path }) => path);

  test('delay neither the connection nor the answer of a health check', async () => {
    const { key } = server.makeKey();
    for (let sent = 0; sent < 100; sent += 1) send(page(key));
    send('GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n');
    await until('all are answered', () => answers().length === 101);
    const before = answers().indexOf('/v1/health');
    assert.ok(before < 50, `after ${before} pages`);
  });

  test('are read, and more of the same key are 429, with the time of the reset', async () => {
    const { key } = server.makeKey();
    const more = 20;
    const open = Array.from({ length: PAGES_PER_KEY_MAX + more }, () => send(''));
    const clients = sockets.slice(-open.length);
    await until('all are accepted', () => server.running.connections() === sockets.length);
    for (const socket of clients) socket.write(page(key));
    const status = (received: () => string) => received().slice(9, 12);
    await until('all are answered', () => open.every((received) => status(received) !== ''));
    const refused = open.filter((received) => status(received) === '429');
    assert.equal(refused.length, more);
    const [answer] = checkedResponses(refused[0]?.() ?? '', ['GET /v1/detections']);
    assert.match(answer?.body ?? '', /Too many requests for pages at once/);
    assert.ok(answer?.headers.get('retry-after') === answer?.headers.get('ratelimit-reset'));
    assert.equal(server.lines.filter(({ limit }) => limit === 'pages').length, more);
  });
});
