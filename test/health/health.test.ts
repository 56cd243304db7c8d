/** Health by the contract's rules, and the monitor that sees what they are judged by, with a clock of the test's own. */
import assert from 'node:assert/strict';
import { copyFileSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { pino } from 'pino';
import { createAccessReader } from '../../src/auth/access-reader.ts';
import { EXPORT_NAMES, type ExportName } from '../../src/detection/content-type.ts';
import { type Conditions, createConditions } from '../../src/health/alert-conditions.ts';
import { readAlertFile } from '../../src/health/alert-file.ts';
import { ALERTS, type Alert } from '../../src/health/alerts.ts';
import { isGettingFull } from '../../src/health/disk.ts';
import { type Monitor, startMonitor } from '../../src/health/monitor.ts';
import { createPauseReader } from '../../src/health/pause-reader.ts';
import { judgeHealth, type Situation, stalledExports } from '../../src/health/rules.ts';
import { pauseIngest, resumeIngest } from '../../src/ingest/pause.ts';
import { ACCESS_SCHEMA } from '../../src/store/access-schema.ts';
import type { Database } from '../../src/store/database.ts';
import { openWriter } from '../../src/store/writer.ts';
import { DAY_MS, formatMs, HOUR_MS, MINUTE_MS, WINDOW_MS } from '../../src/time.ts';
import { startTestServer } from '../support/server.ts';
import { createTestStore, type TestStore } from '../support/store.ts';

const NOW = Date.parse('2026-11-21T12:00:00Z');
const both: ReadonlySet<ExportName> = new Set(EXPORT_NAMES);
const ages = (newswire: number | null, imagewire: number | null): Situation => ({
  newest_done: {
    newswire: newswire === null ? null : NOW - newswire,
    imagewire: imagewire === null ? null : NOW - imagewire,
  },
  enabled: both,
  is_paused: false,
});
const alert = (name: Alert['name']): Alert => ({ name, since: NOW, detail: '' });

describe('the rules of health', () => {
  const status = (situation: Situation, alerts: Alert[] = []) => judgeHealth(situation, alerts, NOW).status;

  test('its body is exactly what the contract lists', () => {
    assert.deepEqual(
      judgeHealth(ages(10 * MINUTE_MS, null), [alert('disk full'), alert('failed windows')], NOW),
      {
        status: 'degraded',
        exports: { newswire: { newest_done: '2026-11-21T11:50:00Z' }, imagewire: { newest_done: null } },
        alerts: { open: 2, page_worthy: 1, paused: 0 },
      },
    );
  });

  test('1: degraded while an alert needs someone now, and by no other alert', () => {
    const fresh = ages(0, 0);
    assert.equal(status(fresh), 'ok');
    for (const [name, kind] of Object.entries(ALERTS)) {
      const isName = (text: string): text is Alert['name'] => Object.hasOwn(ALERTS, text);
      assert.ok(isName(name));
      assert.equal(status(fresh, [alert(name)]), kind.page_worthy ? 'degraded' : 'ok', name);
      assert.equal(
        status({ ...fresh, is_paused: true }, [alert(name)]),
        kind.page_worthy ? 'degraded' : 'ok',
      );
    }
  });

  test('3: degraded when the newest window of an export ended more than an hour ago, or it has none', () => {
    assert.equal(status(ages(HOUR_MS, HOUR_MS)), 'ok');
    assert.equal(status(ages(HOUR_MS + 1, 0)), 'degraded');
    assert.equal(status(ages(0, HOUR_MS + 1)), 'degraded');
    assert.equal(status(ages(0, null)), 'degraded');
  });

  test('4: while ingest is paused, the age of windows is not judged', () => {
    for (const situation of [ages(0, 0), ages(DAY_MS, DAY_MS), ages(null, null)]) {
      const health = judgeHealth({ ...situation, is_paused: true }, [], NOW);
      assert.equal(health.status, 'ok');
      assert.equal(health.alerts.paused, 1);
    }
  });

  test('an export that is switched off is not judged, and shows nothing done', () => {
    const situation = { ...ages(0, DAY_MS), enabled: new Set(['newswire'] as const) };
    const health = judgeHealth(situation, [], NOW);
    assert.equal(health.status, 'ok');
    assert.equal(health.exports.imagewire.newest_done, null);
    assert.deepEqual(stalledExports(situation, { before: new Set(), isCheck: true }, NOW), new Set());
  });
});

describe('2: ingest stalled', () => {
  const stalled = (situation: Situation, isCheck: boolean, before: readonly ExportName[] = []) => [
    ...stalledExports(situation, { before: new Set(before), isCheck }, NOW),
  ];

  test('opens at a check, for each export whose newest window ended more than 45 minutes ago', () => {
    assert.deepEqual(stalled(ages(45 * MINUTE_MS, 45 * MINUTE_MS), true), []);
    assert.deepEqual(stalled(ages(45 * MINUTE_MS + 1, 0), true), ['newswire']);
    assert.deepEqual(stalled(ages(46 * MINUTE_MS, 46 * MINUTE_MS), true), ['newswire', 'imagewire']);
    assert.deepEqual(stalled(ages(null, 0), true), []);
  });

  test('between checks none opens, one that is open stays, and closes at once when its cause is gone', () => {
    assert.deepEqual(stalled(ages(50 * MINUTE_MS, 50 * MINUTE_MS), false), []);
    assert.deepEqual(stalled(ages(50 * MINUTE_MS, 50 * MINUTE_MS), false, ['newswire']), ['newswire']);
    assert.deepEqual(stalled(ages(10 * MINUTE_MS, 0), false, ['newswire']), []);
  });

  test('a pause closes it', () => {
    const paused = { ...ages(DAY_MS, DAY_MS), is_paused: true };
    assert.deepEqual(stalled(paused, true, ['newswire', 'imagewire']), []);
  });
});

test('a disk is getting full below a twentieth and 10 GiB, or below 512 MiB', () => {
  const gib = 1024 ** 3;
  assert.equal(isGettingFull(9 * gib, 1000 * gib), true);
  assert.equal(isGettingFull(11 * gib, 1000 * gib), false);
  assert.equal(isGettingFull(2 * gib, 20 * gib), false);
  assert.equal(isGettingFull(gib / 2 - 1, 2 * gib), true);
  assert.equal(isGettingFull(gib / 2, 2 * gib), false);
});

describe('the monitor', () => {
  let store: TestStore;
  let access: Database;
  let accessReader: ReturnType<typeof createAccessReader>;
  let conditions: Conditions;
  let nowMs: number;
  let lines: Record<string, unknown>[];
  let monitor: Monitor;
  let opened: string[];
  let told: string[];

  function start(enabled = both): void {
    monitor = startMonitor({
      detections: { path: store.path, reader: () => store.reader },
      pause: createPauseReader(join(store.folder, 'access.db')),
      checkKeys: () => accessReader.check(),
      conditions,
      enabled,
      folders: [],
      onDisksSeen: () => {},
      alertFile: join(store.folder, 'alerts.json'),
      alertCommand: {
        run: (event, { name }) => told.push(`${event} ${name}`),
        close: () => {},
      },
      now: () => nowMs,
      log: pino({ base: null, level: 'debug' }, collector(lines)),
    });
  }

  beforeEach(() => {
    store = createTestStore();
    access = openWriter(join(store.folder, 'access.db'), ACCESS_SCHEMA);
    accessReader = createAccessReader(join(store.folder, 'access.db'));
    nowMs = NOW;
    lines = [];
    opened = [];
    told = [];
    conditions = createConditions(
      () => nowMs,
      (name) => opened.push(name),
    );
  });

  afterEach(() => {
    monitor.close();
    accessReader.close();
    access.close();
    store.close();
  });

  const names = () => monitor.alerts().map(({ name }) => name);

  test('sees windows that finish, and a pause, at once', () => {
    start();
    assert.equal(monitor.health().status, 'degraded');
    for (const name of EXPORT_NAMES) store.finishWindow(name, NOW - WINDOW_MS);
    assert.deepEqual(monitor.health(), {
      status: 'ok',
      exports: { newswire: { newest_done: formatMs(NOW) }, imagewire: { newest_done: formatMs(NOW) } },
      alerts: { open: 0, page_worthy: 0, paused: 0 },
    });
    pauseIngest(access, nowMs);
    assert.equal(monitor.health().alerts.paused, 1);
    resumeIngest(access);
    assert.equal(monitor.health().alerts.paused, 0);
  });

  test('is degraded 45 to 50 minutes after the last window, until one finishes', () => {
    for (const name of EXPORT_NAMES) store.finishWindow(name, NOW - WINDOW_MS);
    start();
    assert.equal(monitor.health().status, 'ok');
    nowMs = NOW + 45 * MINUTE_MS;
    assert.equal(monitor.health().status, 'ok');
    nowMs = NOW + 49 * MINUTE_MS;
    assert.equal(monitor.health().status, 'ok', 'the last check was four minutes ago');
    nowMs = NOW + 50 * MINUTE_MS;
    const { status, alerts } = monitor.health();
    assert.deepEqual([status, alerts.page_worthy], ['degraded', 2]);
    assert.deepEqual(names(), ['ingest stalled', 'ingest stalled']);
    const [first] = monitor.alerts();
    assert.equal(formatMs(first?.since ?? 0), formatMs(NOW + 45 * MINUTE_MS));
    store.finishWindow('newswire', NOW);
    store.finishWindow('imagewire', NOW);
    nowMs += 1;
    assert.deepEqual(names(), []);
    assert.equal(monitor.health().status, 'ok');
  });

  test('a pause closes it, and the check after the pause opens it again', () => {
    for (const name of EXPORT_NAMES) store.finishWindow(name, NOW - HOUR_MS);
    start();
    assert.deepEqual(names(), ['ingest stalled', 'ingest stalled']);
    pauseIngest(access, nowMs);
    assert.deepEqual(names(), []);
    resumeIngest(access);
    assert.deepEqual(names(), []);
    nowMs += 5 * MINUTE_MS;
    assert.deepEqual(names(), ['ingest stalled', 'ingest stalled']);
  });

  test('tells when the clock is behind the newest finished window of any export', () => {
    start();
    store.finishWindow('newswire', NOW - WINDOW_MS);
    assert.deepEqual(names(), []);
    store.finishWindow('imagewire', NOW);
    assert.deepEqual(names(), ['clock wrong']);
    assert.equal(monitor.health().alerts.page_worthy, 0);
    nowMs = NOW + WINDOW_MS;
    assert.deepEqual(names(), []);
    nowMs = NOW + WINDOW_MS - MINUTE_MS;
    assert.deepEqual(names(), ['clock wrong']);
  });

  test('does not hold a delivery time against the clock: one that was ahead has left it', () => {
    store.finishWindow('newswire', NOW - WINDOW_MS);
    store.deliver([{ content_type: 'text', version: 1, row: {} }], NOW + DAY_MS);
    start();
    assert.deepEqual(names(), []);
  });

  test('keys that cannot be checked need someone, as long as it lasts', () => {
    for (const name of EXPORT_NAMES) store.finishWindow(name, NOW - WINDOW_MS);
    start();
    const path = join(store.folder, 'access.db');
    renameSync(path, `${path}.away`);
    assert.deepEqual(names(), ['keys cannot be checked']);
    assert.equal(monitor.health().status, 'degraded');
    renameSync(`${path}.away`, path);
    assert.deepEqual(names(), []);
    assert.equal(monitor.health().status, 'ok');
  });

  test('damage that a request met is told, and answered with nulls from then on', () => {
    for (const name of EXPORT_NAMES) store.finishWindow(name, NOW - WINDOW_MS);
    start();
    monitor.noteFault(new Error('something else'));
    assert.equal(monitor.isDamaged(), false);
    monitor.noteFault(Object.assign(new Error('malformed'), { code: 'SQLITE_CORRUPT_INDEX' }));
    assert.equal(monitor.isDamaged(), true);
    assert.deepEqual(opened, ['database damaged']);
    assert.deepEqual(monitor.health(), {
      status: 'degraded',
      exports: { newswire: { newest_done: null }, imagewire: { newest_done: null } },
      alerts: { open: 1, page_worthy: 1, paused: 0 },
    });
  });

  test('another file in the place of the database is damage', () => {
    copyFileSync(store.path, `${store.path}.copy`);
    start();
    renameSync(`${store.path}.copy`, store.path);
    nowMs += MINUTE_MS;
    return waitFor(() => monitor.isDamaged());
  });

  test('a file that is no database any more is found, though no request reads it', () => {
    store.writer.pragma('wal_checkpoint(TRUNCATE)');
    start();
    writeFileSync(store.path, 'overwritten '.repeat(100_000));
    nowMs += MINUTE_MS;
    return waitFor(() => monitor.isDamaged());
  });

  test('a database that cannot be read is told, and health still answers', () => {
    start();
    store.reader.close();
    assert.deepEqual(names(), ['database not readable']);
    assert.equal(monitor.health().exports.newswire.newest_done, null);
  });

  test('what opens and closes stands in the log, and what is open in the file', async () => {
    start();
    conditions.set('disk full', 'no room');
    conditions.set('disk full', 'still no room');
    assert.deepEqual(opened, ['disk full']);
    const path = join(store.folder, 'alerts.json');
    await waitFor(() => lines.some(({ msg }) => msg === 'alert opened'));
    const line = lines.find(({ msg }) => msg === 'alert opened');
    assert.deepEqual([line?.alert, line?.page_worthy], ['disk full', true]);
    assert.deepEqual(await readAlertFile(path), [
      {
        name: 'disk full',
        page_worthy: true,
        since: formatMs(NOW),
        detail: 'still no room',
        what_to_do: ALERTS['disk full'].what_to_do,
      },
    ]);
    conditions.set('disk full', null);
    await waitFor(() => lines.some(({ msg }) => msg === 'alert closed'));
    assert.deepEqual(await readAlertFile(path), []);
    assert.deepEqual(told, ['opened disk full', 'closed disk full'], 'and the command was run');
  });

  test('the file needs no more room with alerts than without', () => {
    start();
    const path = join(store.folder, 'alerts.json');
    const before = statSync(path);
    conditions.set('disk full', 'no room');
    conditions.set('file stuck', 'x'.repeat(10_000));
    nowMs += 1;
    return waitFor(() => readFileSync(path, 'utf8').includes('disk full')).then(() => {
      const { size, ino } = statSync(path);
      assert.deepEqual([size, ino], [before.size, before.ino]);
    });
  });
});

describe('the endpoint', () => {
  const HEALTH = judgeHealth(ages(0, 0), [], NOW);
  const DEGRADED = judgeHealth(ages(0, null), [alert('disk full')], NOW);
  let health = HEALTH;
  let isDamaged = false;
  const faults: unknown[] = [];
  const source = {
    health: () => health,
    noteFault: (error: unknown) => faults.push(error),
    isDamaged: () => isDamaged,
  };

  test('answers without a credential, whatever the query, 200 or 503 with the same body; never a problem', async () => {
    const server = await startTestServer({ health: source, requests_per_minute: 1 });
    try {
      for (const [state, status] of [
        [HEALTH, 200],
        [DEGRADED, 503],
      ] as const) {
        health = state;
        for (const path of ['/v1/health', '/v1/health?anything=1&anything=', '/v1/health?%']) {
          const answer = await server.get(path);
          assert.equal(answer.status, status);
          assert.equal(answer.headers.get('content-type'), 'application/json');
          assert.equal(answer.headers.get('cache-control'), 'no-store');
          assert.match(answer.headers.get('x-request-id') ?? '', /^[0-9a-f-]{36}$/);
          assert.equal(answer.headers.get('ratelimit-limit'), null);
          assert.equal(answer.headers.get('retry-after'), null);
          assert.deepEqual(await answer.json(), state);
        }
        const wrong = await server.get('/v1/health', 'no-key-at-all');
        assert.equal(wrong.status, status);
        const head = await server.get('/v1/health', undefined, { method: 'HEAD' });
        assert.equal(head.status, status);
        assert.equal(head.headers.get('content-length'), `${JSON.stringify(state).length}`);
        assert.equal(head.headers.get('cache-control'), 'no-store');
        assert.equal(await head.text(), '');
      }
      const post = await server.get('/v1/health', undefined, { method: 'POST' });
      assert.deepEqual([post.status, post.headers.get('allow')], [405, 'GET, HEAD']);
      assert.equal((await server.get('/v1/health/')).status, 404);
    } finally {
      await server.close();
    }
  });

  test('has no rate limit', async () => {
    const server = await startTestServer({ health: source, requests_per_minute: 1 });
    try {
      health = HEALTH;
      for (let count = 0; count < 300; count += 1) {
        const answer = await server.get('/v1/health');
        await answer.arrayBuffer();
        assert.equal(answer.status, 200);
      }
    } finally {
      await server.close();
    }
  });

  test('once damage is known, endpoints that read detections answer 500, the others as before', async () => {
    const server = await startTestServer({ health: source });
    const { key } = server.makeKey();
    const paths = [
      '/v1/detections?from=2026-11-20&to=2026-11-20',
      '/v1/detections/changes?since=2026-11-20T00:00:00Z',
      '/v1/detections/t.7001.1.1',
      '/v1/me',
    ];
    try {
      server.store.deliver([{ content_type: 'text', version: 1, row: {} }], NOW - HOUR_MS);
      for (const path of paths) assert.equal((await server.get(path, key)).status, 200, path);
      isDamaged = true;
      for (const path of paths) {
        const answer = await server.get(path, key);
        assert.equal(answer.status, 500, path);
        assert.equal(answer.headers.get('content-type'), 'application/problem+json');
        assert.equal((await server.get(path)).status, 401, 'judged after the credential');
      }
      assert.equal((await server.get('/v1/schema/detection', key)).status, 200);
      assert.equal((await server.get('/v1/health')).status, 200);
    } finally {
      isDamaged = false;
      await server.close();
    }
  });

  test('is told of the faults that requests meet', async () => {
    const server = await startTestServer({ health: source });
    const { key } = server.makeKey();
    try {
      server.store.reader.close();
      const answer = await server.get('/v1/detections/t.7001.1.1', key);
      assert.equal(answer.status, 500);
      assert.equal(faults.length, 1);
    } finally {
      await server.close();
    }
  });
});

function collector(lines: Record<string, unknown>[]): Writable {
  return new Writable({
    write(chunk, _encoding, done) {
      lines.push(JSON.parse(String(chunk)));
      done();
    },
  });
}

/** The monitor looks once a second. */
async function waitFor(condition: () => boolean): Promise<void> {
  const end = performance.now() + 30_000;
  while (!condition()) {
    assert.ok(performance.now() < end, 'it did not come to pass');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
