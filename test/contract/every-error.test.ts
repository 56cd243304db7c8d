/** Each error, with its status, body and headers, for each endpoint that has it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  assertProblem,
  assertProblems,
  CHANGES,
  HEALTH,
  KEYED,
  ME,
  ONE,
  PERIOD,
  READS,
  SCHEMA,
  sharedWithDetections,
  withServer,
} from '../support/every-endpoint.ts';
import { NOW_MS } from '../support/server.ts';
import { words } from '../support/words.ts';

const server = await sharedWithDetections();
const key = server.makeKey().key;
const INVALID = [400, 'invalid_request', 'Invalid request'] as const;

test('400: unknown, empty, repeated and out-of-range parameters, with rate-limit headers', async () => {
  const wrong = [
    [`${CHANGES}&nope=1`, 'nope'],
    [`${CHANGES}&limit=`, 'limit'],
    [`${PERIOD}&limit=1&limit=1`, 'limit'],
    [`${PERIOD}&limit=1001`, 'limit'],
    [`${ONE}?since=2026-11-21T00:00:00Z`, 'since'],
    [`${ME}?x=1`, 'x'],
    [`${SCHEMA}?fields=id`, 'fields'],
    ['/v1/detections/changes?cursor=x', 'cursor'],
    [`${PERIOD}&cursor=x`, 'cursor'],
  ] as const;
  for (const [target, name] of wrong) {
    const response = await server.get(target, key);
    const { detail } = await assertProblem(response, INVALID, 4, target);
    assert.match(detail, new RegExp(`\\b${name}\\b`), target);
  }
});

test('400: a malformed detection id; 404: an unknown one', async () => {
  const malformed = words('x t.1.1 T.1.1.1 t.01.1.1 t.1.1.1.1 t.1.1.-1 a%2Fb % %ff %63hanges t.7001.1.1%0a');
  const unknown = ['t.7001.9.9', 'i.7001.1.1', 't.0.0.0', `t.1.1.${'1'.repeat(15)}`];
  const paths = (ids: readonly string[]) => ids.map((id) => `/v1/detections/${id}`);
  const wrong = paths([...malformed, `t.1.1.${'1'.repeat(16)}`]);
  await assertProblems(server, wrong, key, INVALID, 4);
  await assertProblems(server, paths(unknown), key, [404, 'not_found', 'Not found'], 4);
});

test('404: no endpoint at the path, with and without a credential', async () => {
  const targets = ['/', '/v1', '/v1/detection', '/V1/me', '/v1/detections/a/b', '/v2/me', '/v1//me'];
  for (const reader of [key, undefined])
    await assertProblems(server, targets, reader, [404, 'not_found', 'Not found'], 0);
});

test('429 rate_limited: over the limit, with Retry-After and rate-limit headers, on every endpoint', async () => {
  await withServer({ requests_per_minute: 2 }, async (other, reader) => {
    for (let used = 0; used < 2; used += 1) await (await other.get(ME, reader)).arrayBuffer();
    for (const target of KEYED) {
      const response = await other.get(target, reader);
      assert.match(response.headers.get('retry-after') ?? '', /^[1-9]\d?$/, target);
      assert.equal(response.headers.get('retry-after'), response.headers.get('ratelimit-reset'));
      await assertProblem(response, [429, 'rate_limited', 'Too many requests'], 4, target);
    }
    assert.equal((await other.get(HEALTH)).status, 200, 'health must have no limit');
  });
});

test('429 daily_allowance: only on the detection endpoints, until 00:00 UTC; cursors stay valid', async () => {
  await withServer({ daily_rows: 1 }, async (other, reader) => {
    const { next_cursor } = await other.json(CHANGES, reader);
    for (const target of READS) {
      const response = await other.get(target, reader);
      assert.equal(response.headers.get('retry-after'), '43200', target);
      const used = [429, 'daily_allowance', 'Daily allowance used'] as const;
      const { detail } = await assertProblem(response, used, 4, target);
      assert.match(detail, /2026-11-22T00:00:00Z/);
    }
    for (const target of [ME, SCHEMA]) await other.json(target, reader);
    other.setNow(Date.parse('2026-11-22T00:00:00Z'));
    await other.json(`/v1/detections/changes?cursor=${next_cursor}`, reader);
  });
});

test('500: a fault, with rate-limit headers if the credential was verified, and without its cause', async () => {
  await withServer({}, async (other, reader) => {
    other.store.writer.exec('DROP TABLE detection; DROP TABLE stream_row;');
    for (const detail of await assertProblems(other, READS, reader, [500, 'internal', 'Internal error'], 4))
      assert.doesNotMatch(detail, /table|sql|detection_?row/i);
  });
});

test('limits: 120 requests per minute and key, unless the operator set another', async () => {
  await withServer({ requests_per_minute: 120 }, async (other, reader) => {
    const second = other.makeKey().key;
    for (let used = 0; used < 120; used += 1) {
      const response = await other.get(SCHEMA, reader);
      assert.equal(response.status, 200, `${used}`);
      assert.equal(response.headers.get('ratelimit-limit'), '120');
      assert.equal(response.headers.get('ratelimit-policy'), '120;w=60');
      assert.equal(response.headers.get('ratelimit-remaining'), String(119 - used));
    }
    other.setNow(NOW_MS + 20_001);
    const { status, headers } = await other.get(SCHEMA, reader);
    assert.deepEqual([status, headers.get('retry-after'), headers.get('ratelimit-reset')], [429, '40', '40']);
    await other.json(SCHEMA, second);
    other.setNow(NOW_MS + 60_000);
    const fresh = await other.get(SCHEMA, reader);
    assert.deepEqual([fresh.status, fresh.headers.get('ratelimit-remaining')], [200, '119']);
  });
});
