/** Common to every response, for each endpoint: request ids, Cache-Control, methods, paths. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  ALL,
  assertProblems,
  CHANGES,
  HEALTH,
  ME,
  METHODS,
  ONE,
  PERIOD,
  pathOf,
  SCHEMA,
  sharedWithDetections,
  TOKEN,
  UUID,
} from '../support/every-endpoint.ts';

const server = await sharedWithDetections();
const key = server.makeKey().key;

test('every response has its own X-Request-Id and Cache-Control, and neither Deprecation nor Sunset', async () => {
  const ids = new Set<string>();
  let answers = 0;
  for (const target of [...ALL, '/nowhere', `${CHANGES}&nope=1`, '/v1/detections/t.1.1.1', '/photos/1']) {
    for (const reader of [key, undefined]) {
      // A client's own id is ignored.
      const response = await server.get(target, reader, { headers: { 'x-request-id': 'mine' } });
      await response.arrayBuffer();
      assert.match(response.headers.get('x-request-id') ?? '', UUID, target);
      const found = ['cache-control', 'deprecation', 'sunset'].filter((name) => response.headers.has(name));
      assert.deepEqual(found, ['cache-control'], target);
      ids.add(response.headers.get('x-request-id') ?? '');
      answers += 1;
    }
  }
  assert.equal(ids.size, answers);
});

test('Cache-Control: a minute for me, no-cache for the schema, no-store for the rest and every error', async () => {
  const wanted = [
    [ME, 'private, max-age=60'],
    [SCHEMA, 'no-cache'],
    [CHANGES, 'no-store'],
    [PERIOD, 'no-store'],
    [ONE, 'no-store'],
    [HEALTH, 'no-store'],
    [`${ME}?x=1`, 'no-store'],
    [`${SCHEMA}?x=1`, 'no-store'],
    [`${ME}/`, 'no-store'],
    ['/photos/1?signature=x', 'no-store'],
  ] as const;
  for (const [target, value] of wanted) {
    const response = await server.get(target, key);
    await response.arrayBuffer();
    assert.equal(response.headers.get('cache-control'), value, target);
    const refused = await server.get(target, undefined, { method: 'PUT' });
    await refused.arrayBuffer();
    assert.equal(refused.headers.get('cache-control'), 'no-store', `PUT ${target}`);
  }
  for (const method of METHODS) {
    const response = await server.get(TOKEN, undefined, { method });
    await response.arrayBuffer();
    const headers = [response.headers.get('cache-control'), response.headers.get('pragma')];
    assert.deepEqual(headers, ['no-store', 'no-cache'], `${method} ${TOKEN}`);
  }
});

test('a trailing slash never matches a path', async () => {
  const targets = [...ALL, '/photos/1'].map((target) => `${pathOf(target)}/`);
  await assertProblems(server, targets, key, [404, 'not_found', 'Not found'], 0);
});

test('a wrong method on an existing path is 405 with Allow', async () => {
  for (const target of [...ALL, '/photos/1?signature=x']) {
    const allowed =
      target === TOKEN ? ['POST'] : target === SCHEMA || target === HEALTH ? ['GET', 'HEAD'] : ['GET'];
    for (const method of METHODS.filter((one) => !allowed.includes(one))) {
      const response = await server.get(target, key, { method });
      const text = await response.text();
      assert.equal(response.status, 405, `${method} ${target}`);
      assert.equal(response.headers.get('allow'), allowed.join(', '), `${method} ${target}`);
      if (method === 'HEAD') continue;
      const { type, title } = JSON.parse(text);
      assert.equal(type, 'https://api.example/ww/errors/method_not_allowed');
      assert.equal(title, 'Method not allowed');
    }
  }
});
