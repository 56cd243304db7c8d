/** What strangers can write to the log is bounded, whatever they send and from however many addresses. */
import assert from 'node:assert/strict';
import { afterEach, mock, test } from 'node:test';
import { createKey } from '../../src/auth/key.ts';
import { createStrangerLog } from '../../src/http/stranger-log.ts';
import { createLogger } from '../../src/logger.ts';
import { exchange, useCertificates, WITHOUT_OPENSSL } from '../support/certificates.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { inBody, postToken } from '../support/token-client.ts';

const { first } = useCertificates();
const CHANGES = '/v1/detections/changes?since=2026-11-21T11:00:00Z';
const SENT = 13;

afterEach(() => mock.timers.reset());

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
  ['not_found', get('/v1/photos/x')],
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
  for (let sent = 0; sent < SENT; sent += 1) await exchange(to.port, 'nonsense\r\n\r\n');
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
  for (let sent = 0; sent < SENT; sent += 1) await exchange(to.port, Buffer.alloc(64, 0x99));
  await to.close();
  assert.deepEqual(shown(to.lines, '127.0.0.1'), [10, [{ handshake: SENT - 10 }]]);
});

test('many addresses share 500 lines a minute, and the next minute begins anew', () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  const lines: unknown[] = [];
  const log = createLogger({ level: 'silent' });
  log.info = (fields: unknown) => void lines.push(fields);
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
