/** The status document: what it says of files, followers and settings, also when little can be read. */
import assert from 'node:assert/strict';
import fs, { mkdirSync, rmSync, type StatsFs, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { windowStates } from '../../src/admin/console/windows.ts';
import { revokeKey } from '../../src/auth/keys.ts';
import { loadConfig } from '../../src/config/load.ts';
import { type AlertName, alertDocument, HELD_UP_INGEST } from '../../src/health/alert-texts.ts';
import { appliedSince, type FileRecord } from '../../src/ingest/files/file-record.ts';
import { pauseIngest, resumeIngest } from '../../src/ingest/operator-pause.ts';
import { NO_USAGE } from '../../src/limits/usage.ts';
import type { Live } from '../../src/operations/operation.ts';
import { readStatus, type StatusSources } from '../../src/operations/status.ts';
import { statusText } from '../../src/operations/status-views.ts';
import { heldIn } from '../../src/operations/windows.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { DAY_MS, formatMs, formatWindowStart, WINDOW_MS } from '../../src/time.ts';
import type { WindowStatus } from '../../src/windows/window-states.ts';
import { db, makeKey, NOW_MS, root } from '../support/access-store.ts';
import { LIVE } from '../support/live.ts';
import { patched, patchedAll } from '../support/patched-fs.ts';
import { createTestStore, type TestStore } from '../support/store.ts';

const START = NOW_MS - 3 * DAY_MS;
const DISK_FULL = alertDocument({ name: 'disk full', of: '', since: NOW_MS, detail: 'no room' });
let store: TestStore;
beforeEach(() => {
  store = createTestStore();
  mkdirSync(join(root, 'drop'), { recursive: true });
});
afterEach(() => store.close());

function statusOf(more: Partial<StatusSources> = {}) {
  return readStatus({
    folder: dataFolder(root),
    kind: 'appliance',
    config: loadConfig({ flags: {}, env: {}, file: undefined, dataFolder: root }),
    access: () => db,
    detections: () => store.reader,
    live: null,
    nowMs: NOW_MS,
    ...more,
  });
}

const file = (members: Partial<FileRecord>) =>
  store.addFile(NOW_MS - DAY_MS / 2, { window_start: START, ...members });

const set = (status: WindowStatus, start = START) => store.setWindow(status, start, NOW_MS);

test('each file that was not applied says what solves it', async () => {
  set('failed');
  set('abandoned', START + WINDOW_MS);
  set('done', START + 2 * WINDOW_MS);
  const long = { taken_at: NOW_MS - 20 * DAY_MS, finished_at: NOW_MS - 20 * DAY_MS };
  file({ outcome: 'failed', ...long });
  file({ outcome: 'failed' });
  // Its window has been done since.
  file({ outcome: 'failed', window_start: START + 2 * WINDOW_MS });
  const later = { window_start: START + 2 * WINDOW_MS, finished_at: NOW_MS };
  const { name: second } = file({ outcome: 'failed', ...later });
  file({ outcome: 'refused', export: null, window_start: null });
  const { not_applied } = await statusOf();
  assert.deepEqual(
    not_applied.map(({ outcome, what_to_do }) => `${outcome}: ${what_to_do}`),
    [
      'refused: Drop it again under a valid name, or delete it from refused/ if it was dropped by mistake.',
      `failed: Fix the file and drop it again. For its errors, run: wirewatch ingest explain ${second}`,
      `failed: Fix the file, drop it again, and run: wirewatch window reset newswire ${formatMs(START)}`,
    ],
  );
});

test('refused files hide none that was applied from the search for files that changed', () => {
  const { name: applied } = file({ finished_at: NOW_MS });
  for (let count = 0; count < 3; count += 1) file({ outcome: 'refused', finished_at: NOW_MS });
  const found = appliedSince(store.reader, NOW_MS, 2).map(({ name }) => name);
  assert.deepEqual(found, [applied]);
});

test('held files are listed with their command, and wait for nothing else', async () => {
  set('failed');
  set('abandoned', START + WINDOW_MS);
  const nameOf = (start: number, form: string) => `newswire.${formatWindowStart(start)}.${form}`;
  const [failed, abandoned] = [nameOf(START, 'csv'), nameOf(START + WINDOW_MS, 'ndjson')];
  const next = nameOf(START + 2 * WINDOW_MS, 'ndjson');
  for (const name of [failed, abandoned, next]) writeFileSync(join(root, 'drop', name), '');
  const { ingest } = await statusOf({ live: LIVE });
  assert.deepEqual([ingest.waiting, ingest.waiting_files, ingest.held], [1, [next], 2]);
  const held = (file: string, start: number, reason: string, verb: string) => {
    const window = { export: 'newswire', window_start: formatMs(start) };
    const what_to_do = `To read it, run: wirewatch window ${verb} newswire ${formatMs(start)}`;
    return { file, ...window, reason, what_to_do };
  };
  assert.deepEqual(ingest.held_files, [
    held(failed, START, 'its window has failed', 'reset'),
    held(abandoned, START + WINDOW_MS, 'its window is abandoned', 'accept'),
  ]);
  for (const name of [failed, abandoned, next]) rmSync(join(root, 'drop', name));
});

test('a drop folder that cannot be listed is no empty one', async () => {
  rmSync(join(root, 'drop'), { recursive: true });
  const status = await statusOf({ live: LIVE });
  const unread = /^the drop folder \S+ cannot be read: no such file or folder\. Check that its disk or share/;
  assert.match(status.ingest.drop_unreadable ?? '', unread);
  assert.match(statusText(status), /^waiting +the drop folder \S+ cannot be read/m);
  mkdirSync(join(root, 'drop'));
  assert.equal((await statusOf({ live: LIVE })).ingest.drop_unreadable, null);
});

test('waiting files say for what: a pause, a start, an alert, a promotion, or nothing but their turn', async () => {
  assert.deepEqual((await statusOf()).ingest.waits_for, null);
  writeFileSync(join(root, 'drop', 'newswire.20261121T0950Z.ndjson'), '');
  const waitsFor = async (live: Live | null) => (await statusOf({ live })).ingest.waits_for;
  assert.match((await waitsFor(null))?.what_to_do ?? '', /wirewatch serve$/);
  assert.equal(await waitsFor(LIVE), null);
  const { what_to_do } = DISK_FULL;
  const full = await waitsFor({ ...LIVE, alerts: [DISK_FULL] });
  assert.deepEqual(full, { reason: 'disk full: no room', what_to_do });
  const alert = (name: AlertName, of = '') => alertDocument({ name, of, since: NOW_MS, detail: 'why' });
  const late = alert('copy behind');
  assert.equal(await waitsFor({ ...LIVE, alerts: [late] }), null, 'ingest does not wait for the copy');
  const others = [alert('data folder not writable'), alert('another machine took over')];
  for (const stops of [alert('copy behind', HELD_UP_INGEST), ...others]) {
    const { reason } = (await waitsFor({ ...LIVE, alerts: [late, stops] })) ?? {};
    assert.equal(reason, `${stops.name}: why`);
  }
  assert.match((await waitsFor({ ...LIVE, role: 'standby' }))?.reason ?? '', /standby/);
  pauseIngest(db, NOW_MS);
  assert.match((await waitsFor(LIVE))?.what_to_do ?? '', /wirewatch ingest resume$/);
  resumeIngest(db);
});

test('a window has the rows of all its files, also if the last one brought none', () => {
  set('done');
  file({ report: { rows: 7 } });
  file({ outcome: 'repeated', report: { rows: 7 } });
  file({ outcome: 'failed', report: { rows: 5 } });
  const { number: last } = file({ report: { rows: 0 } });
  store.writer.prepare('UPDATE export_window SET file = ?').run(last);
  const span = { export: 'newswire', from: START, to: START + WINDOW_MS } as const;
  const [state] = windowStates(store.reader, span, { isEnabled: true, held: [] }, NOW_MS);
  assert.deepEqual([state?.letter, state?.rows], ['d', 7]);
});

test('followers are active keys: the lag of one that is revoked or has expired would only grow', async () => {
  const keys = ['following', 'expired', 'revoked'] as const;
  const subscriptions = [{ id: 7001, content_types: null }];
  const ids = keys.map(
    (name) => makeKey({ name, subscriptions, expires_at: name === 'expired' ? NOW_MS + 1 : null }).id,
  );
  const [following = '', , revoked = ''] = ids;
  const uses = ids.map((key_id) => ({ key_id, last_used_at: NOW_MS, position: 0 }));
  writeFileSync(join(root, 'usage'), JSON.stringify({ ...NO_USAGE, uses }));
  store.deliver([{ content_type: 'text', version: 1, row: {} }], NOW_MS - 3 * 3_600_000);
  const followers = async (nowMs: number) => {
    const status = await statusOf({ nowMs });
    assert.equal(status.keys.behind, status.followers.length);
    return status.followers.map(({ key_id, rows_behind }) => [key_id, rows_behind]);
  };
  assert.deepEqual((await followers(NOW_MS)).sort(), ids.map((id) => [id, 1]).sort());
  revokeKey(db, revoked, NOW_MS);
  assert.deepEqual(await followers(NOW_MS + 1), [[following, 1]]);

  store.writer.exec('DELETE FROM stream_row');
  const { database, keys: known } = await statusOf({ nowMs: NOW_MS + 1 });
  assert.match(database.unreadable ?? '', /7001/, 'damage is of the database that has it');
  assert.deepEqual([known.active, known.unreadable], [1, null]);
});

test('a disk that cannot be read hides no alert: they come from memory', async () => {
  const unreadable = () => {
    throw new Error('attempt to write a readonly database');
  };
  const live = { ...LIVE, alerts: [DISK_FULL] };
  const folder = dataFolder('/nonexistent');
  const status = await statusOf({ live, folder, access: unreadable, detections: unreadable });
  assert.deepEqual(status.alerts, [DISK_FULL]);
  assert.match(status.health.reason, /^disk full: no room/);
  assert.match(status.database.unreadable ?? '', /readonly/);
  assert.match(status.keys.unreadable ?? '', /readonly/);
});

test('a share that hangs is waited for before it is read: the thread, which revokes keys, is not held', async () => {
  const drop = join(root, 'drop');
  const { promise: hung, resolve: answer } = Promise.withResolvers<StatsFs>();
  using _ = patchedAll(fs.promises, ['statfs'], (real, [folder]) => (folder === drop ? hung : real(folder)));
  let reads = 0;
  using __ = patched('opendirSync', (real) => (...args) => {
    reads += 1;
    return real(...args);
  });
  const config = loadConfig({ flags: {}, env: {}, file: undefined, dataFolder: root });
  const all = Promise.all([statusOf(), heldIn({ config, detections: () => store.reader })]);
  await sleep(50);
  assert.equal(reads, 0);
  answer(await fs.promises.statfs(root));
  const [{ disks }] = await all;
  assert.equal(reads, 2);
  const found = disks.map(({ of: disk }) => disk);
  assert.deepEqual(found, ['data', 'drop']);
});
