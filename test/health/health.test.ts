/** Health by the contract's rules, and its monitor, with a test clock. */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { describe, test } from 'node:test';
import { EXPORT_NAMES } from '../../src/detection/content-type.ts';
import { ALERT_NAMES, type Alert, isPageWorthy } from '../../src/health/alert-texts.ts';
import { disksOf, isAnswering, isGettingFull } from '../../src/health/disk.ts';
import { evaluateHealth, type Situation, stalledAlerts } from '../../src/health/rules.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/time.ts';
import { patchedAll } from '../support/patched-fs.ts';
import { startTestServer } from '../support/server.ts';

const NOW = Date.parse('2026-11-21T12:00:00Z');

const ages = (newswire: number | null, imagewire: number | null): Situation => ({
  newest_done: {
    newswire: newswire === null ? null : NOW - newswire,
    imagewire: imagewire === null ? null : NOW - imagewire,
  },
  enabled: EXPORT_NAMES,
  is_paused: false,
});

const alert = (name: Alert['name']): Alert => ({ name, of: '', since: NOW, detail: '' });

describe('the rules of health', () => {
  const status = (situation: Situation, alerts: Alert[] = []) =>
    evaluateHealth(situation, alerts, NOW).status;

  test('its body is exactly as in the contract', () => {
    const open = [alert('disk full'), alert('failed windows')];
    assert.deepEqual(evaluateHealth(ages(10 * MINUTE_MS, null), open, NOW), {
      status: 'degraded',
      exports: { newswire: { newest_done: '2026-11-21T11:50:00Z' }, imagewire: { newest_done: null } },
      alerts: { open: 2, page_worthy: 1, paused: 0 },
      role: 'writer',
    });
  });

  test('1: degraded while an urgent alert is open, and by no other alert', () => {
    const fresh = ages(0, 0);
    assert.equal(status(fresh), 'ok');
    for (const name of ALERT_NAMES) {
      const expected = isPageWorthy({ name }) ? 'degraded' : 'ok';
      assert.equal(status(fresh, [alert(name)]), expected, name);
      assert.equal(status({ ...fresh, is_paused: true }, [alert(name)]), expected);
    }
  });

  test('3: degraded if the newest window of an export ended more than an hour ago, or it has none', () => {
    assert.equal(status(ages(HOUR_MS, HOUR_MS)), 'ok');
    assert.equal(status(ages(HOUR_MS + 1, 0)), 'degraded');
    assert.equal(status(ages(0, HOUR_MS + 1)), 'degraded');
    assert.equal(status(ages(0, null)), 'degraded');
  });

  test('4: while ingest is paused, the age of windows is ignored', () => {
    for (const situation of [ages(0, 0), ages(DAY_MS, DAY_MS), ages(null, null)]) {
      const health = evaluateHealth({ ...situation, is_paused: true }, [], NOW);
      assert.deepEqual([health.status, health.alerts.paused], ['ok', 1]);
    }
  });

  test('an export that is switched off is ignored, and shows nothing done', () => {
    const situation = { ...ages(0, DAY_MS), enabled: ['newswire'] as const };
    const health = evaluateHealth(situation, [], NOW);
    assert.deepEqual([health.status, health.exports.imagewire.newest_done], ['ok', null]);
    assert.deepEqual(stalledAlerts(situation, NOW), []);
  });
});

const stalled = (situation: Situation) => stalledAlerts(situation, NOW).map(({ of }) => of);

test('ingest is stalled for each export whose newest window ended more than 45 minutes ago', () => {
  assert.deepEqual(stalled(ages(45 * MINUTE_MS, 45 * MINUTE_MS)), []);
  assert.deepEqual(stalled(ages(45 * MINUTE_MS + 1, 0)), ['newswire']);
  assert.deepEqual(stalled(ages(46 * MINUTE_MS, 46 * MINUTE_MS)), ['newswire', 'imagewire']);
  assert.deepEqual(stalled(ages(null, 0)), []);
});

test('a disk is getting full below 5% and 10 GiB, or below 512 MiB', () => {
  const gib = 1024 ** 3;
  assert.equal(isGettingFull(9 * gib, 1000 * gib), true);
  assert.equal(isGettingFull(11 * gib, 1000 * gib), false);
  assert.equal(isGettingFull(2 * gib, 20 * gib), false);
  assert.equal(isGettingFull(gib / 2 - 1, 2 * gib), true);
  assert.equal(isGettingFull(gib / 2, 2 * gib), false);
});

/** Each folder answers as the function says, until it is disposed. */
const disksAnswer = (ask: (folder: unknown) => unknown) =>
  patchedAll(fs.promises, ['statfs'], (_, [folder]) => ask(folder));
const room = fs.statfsSync('/');
const never = new Promise<never>(() => {});

test('a disk that does not answer is asked once, whoever wants to know', async () => {
  const asked: unknown[] = [];
  const hanging = Promise.withResolvers<never>();
  using _ = disksAnswer((folder) => {
    asked.push(folder);
    return hanging.promise;
  });
  const all = [1, 2, 3].map(() => disksOf({ drop: '/share' }));
  hanging.reject(new Error('gone'));
  assert.deepEqual([await Promise.all(all), asked], [[[], [], []], ['/share']]);
  assert.deepEqual([await disksOf({ drop: '/share' }), asked.length], [[], 2]);
});

test('a share that is mounted anew while a question hangs for ever is asked again, once', async (context) => {
  let asked = 0;
  let answer: unknown = never;
  using _ = disksAnswer(() => {
    asked += 1;
    return answer;
  });
  let laterMs = 0;
  const real = performance.now.bind(performance);
  context.mock.method(performance, 'now', () => real() + laterMs);
  for (const minutes of [0, 9]) {
    laterMs = minutes * MINUTE_MS;
    assert.deepEqual(await disksOf({ copy: '/mounted-anew', data: '/hangs' }), []);
  }
  assert.equal(asked, 2);
  laterMs = 11 * MINUTE_MS;
  answer = Promise.resolve(room);
  for (const _ of [1, 2]) assert.equal((await disksOf({ copy: '/mounted-anew' })).length, 1);
  [asked, answer] = [0, never];
  for (const minutes of [11, 60, 6_000]) {
    laterMs = minutes * MINUTE_MS;
    assert.deepEqual(await disksOf({ data: '/hangs' }), []);
  }
  assert.equal(asked, 1);
});

test('a disk that never answers is waited for a second only, and the others are told', async () => {
  using _ = disksAnswer(async (folder) => {
    if (folder === '/nowhere') throw new Error('no such folder');
    return folder === '/share' ? never : room;
  });
  const disks = (await disksOf({ data: '/', copy: '/share' })).map(({ of }) => of);
  assert.deepEqual(disks, ['data']);
  assert.deepEqual([await isAnswering('/share'), await isAnswering('/nowhere')], [false, true]);
});

const HEALTH = evaluateHealth(ages(0, 0), [], NOW);
const DEGRADED = evaluateHealth(ages(0, null), [alert('disk full')], NOW);
let health = HEALTH;
const source = { health: () => health, noteFault() {} };

test('answers without a credential or a rate limit, for any query, 200 or 503 with the same body; never a problem document', async () => {
  await using server = await startTestServer({ health: source, requests_per_minute: 1 });
  for (const state of [HEALTH, DEGRADED]) {
    const status = state === HEALTH ? 200 : 503;
    health = state;
    for (const path of ['/v1/health', '/v1/health?anything=1&anything=', '/v1/health?%']) {
      const answer = await server.get(path);
      assert.equal(answer.status, status);
      const names = ['content-type', 'cache-control', 'ratelimit-limit', 'retry-after'];
      const headers = names.map((name) => answer.headers.get(name));
      assert.deepEqual(headers, ['application/json', 'no-store', null, null]);
      assert.match(answer.headers.get('x-request-id') ?? '', /^[0-9a-f-]{36}$/);
      assert.deepEqual(await answer.json(), state);
    }
    assert.equal(await server.statusOf('/v1/health', 'no-key-at-all'), status);
    const head = await server.get('/v1/health', undefined, { method: 'HEAD' });
    assert.equal(head.status, status);
    assert.equal(head.headers.get('content-length'), `${JSON.stringify(state).length}`);
    assert.equal(head.headers.get('cache-control'), 'no-store');
    assert.equal(await head.text(), '');
  }
  const post = await server.get('/v1/health', undefined, { method: 'POST' });
  assert.deepEqual([post.status, post.headers.get('allow')], [405, 'GET, HEAD']);
  assert.equal(await server.statusOf('/v1/health/'), 404);
});
