/** Pure parts of the server: the client's address, the route table, the request rate. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRouteTable, splitTarget } from '../../src/http/routes.ts';
import { createRequestRate } from '../../src/limits/request-rate.ts';

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
