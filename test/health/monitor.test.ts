/** The monitor: which alerts it opens, based on databases, disks and clock, and where it reports them. */
import assert from 'node:assert/strict';
import fs, { copyFileSync, renameSync, type StatsFs, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { createAccessReader } from '../../src/auth/access-reader.ts';
import { EXPORT_NAMES } from '../../src/detection/content-type.ts';
import { type Conditions, createConditions } from '../../src/health/alert-conditions.ts';
import type { DiskFolders } from '../../src/health/disk.ts';
import { createMonitor, type Monitor } from '../../src/health/monitor.ts';
import { pauseIngest, resumeIngest } from '../../src/ingest/operator-pause.ts';
import { ACCESS_SCHEMA } from '../../src/store/access-schema.ts';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { DAY_MS, formatMs, HOUR_MS, MINUTE_MS, WINDOW_MS } from '../../src/time.ts';
import type { WindowStatus } from '../../src/windows/window-states.ts';
import { patchedAll } from '../support/patched-fs.ts';
import { createTestStore, type TestStore } from '../support/store.ts';
import { until } from '../support/until.ts';

const NOW = Date.parse('2026-11-21T12:00:00Z');

let store: TestStore;
let access: Database;
let accessReader: ReturnType<typeof createAccessReader>;
let conditions: Conditions;
let nowMs: number;
let lines: Record<string, unknown>[];
let monitor: Monitor;
let reader: () => Database;
let opened: string[];
let commands: string[];

function start(folders: DiskFolders = {}): void {
  monitor = createMonitor({
    detections: { path: store.path, reader: () => reader() },
    access: { read: (use) => accessReader.read(use), check: () => accessReader.check() },
    conditions,
    rules: { enabled_exports: EXPORT_NAMES, failed_windows: 'hold' },
    folders,
    alertCommand: { run: (event, { name }) => commands.push(`${event} ${name}`), close: () => {} },
    now: () => nowMs,
    role: () => 'writer',
    log: pino({ base: null, level: 'debug' }, { write: (line) => void lines.push(JSON.parse(line)) }),
  });
}

beforeEach(() => {
  store = createTestStore();
  reader = () => store.reader;
  access = openDatabase(join(store.folder, 'access.db'), 'write', ACCESS_SCHEMA);
  accessReader = createAccessReader(join(store.folder, 'access.db'));
  nowMs = NOW;
  lines = [];
  opened = [];
  commands = [];
  const onOpened = ({ name }: { name: string }) => opened.push(name);
  conditions = createConditions(() => nowMs, onOpened);
});

afterEach(() => {
  monitor.close();
  accessReader.close();
  access.close();
  store.close();
});

const refuse = (name: string) =>
  store.addFile(NOW, { name, export: null, outcome: 'refused', report: { reason: 'no export file' } });

function setWindows(status: WindowStatus): void {
  for (const name of EXPORT_NAMES) store.setWindow(status, NOW - DAY_MS, nowMs, name);
}

const names = () => monitor.alerts().map(({ name }) => name);

test('notices finished windows, and a pause, at once', () => {
  start();
  // A new installation is degraded, without an alert.
  assert.deepEqual([monitor.health().status, monitor.alerts()], ['degraded', []]);
  for (const name of EXPORT_NAMES) store.finishWindow(name, NOW - WINDOW_MS);
  assert.deepEqual(monitor.health(), {
    status: 'ok',
    exports: { newswire: { newest_done: formatMs(NOW) }, imagewire: { newest_done: formatMs(NOW) } },
    alerts: { open: 0, page_worthy: 0, paused: 0 },
    role: 'writer',
  });
  pauseIngest(access, nowMs);
  assert.equal(monitor.health().alerts.paused, 1);
  resumeIngest(access);
  assert.equal(monitor.health().alerts.paused, 0);
});

test('is degraded 45 to 50 minutes after the last window, until one finishes', () => {
  for (const name of EXPORT_NAMES) store.finishWindow(name, NOW - WINDOW_MS);
  start();
  // The last check is then four minutes ago.
  for (const minutes of [0, 45, 49]) {
    nowMs = NOW + minutes * MINUTE_MS;
    assert.equal(monitor.health().status, 'ok', `${minutes} minutes`);
  }
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

test('reports a clock behind the newest finished window of any export', () => {
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

test('does not compare the clock with delivery times, which may come from a clock that was ahead', () => {
  store.finishWindow('newswire', NOW - WINDOW_MS);
  store.deliver([{ content_type: 'text', version: 1, row: {} }], NOW + DAY_MS);
  start();
  assert.deepEqual(names(), []);
});

test('keys that cannot be checked are urgent, as long as it lasts', () => {
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

test('a disk that is getting full and then answers late stays an alert, until it has room', async () => {
  const stats = await fs.promises.statfs('/');
  const [full, roomy] = [0, stats.blocks].map((bavail) => ({ ...stats, bavail }) as StatsFs);
  const late = Promise.withResolvers<StatsFs>();
  let answer: unknown = full;
  let asked = 0;
  using _ = patchedAll(fs.promises, ['statfs'], async () => {
    asked += 1;
    return answer;
  });
  start({ copy: '/share' });
  monitor.suspectDisks();
  await waitFor(() => conditions.has('disk getting full'));
  answer = late.promise;
  asked = 0;
  monitor.suspectDisks();
  await waitFor(() => asked > 0);
  await sleep(1500);
  assert.ok(conditions.has('disk getting full'));
  answer = roomy;
  late.resolve(roomy ?? stats);
  await waitFor(() => {
    monitor.suspectDisks();
    return !conditions.has('disk getting full');
  });
});

test('damage found by a request is reported, and health then has nulls', () => {
  for (const name of EXPORT_NAMES) store.finishWindow(name, NOW - WINDOW_MS);
  start();
  monitor.noteFault(new Error('something else'));
  assert.equal(conditions.has('database damaged'), false);
  monitor.noteFault(Object.assign(new Error('malformed'), { code: 'SQLITE_CORRUPT_INDEX' }));
  assert.equal(conditions.has('database damaged'), true);
  assert.deepEqual(opened, ['database damaged']);
  assert.deepEqual(monitor.health(), {
    status: 'degraded',
    exports: { newswire: { newest_done: null }, imagewire: { newest_done: null } },
    alerts: { open: 1, page_worthy: 1, paused: 0 },
    role: 'writer',
  });
});

test('another file in place of the database is damage', () => {
  copyFileSync(store.path, `${store.path}.copy`);
  start();
  renameSync(`${store.path}.copy`, store.path);
  nowMs += MINUTE_MS;
  return waitFor(() => conditions.has('database damaged'));
});

test('a database that was made anew, and is read anew, is no damage', async () => {
  start();
  copyFileSync(store.path, `${store.path}.copy`);
  renameSync(`${store.path}.copy`, store.path);
  using anew = openDatabase(store.path, 'read');
  let looks = 0;
  reader = () => {
    looks += 1;
    return anew;
  };
  // The file is looked at before the ledger is read.
  nowMs += MINUTE_MS;
  await waitFor(() => looks > 1);
  assert.deepEqual(names(), []);
});

test('a file that is no longer a database is found without a request', () => {
  store.writer.pragma('wal_checkpoint(TRUNCATE)');
  start();
  writeFileSync(store.path, 'overwritten '.repeat(100_000));
  nowMs += MINUTE_MS;
  return waitFor(() => conditions.has('database damaged'));
});

test('opened and closed alerts are logged, and run the command', async () => {
  start();
  conditions.set('disk full', 'no room');
  conditions.set('disk full', 'still no room');
  assert.deepEqual(opened, ['disk full']);
  await waitFor(() => lines.some(({ msg }) => msg === 'alert opened'));
  const line = lines.find(({ msg }) => msg === 'alert opened');
  assert.deepEqual([line?.alert, line?.page_worthy], ['disk full', true]);
  assert.deepEqual(monitor.alerts(), [{ name: 'disk full', of: '', since: NOW, detail: 'still no room' }]);
  conditions.set('disk full', null);
  await waitFor(() => lines.some(({ msg }) => msg === 'alert closed'));
  assert.deepEqual(monitor.alerts(), []);
  assert.deepEqual(commands, ['opened disk full', 'closed disk full'], 'the command must run');
});

test('an alert whose detail changes stays open', async () => {
  const told = (text: string) => waitFor(() => monitor.alerts().some(({ detail }) => detail.includes(text)));
  store.finishWindow('imagewire', NOW + 5 * HOUR_MS);
  refuse('a.md5');
  conditions.set('file stuck', 'a: EACCES');
  start();
  const all = ['opened file stuck', 'opened clock wrong', 'opened refused files'].sort();
  assert.deepEqual(commands.toSorted(), all);
  refuse('b.md5');
  conditions.set('file stuck', 'b: EACCES');
  nowMs += 2 * HOUR_MS;
  await told('refused b.md5 and 1 more file');
  await told('b: EACCES');
  await told(`the clock shows ${formatMs(nowMs)}`);
  assert.deepEqual(commands.toSorted(), all);
  nowMs += DAY_MS;
  conditions.set('file stuck', null);
  const closed = () => commands.filter((line) => line.startsWith('closed')).sort();
  await waitFor(() => closed().length > 2);
  const expected = all.map((line) => line.replace('opened', 'closed'));
  assert.deepEqual(closed(), expected);
});

test('each export has its own alert, and what closes is reported before what opens', async () => {
  setWindows('missing');
  start();
  assert.deepEqual(commands, Array(2).fill('opened missing windows'));
  commands = [];
  setWindows('abandoned');
  await waitFor(() => commands.length === 4);
  assert.deepEqual(commands.slice(0, 2), Array(2).fill('closed missing windows'));
  assert.deepEqual(commands.slice(2), Array(2).fill('opened abandoned windows'));
});

test('a database that cannot be read closes no other alert, and opens none when it can be read again', async () => {
  for (const name of EXPORT_NAMES) store.finishWindow(name, NOW - HOUR_MS);
  refuse('a.md5');
  start();
  assert.deepEqual(commands, ['opened ingest stalled', 'opened ingest stalled', 'opened refused files']);
  reader = () => {
    throw new Error('unable to open database file');
  };
  nowMs += HOUR_MS;
  await waitFor(() => commands.length > 3);
  reader = () => store.reader;
  await waitFor(() => commands.length > 4);
  monitor.noteFault(Object.assign(new Error('malformed'), { code: 'SQLITE_CORRUPT' }));
  await waitFor(() => commands.length > 5);
  assert.deepEqual(names(), ['ingest stalled', 'ingest stalled', 'database damaged', 'refused files']);
  pauseIngest(access, nowMs);
  await waitFor(() => commands.length > 7);
  assert.deepEqual(commands.slice(3), [
    'opened database not readable',
    'closed database not readable',
    'opened database damaged',
    'closed ingest stalled',
    'closed ingest stalled',
  ]);
});

test('while the database cannot be read, health answers with nulls, and a clock that is wrong stays so', () => {
  store.finishWindow('newswire', NOW + HOUR_MS);
  start();
  store.reader.close();
  assert.equal(monitor.health().exports.newswire.newest_done, null);
  assert.deepEqual(names(), ['database not readable', 'clock wrong']);
  nowMs += 2 * HOUR_MS;
  assert.deepEqual(names(), ['database not readable']);
});

/** The monitor checks once a second. */
const waitFor = (condition: () => boolean) => until('the check', condition);
