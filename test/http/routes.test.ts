/** Pure parts of the server: the client's address, the route table, the request rate. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createClientAddress } from '../../src/http/client-address.ts';
import { createRouteTable, splitTarget } from '../../src/http/routes.ts';
import { createRequestRate } from '../../src/limits/request-rate.ts';

const ADDRESSES: readonly [
  trusted: string[],
  peer: string | undefined,
  forwarded: string | undefined,
  expected: string,
][] = [
  [[], '192.0.2.1', '198.51.100.1', '192.0.2.1'],
  [[], '::ffff:192.0.2.1', undefined, '192.0.2.1'],
  [[], undefined, undefined, '0.0.0.0'],
  [['10.0.0.0/8'], '192.0.2.1', '198.51.100.1', '192.0.2.1'],
  [['10.0.0.0/8'], '10.0.0.1', undefined, '10.0.0.1'],
  [['10.0.0.0/8'], '10.0.0.1', '198.51.100.1', '198.51.100.1'],
  [['10.0.0.0/8'], '::ffff:10.0.0.1', '198.51.100.1', '198.51.100.1'],
  [['10.0.0.0/8'], '10.0.0.1', '203.0.113.9, 198.51.100.1 , 10.2.3.4', '198.51.100.1'],
  [['10.0.0.0/8'], '10.0.0.1', '10.0.0.3,10.0.0.2', '10.0.0.3'],
  [['10.0.0.0/8'], '10.0.0.1', 'nonsense, 10.0.0.2', '10.0.0.2'],
  [['10.0.0.0/8'], '10.0.0.1', '', '10.0.0.1'],
  [['10.0.0.0/8'], '10.0.0.1', '198.51.100.1:4711', '198.51.100.1'],
  [['10.0.0.0/8'], '10.0.0.1', '[2001:DB8:0::1]:4711', '2001:db8::1'],
  [['10.0.0.0/8'], '10.0.0.1', '::ffff:198.51.100.1', '198.51.100.1'],
  [['fd00::/8', '::1'], '::1', '2001:db8::1, fd00::2', '2001:db8::1'],
  [['192.0.2.1'], '192.0.2.1', '198.51.100.1', '198.51.100.1'],
  [['192.0.2.1'], '192.0.2.2', '198.51.100.1', '192.0.2.2'],
  // A wide IPv6 network trusts no IPv4 address, as in the allow lists of keys; one within the mapped addresses does.
  [['::/0'], '10.0.0.1', '198.51.100.1', '10.0.0.1'],
  [['::/0'], '::ffff:10.0.0.1', '198.51.100.1', '10.0.0.1'],
  [['::/95'], '10.0.0.1', '198.51.100.1', '10.0.0.1'],
  [['::/0'], '::1', '2001:db8::1, 198.51.100.1', '198.51.100.1'],
  [['::ffff:0:0/96'], '10.0.0.1', '198.51.100.1', '198.51.100.1'],
  [['0.0.0.0/0'], '2001:db8::1', '198.51.100.1', '2001:db8::1'],
];

test("the client's address is the rightmost untrusted one", () => {
  for (const [trusted, peer, forwarded, expected] of ADDRESSES) {
    assert.equal(createClientAddress(trusted)(peer, forwarded), expected, `${trusted} ${peer} ${forwarded}`);
  }
});

const ROUTES = [
  { path: '/v1/a', method: 'GET', head: 'headA' },
  { path: '/v1/a/{id}', method: 'GET' },
  { path: '/v1/a/changes', method: 'POST' },
] as const;

test('the routes table decides path, method and HEAD', () => {
  const find = createRouteTable(ROUTES);
  const outcome = (path: string, method: string) => {
    const found = find(path, method);
    return found.kind === 'route' ? found.route.path : found.kind === 'no_method' ? found.allow : null;
  };
  assert.equal(outcome('/v1/a', 'GET'), '/v1/a');
  assert.equal(outcome('/v1/a', 'HEAD'), '/v1/a');
  assert.equal(outcome('/v1/a', 'POST'), 'GET, HEAD');
  assert.equal(outcome('/v1/a/', 'GET'), null);
  assert.equal(outcome('/v1/a/x', 'GET'), '/v1/a/{id}');
  assert.equal(outcome('/v1/a/x', 'HEAD'), 'GET');
  assert.equal(outcome('/v1/a/changes', 'POST'), '/v1/a/changes');
  assert.equal(outcome('/v1/a/changes', 'GET'), 'POST');
  assert.equal(outcome('/v1/a/x/y', 'GET'), null);
  assert.equal(outcome('/v1/a/x', 'get'), 'GET');
  for (const path of ['', '/', '*', '/v1', '/v1/A', '/v1/a/{id}/', '/__proto__'])
    assert.equal(outcome(path, 'GET'), null, path);
});

test('a target is split into path and query', () => {
  const targets: [string, string, string][] = [
    ['/a?b=c?d', '/a', 'b=c?d'],
    ['/a?', '/a', ''],
    ['/a', '/a', ''],
    ['http://h:80/a?b', '/a', 'b'],
    ['HTTPS://h', '/', ''],
    ['http://h?b', '/', 'b'],
    ['*', '*', ''],
    ['', '/', ''],
  ];
  for (const [target, path, query] of targets) assert.deepEqual(splitTarget(target), { path, query }, target);
});

test('a key has its limit in each window, and a window lasts a minute', () => {
  const rate = createRequestRate(2);
  assert.deepEqual(rate.take('k', 0), { allowed: true, limit: 2, remaining: 1, reset_seconds: 60 });
  assert.deepEqual(rate.take('k', 59_000), { allowed: true, limit: 2, remaining: 0, reset_seconds: 1 });
  assert.deepEqual(rate.take('k', 59_999), { allowed: false, limit: 2, remaining: 0, reset_seconds: 1 });
  assert.equal(rate.take('other', 59_999).remaining, 1);
  assert.deepEqual(rate.take('k', 60_000), { allowed: true, limit: 2, remaining: 1, reset_seconds: 60 });
  assert.equal(rate.take('k', 60_001).allowed, true);
  assert.equal(rate.take('k', 60_002).allowed, false);
  assert.equal(rate.take('k', 5).allowed, true, 'a clock set back must not lock out a key');
});

test('the number of keys in memory is bounded, and the oldest window is dropped first', () => {
  const rate = createRequestRate(1, 2);
  assert.ok(rate.take('a', 0).allowed);
  assert.ok(rate.take('b', 1).allowed);
  assert.ok(!rate.take('a', 2).allowed);
  assert.ok(rate.take('c', 3).allowed);
  assert.ok(!rate.take('b', 4).allowed);
  assert.ok(!rate.take('c', 4).allowed);
  assert.ok(rate.take('a', 5).allowed, 'the oldest entry must be dropped');
});
