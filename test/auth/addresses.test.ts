/** Client addresses: IPv6, IPv4-mapped addresses, and proxies. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { createServer } from 'node:net';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { addressNetwork, createAddressList, normalAddress } from '../../src/addresses.ts';
import { createClientAddress, createProxyWarning } from '../../src/http/client-address.ts';
import { forAll } from '../support/for-all.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { words } from '../support/words.ts';

const CHANGES = '/v1/detections/changes?since=2026-11-21T11:00:00Z';

const hasIpv6 = await new Promise<boolean>((resolve) => {
  const server = createServer().on('error', () => resolve(false));
  server.listen(0, '::1', () => server.close(() => resolve(true)));
});
const skip = !hasIpv6 && 'this machine has no IPv6';

describe('the client behind proxies', () => {
  const trusted = ['10.0.0.0/8', 'fd00::/8', '::ffff:172.16.0.0/108'];
  const clientOf = (forwarded: string, peer = '10.0.0.1') =>
    createClientAddress(trusted, () => {})(peer, forwarded);

  const CASES: readonly [what: string, forwarded: string, client: string, peer?: string][] = [
    ['the first untrusted', '198.51.100.9, 203.0.113.5, 10.9.9.9, fd00::7, 10.0.0.2', '203.0.113.5'],
    ['the leftmost if all are trusted', '10.5.5.5, fd00::7', '10.5.5.5'],
    ['between spaces and tabs', '  203.0.113.5 \t,\t10.0.0.2  ', '203.0.113.5'],
    ['without an IPv4 port', '203.0.113.5:4711, 10.0.0.2:80', '203.0.113.5'],
    ['without an IPv6 port', '[2001:db8::5]:4711, [fd00::2]:80', '2001:db8::5'],
    ['without brackets', '[2001:db8::5]', '2001:db8::5'],
    ['an IPv4 address that is mapped', '::ffff:203.0.113.5, ::ffff:10.0.0.2', '203.0.113.5'],
    ['one that is mapped in hexadecimal', '::ffff:cb00:7105', '203.0.113.5'],
    ['behind a peer that is mapped', '203.0.113.5', '203.0.113.5', '::ffff:10.0.0.1'],
    ['behind one in a mapped network', '203.0.113.5', '203.0.113.5', '172.17.0.1'],
    ['behind one that is both', '203.0.113.5', '203.0.113.5', '::ffff:ac11:1'],
    ['in its one spelling', '2001:DB8:0:0::5', '2001:db8::5'],
    ['without its zone', 'fe80::1%eth0', 'fe80::1'],
    ['the peer, if that is not trusted', '198.51.100.9', '203.0.113.5', '203.0.113.5'],
    ['the same over IPv6', '198.51.100.9', '2001:db8::5', '2001:db8::5'],
  ];

  test('it is the right one of the hops, from the right', () => {
    for (const [what, forwarded, client, peer] of CASES)
      assert.equal(clientOf(forwarded, peer), client, what);
  });

  test('an invalid hop ends the chain: the hop before it is the client', () => {
    const malformed = words(`
      unknown _hidden 999.1.1.1 010.0.0.9 "203.0.113.5" 203.0.113.5;x [2001:db8::5 [203.0.113.5]x`);
    for (const garbage of ['', '['.repeat(30_000), ...malformed]) {
      assert.equal(clientOf(`203.0.113.99, ${garbage}, 10.0.0.2`), '10.0.0.2', garbage.slice(0, 20));
      assert.equal(clientOf(garbage), '10.0.0.1', garbage.slice(0, 20));
    }
  });

  test('an ignored header opens an alert, once, if the peer may be a proxy', () => {
    const set: string[] = [];
    const conditions = { set: (name: string, detail: string | null) => set.push(`${name}: ${detail}`) };
    const client = createClientAddress(['10.0.0.1'], createProxyWarning(conditions));
    client('10.0.0.1', '198.51.100.9');
    client('10.0.0.2', undefined);
    client('203.0.113.5', '198.51.100.9');
    assert.deepEqual(set, []);
    for (const peer of ['::ffff:10.0.0.2', '10.0.0.3'])
      assert.equal(client(peer, '198.51.100.9'), normalAddress(peer));
    assert.deepEqual(set, ['proxy not trusted: 10.0.0.2 sent X-Forwarded-For, but is not a trusted proxy']);
  });
});

test('an IPv6 /64 counts as one address; an IPv4 address counts alone, in any spelling', () => {
  const networkOf = (written: string) => addressNetwork(normalAddress(written) ?? 'none');
  assert.equal(networkOf('2001:db8::1'), networkOf('2001:DB8:0:0:ffff:1:2:3'));
  assert.notEqual(networkOf('2001:db8::1'), networkOf('2001:db8:0:1::1'));
  assert.equal(networkOf('::ffff:203.0.113.5'), '203.0.113.5');
  assert.equal(networkOf('::ffff:cb00:7105'), '203.0.113.5');
  assert.equal(networkOf('::1'), '0:0:0:0::/64');
  assert.equal(networkOf('::192.0.2.1'), '0:0:0:0::/64');
  assert.equal(networkOf('fe80::1%eth0'), 'fe80:0:0:0::/64');
});

test('lists of addresses and networks', () => {
  const cases: [entry: string, address: string, expected: boolean][] = [
    ['192.0.2.7', '192.0.2.7', true],
    ['192.0.2.7', '192.0.2.8', false],
    ['192.0.2.7', '::ffff:192.0.2.7', true],
    ['192.0.2.7', '::ffff:c000:207', true],
    ['::ffff:192.0.2.7', '192.0.2.7', true],
    ['10.1.2.3/8', '10.255.0.1', true],
    ['10.0.0.0/8', '11.0.0.1', false],
    ['10.0.0.128/25', '10.0.0.127', false],
    ['0.0.0.0/0', '203.0.113.9', true],
    ['0.0.0.0/0', '2001:db8::1', false],
    ['::/0', '2001:db8::1', true],
    ['::/0', '203.0.113.9', false],
    ['2001:db8::/33', '2001:db8:8000::', false],
    ['2001:DB8::/33', '2001:db8:7fff::', true],
    ['::1', '0:0:0:0:0:0:0:1', true],
    ['fe80::1', 'fe80::1%eth0', true],
    ['10.0.0.0/33', '10.0.0.0', false],
    ['nonsense', 'nonsense', false],
  ];
  for (const [entry, address, expected] of cases)
    assert.equal(createAddressList([entry])(address), expected, `${address} in ${entry}`);
  assert.equal(createAddressList(['10.0.0.1', '10.0.0.2'])('10.0.0.2'), true);
  assert.equal(createAddressList(['10.0.0.1'])(''), false);
});

test('an address is in the network of each of its prefixes, in any spelling', () => {
  forAll(100, fc.ipV6(), fc.integer({ min: 97, max: 128 }), (address, prefix) => {
    assert.ok(createAddressList([address])(new URL(`http://[${address}]`).hostname.slice(1, -1)));
    assert.ok(createAddressList([`${address}/${prefix}`])(address));
  });
  forAll(100, fc.ipV4(), fc.integer({ min: 0, max: 32 }), (address, prefix) => {
    assert.ok(createAddressList([`${address}/${prefix}`])(`::ffff:${address}`));
  });
});

describe('over IPv6', { skip }, () => {
  /** The status of a page that is requested through one of the server's addresses. */
  async function statusVia(host: string, server: TestServer, key: string, forwarded: string[] = []) {
    const lines = forwarded.flatMap((value) => ['X-Forwarded-For', value]);
    const headers = ['Host', 'x', 'Authorization', `Bearer ${key}`, 'Connection', 'close', ...lines];
    const sent = request({ host, port: server.port, path: CHANGES, headers }).end();
    const [response] = await once(sent, 'response');
    response.resume();
    return response.statusCode;
  }

  test('listening on :: accepts IPv4 and IPv6, each under its own rules', async () => {
    await using server = await startTestServer({ host: '::', trusted_proxies: ['::1'] });
    assert.match(server.url, /^http:\/\/\[::1\]:\d+$/);
    const { key: four } = server.makeKey({ allow_addresses: ['127.0.0.0/8'] });
    const { key: six } = server.makeKey({ allow_addresses: ['::/64'] });
    assert.equal(await statusVia('127.0.0.1', server, four), 200);
    assert.equal(await statusVia('::1', server, four), 403);
    assert.equal(await statusVia('::1', server, six), 200);
    assert.equal(await statusVia('127.0.0.1', server, six), 403);
    const { key: behind } = server.makeKey({ allow_addresses: ['2001:db8:7::/48'] });
    // The last header is from the nearest proxy.
    assert.equal(await statusVia('::1', server, behind, ['2001:db8:8::1', '2001:db8:7::1']), 200);
    assert.equal(await statusVia('::1', server, behind, ['2001:db8:7::1', '2001:db8:8::1']), 403);
  });
});
