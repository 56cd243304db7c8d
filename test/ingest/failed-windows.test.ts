/** Files for a failed window: held, read by a reset, or read at once by setting; and windows that are given up. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { test } from 'node:test';
import { formatMs, WINDOW_MS } from '../../src/time.ts';
import { sharedAppliance } from '../support/appliance.ts';
import { assertFailed } from '../support/command.ts';
import { csv, fileName, idOf, ndjson, newRow, nextWindowMs, type Row } from '../support/export-files.ts';
import { exportTrials, later } from '../support/export-trials.ts';
import { alertsOf, loggedFiles, openAlertsOf } from '../support/installation-state.ts';

const appliance = await sharedAppliance();
const { inDrop, reasonBeside, window, windowStatus, followStream } = exportTrials(() => appliance);

const reset = (...windows: number[]) => window('reset', 'newswire', ...windows.map(formatMs));
const drop = (windowMs: number, ...rows: Row[]) =>
  appliance.dropped(fileName('newswire', windowMs), ndjson(rows));

/** Drops a file that fails. @returns its window */
async function failedWindow(windowMs = nextWindowMs(), content = 'broken\n'): Promise<number> {
  const line = await appliance.dropped(fileName('newswire', windowMs), content);
  assert.equal(line.msg, 'file failed');
  return windowMs;
}

async function assertDetected(...rows: Row[]): Promise<void> {
  for (const row of rows) assert.ok(await appliance.detection(idOf(row)));
}

test('without the drop folder, a release says so, and how to go on', async () => {
  const windowMs = await failedWindow();
  const away = `${appliance.drop}-away`;
  renameSync(appliance.drop, away);
  const unread = /the drop folder \S+ cannot be read: no such file or folder\. Check that its disk/;
  for (const which of [formatMs(windowMs), '--all'])
    assertFailed(appliance.cli(['window', 'reset', 'newswire', which], { anyStatus: true }), 1, unread);
  const replay = appliance.cli(['ingest', 'replay'], { anyStatus: true });
  assertFailed(replay, 1, unread);
  renameSync(away, appliance.drop);
  await drop(nextWindowMs(), newRow());
  window('accept', 'newswire', formatMs(windowMs));
});

test('files for a failed window are held; window reset reads the newest of them first', async () => {
  const windowMs = await failedWindow();
  const [name, older] = [fileName('newswire', windowMs), fileName('newswire', windowMs, 'csv')];
  const [one, two, three] = [newRow(), newRow(), newRow()];
  assert.equal(windowStatus('newswire', windowMs), 'failed');
  assert.match(reasonBeside(`failed/${name}`).next, /wirewatch window reset newswire 2026-/);
  const first = later(two, { strength_score: 1 });
  const held = await appliance.dropped(older, csv([one, first]));
  assert.deepEqual([held.msg, held.reason], ['file held', 'its window has failed']);
  assert.equal((await drop(windowMs, two, three)).msg, 'file held');
  for (const file of [older, name]) assert.ok(existsSync(inDrop(file)), 'both stay where they were dropped');
  const [listed] = window('list', 'newswire', '--status', 'failed').document;
  assert.deepEqual([listed.window_start, listed.held_file], [formatMs(windowMs), name]);
  const waits = `${older} +its window has failed +To read it, run: wirewatch window reset newswire`;
  assert.match(appliance.cli(['ingest', 'status']).stdout, new RegExp(waits));
  for (const row of [one, two, three]) assert.equal(await appliance.detection(idOf(row)), null);
  const arrived = await followStream();

  const { outcome, file } = window('reset', 'newswire', name.split('.')[1] ?? '').document;
  assert.deepEqual([outcome, basename(file)], ['applied', name]);
  assert.equal(windowStatus('newswire', windowMs), 'done');
  assert.equal((await appliance.processed(older)).msg, 'file applied', 'the other one is a correction');
  for (const moved of [older, name]) assert.ok(!existsSync(inDrop(moved)));
  const shown = await Promise.all([one, two, three].map((row) => appliance.detection(idOf(row))));
  const versions = shown.map((detection) => detection?.version);
  assert.deepEqual(versions, [1, 2, 1]);
  assert.deepEqual(
    (await arrived()).sort(),
    [...[one, two, three].map((row) => `${idOf(row)} 1 created`), `${idOf(two)} 2 updated`].sort(),
    'then they must reach the stream',
  );
  assertFailed(reset(windowMs), 1, /is done/);
});

test('window reset of several windows reads none if one has not failed; else it tells what became of each', async () => {
  const [gone, good] = [await failedWindow(), await failedWindow()];
  await drop(good, newRow());
  const unknown = nextWindowMs();
  assertFailed(reset(good, unknown), 1, new RegExp(`${formatMs(unknown)} is unknown`));
  assert.equal(windowStatus('newswire', good), 'failed');
  rmSync(inDrop('failed', fileName('newswire', gone)));
  const { status, document } = reset(gone, good, gone);
  assert.equal(status, 1);
  const outcomes = document.map((each: Record<string, unknown>) => `${each.status}, ${each.outcome}`);
  assert.deepEqual(outcomes, ['failed, null', 'done, applied']);
  assert.match(document[0].reason, /neither the drop folder nor failed\/ has a file for window/);
  // So that no alert of it remains.
  await drop(gone, newRow());
  assert.equal(reset(gone).document.outcome, 'applied');
});

test('window reset --all reads the held file of every failed window', async () => {
  const [first, second, third] = [await failedWindow(), await failedWindow(), await failedWindow()];
  const rows = [newRow(), newRow()] as const;
  await drop(second, rows[1]);
  await drop(first, rows[0]);
  const alert = (await alertsOf(appliance)).find(({ name }) => name === 'held windows');
  const held =
    /^newswire: files wait for 2 failed windows from .* on; to read them, run: wirewatch window reset newswire --all$/;
  assert.match(alert?.detail ?? '', held);
  appliance.cli(['ingest', 'pause']);
  const { document } = window('reset', 'newswire', '--all');
  const { alerts, not_applied } = JSON.parse(appliance.cli(['status', '--json']).stdout);
  const isHeld = alerts.some(({ name }: { name: string }) => name === 'held windows');
  assert.ok(!isHeld, 'nothing is held any more');
  assert.ok(!not_applied.some(({ file }: { file: string }) => file === fileName('newswire', first)));
  appliance.cli(['ingest', 'resume']);
  const resets = document.map(({ window_start, status }: Record<string, string>) => [window_start, status]);
  const done = [first, second].map((windowMs) => [formatMs(windowMs), 'done']);
  assert.deepEqual(resets, done);
  await assertDetected(...rows);
  assert.equal(windowStatus('newswire', third), 'failed', 'no file may be held for it');
  assert.deepEqual(window('reset', 'newswire', '--all').document, []);
  for (const args of [[], [formatMs(third), '--all']])
    assert.equal(window('reset', 'newswire', ...args).status, 2);
  await drop(third, newRow());
  reset(third);
});

test('without a held file, window reset reads the failed one again', async () => {
  const windowMs = await failedWindow();
  const name = fileName('newswire', windowMs);
  const failing = reset(windowMs);
  assert.deepEqual([failing.status, failing.document.outcome], [1, 'failed']);
  assert.equal(windowStatus('newswire', windowMs), 'failed');
  assert.equal(readFileSync(inDrop('failed', name), 'utf8'), 'broken\n');
  assert.equal(reasonBeside(`failed/${name}`).errors[0].line, 1);
  // An operator fixes the file in place.
  const row = newRow();
  writeFileSync(inDrop('failed', name), ndjson([row]));
  const arrived = await followStream();
  assert.equal(reset(windowMs).status, 0);
  assert.equal(windowStatus('newswire', windowMs), 'done');
  assert.deepEqual(await arrived(), [`${idOf(row)} 1 created`]);
  await assertDetected(row);
  assert.ok(!existsSync(inDrop('failed', name)) && !existsSync(inDrop('failed', `${name}.reason.json`)));
});

test('a failed window of an export that is switched off is not reset, and its file stays', async () => {
  const windowMs = nextWindowMs();
  const line = await appliance.dropped(fileName('imagewire', windowMs), 'broken\n');
  assert.equal(line.msg, 'file failed');
  await appliance.restart({ WIREWATCH_EXPORTS_IMAGEWIRE_ENABLED: 'false' });
  const refused = window('reset', 'imagewire', formatMs(windowMs));
  assertFailed(refused, 1, /imagewire is switched off.*enabled = true/);
  assert.ok(existsSync(inDrop(String(line.destination))));
  await appliance.restart();
  assert.equal(windowStatus('imagewire', windowMs), 'failed');
  // So that no alert of it remains.
  window('accept', 'imagewire', formatMs(windowMs));
});

/** Stops after a window failed, and leaves one of its files as a reset does that is killed. @param path of the file */
async function killedInReset(windowMs: number, path: (name: string) => string): Promise<string> {
  const name = fileName('newswire', windowMs);
  const number = Math.max(...loggedFiles(appliance.data).map((record) => record.number)) + 1;
  await appliance.serving().stop();
  renameSync(inDrop(path(name)), inDrop('.taken', `${number}.${name}`));
  rmSync(inDrop(`${path(name)}.reason.json`), { force: true });
  await appliance.restart();
  return name;
}

test('a held file that a reset had taken when the program was killed is still held, and read by a reset', async () => {
  const windowMs = await failedWindow();
  const row = newRow();
  await drop(windowMs, row);
  const name = await killedInReset(windowMs, (held) => held);
  assert.equal((await appliance.processed(name)).msg, 'file held');
  reset(windowMs);
  assert.equal(windowStatus('newswire', windowMs), 'done');
  await assertDetected(row);
});

test('a failed file that a reset had taken when the program was killed has one record', async () => {
  const windowMs = await failedWindow();
  const name = await killedInReset(windowMs, (failed) => `failed/${failed}`);
  reset(windowMs);
  const records = loggedFiles(appliance.data).filter((record) => record.name === name);
  const last = new Map(records.map(({ number, destination }) => [number, destination]));
  assert.deepEqual([...last.values()], [null, `failed/${name}`]);
  await drop(windowMs, newRow());
  reset(windowMs);
});

test('a failed window that is accepted counts as done without its file; a file that comes later is a correction', async () => {
  const accept = (windowMs: number) => window('accept', 'newswire', formatMs(windowMs));
  const stray = nextWindowMs() - 100 * WINDOW_MS;
  const windowMs = await failedWindow();
  const { outcome, status } = accept(windowMs).document;
  assert.deepEqual([outcome, status], ['dismissed', 'done']);
  assert.ok(existsSync(inDrop('failed', fileName('newswire', windowMs))));
  const row = newRow();
  assert.equal((await drop(windowMs, row)).msg, 'file applied');
  await assertDetected(row);
  // Before the first expected window: it must not make thousands of windows missing.
  await failedWindow(stray);
  assert.equal(windowStatus('newswire', stray), 'failed');
  assert.equal(accept(stray).document.outcome, 'dismissed');
  assert.equal(windowStatus('newswire', stray), undefined);
  await appliance.restart();
  const failures = (await openAlertsOf(appliance)).filter((name) => name.startsWith('failed'));
  assert.deepEqual(failures, []);
  assert.match(accept(windowMs).stderr, /is done: only an abandoned or failed window can be accepted/);
});

test('failed_windows = read reads a file for a failed window', async () => {
  await appliance.restart({ WIREWATCH_INGEST_FAILED_WINDOWS: 'read' });
  const first = await failedWindow();
  const next = /fix the file and drop it again\.( For its errors, .*)?$/i;
  assert.match(reasonBeside(`failed/${fileName('newswire', first)}`).next, next);
  const { alerts, not_applied } = JSON.parse(appliance.cli(['status', '--json']).stdout);
  assert.match(not_applied[0].what_to_do, next);
  const alert = alerts.find(({ name }: { name: string }) => name === 'failed windows');
  assert.match(alert.what_to_do, next);
  const windowMs = await failedWindow(first, 'broken 2\n');
  const row = newRow();
  assert.equal((await drop(windowMs, row)).msg, 'file applied');
  await assertDetected(row);
  assert.equal(windowStatus('newswire', windowMs), 'done');
});
