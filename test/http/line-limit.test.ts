/** Log lines that thousands of requests can cause are bounded, and all of them are counted. */
import assert from 'node:assert/strict';
import { renameSync } from 'node:fs';
import { afterEach, mock, test } from 'node:test';
import { createKey } from '../../src/auth/key-form.ts';
import { createFaultLog, createStrangerLog } from '../../src/http/line-limit.ts';
import { createLogger } from '../../src/logger.ts';
import { useCertificates, WITHOUT_OPENSSL } from '../support/certificates.ts';
import { exchangeBytes } from '../support/raw-http.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { inBody, postToken } from '../support/token-client.ts';

const { first } = useCertificates();
const CHANGES = '/v1/detections/changes?since=2026-11-21T11:00:00Z';
const SENT = 13;

afterEach(() => mock.timers.reset());

/** A log whose lines are kept, while time stands still. */
function keptLog() {
  mock.timers.enable({ apis: ['setTimeout'] });
  const lines: Record<string, unknown>[] = [];
  const log = createLogger({ level: 'silent' });
  log.info = (fields: object) => void lines.push({ ...fields });
  log.error = (fields: object, msg?: string) => void lines.push({ ...fields, msg });
  return { log, lines };
}

/** The lines of an address, and how many requests were only counted. */
const shown = (lines: readonly Record<string, unknown>[], address: string) => {
  const own = lines.filter((line) => line.address === address);
  const further = own.filter(({ msg }) => msg === 'further requests');
  return [own.length - further.length, further.map(({ counts }) => counts)];
};

type Ask = (server: TestServer, headers: Record<string, string>) => Promise<Response>;
const get =
  (path: string, key?: string, init: RequestInit = {}): Ask =>
  (to, headers) =>
    to.get(path, key, { ...init, headers });
/** With how they are counted. */
const KINDS: readonly [string, Ask][] = [
  ['200', get('/v1/health')],
  ['not_found', get('/made/up')],
  ['method_not_allowed', get('/v1/me', undefined, { method: 'DELETE' })],
  ['unauthorized', get(CHANGES)],
  ['unauthorized', get(CHANGES, createKey('ww').key)],
  ['unsupported_grant_type', (to, headers) => postToken(to, '', headers)],
  ['invalid_client', (to, headers) => postToken(to, inBody({ id: 'x', secret: 'y' }), headers)],
  ['content_too_large', (to, headers) => postToken(to, 'x'.repeat(5000), headers)],
];

test('of each kind of request without a key, ten are logged a minute, then their number', async () => {
  const to = await startTestServer({ trusted_proxies: ['127.0.0.1'], requests_per_minute: 100 });
  const { key } = to.makeKey();
  const send = async (times: number, address: string, ask: Ask) => {
    for (let sent = 0; sent < times; sent += 1)
      await (await ask(to, { 'x-forwarded-for': address })).arrayBuffer();
  };
  for (const [at, [, ask]] of KINDS.entries()) await send(SENT, `203.0.113.${at}`, ask);
  await send(100 + SENT, '192.0.2.1', get('/v1/me', key));
  for (let last = 0; last < SENT; last += 1) await send(1, `2001:db8::${last}`, get('/'));
  for (let sent = 0; sent < SENT; sent += 1) await exchangeBytes(to.port, 'nonsense\r\n\r\n');
  await to.close();
  const more = (kind: string) => [{ [kind]: SENT - 10 }];
  for (const [at, [kind]] of KINDS.entries())
    assert.deepEqual(shown(to.lines, `203.0.113.${at}`), [10, more(kind)], kind);
  assert.deepEqual(shown(to.lines, '192.0.2.1'), [110, more('requests')], 'only beyond the limit of a key');
  assert.deepEqual(shown(to.lines, '2001:db8:0:0::/64'), [0, more('not_found')], 'one IPv6 network');
  assert.deepEqual(shown(to.lines, '127.0.0.1'), [10, more('invalid_request')], 'malformed requests');
});

test('the same for failed handshakes', { skip: WITHOUT_OPENSSL }, async () => {
  const to = await startTestServer({ tls: first });
  for (let sent = 0; sent < SENT; sent += 1) await exchangeBytes(to.port, Buffer.alloc(64, 0x99));
  await to.close();
  assert.deepEqual(shown(to.lines, '127.0.0.1'), [10, [{ handshake: SENT - 10 }]]);
});

test('many addresses share 500 lines a minute, and the next minute begins anew', () => {
  const { log, lines } = keptLog();
  const strangers = createStrangerLog(log);
  const written: string[] = [];
  const ask = (address: string) => strangers.note(address, 'x', () => written.push(address));
  for (let round = 0; round < 3; round += 1)
    for (let at = 0; at < 2000; at += 1) ask(`10.0.${at >> 8}.${at & 255}`);
  assert.deepEqual([written.length, lines], [500, []]);
  mock.timers.tick(60_000);
  assert.deepEqual(lines, [{ counts: { x: 5500 } }]);
  for (let sent = 0; sent < 12; sent += 1) ask('10.0.7.7');
  strangers.close();
  assert.deepEqual([written.length, lines.at(-1)], [510, { address: '10.0.7.7', counts: { x: 2 } }]);
  mock.timers.tick(60_000);
  assert.equal(lines.length, 2);
});

/** Always created at the same place, like a repeated fault. */
const fault = (message: string, cause?: Error): Error =>
  new Error(message, cause === undefined ? {} : { cause });

test('each root cause of a fault has one line a minute, then a count', () => {
  const { log, lines } = keptLog();
  const faults = createFaultLog(log);
  const disk = fault('disk');
  for (const error of [fault('a', disk), fault('b', fault('c', disk)), fault('a'), 'thrown', 'thrown'])
    faults.note('fault', error, 'id');
  const written = lines.map(({ msg, err }) => `${msg}: ${err instanceof Error ? err.message : err}`);
  assert.deepEqual(written, ['fault: a', 'fault: a', 'fault: thrown']);
  mock.timers.tick(60_000);
  const repeated = lines.slice(3).map(({ msg, cause, counts }) => [msg, `${cause}`.split(' ')[0], counts]);
  assert.deepEqual(repeated, [
    ['fault repeated', 'disk', { fault: 1 }],
    ['fault repeated', 'thrown', { fault: 1 }],
  ]);
  for (let index = 0; index < 5000; index += 1) faults.note('fault', fault(`number ${index}`), 'id');
  assert.equal(lines.length, 55);
  faults.close();
  const last = { msg: 'fault repeated', cause: 'other causes', counts: { fault: 4950 } };
  assert.deepEqual(lines.slice(55), [last]);
});

test('while keys cannot be checked, many requests log the cause once', async () => {
  const server = await startTestServer();
  const { key } = server.makeKey();
  const path = `${server.store.folder}/access.db`;
  renameSync(path, `${path}-away`);
  for (let index = 0; index < 50; index += 1) assert.equal((await server.get('/v1/me', key)).status, 503);
  renameSync(`${path}-away`, path);
  assert.equal((await server.get('/v1/me', key)).status, 200);
  await server.close();
  assert.equal(server.lines.filter(({ msg }) => msg === 'unavailable').length, 1);
  const again = server.lines.find(({ msg }) => msg === 'fault repeated');
  assert.deepEqual(again?.counts, { unavailable: 49 });
  assert.match(String(again?.cause), /ENOENT/);
});
