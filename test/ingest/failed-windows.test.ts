/** Files for a failed window: held, read by a reset, or read at once by setting. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { formatMs } from '../../src/time.ts';
import { sharedAppliance } from '../support/appliance.ts';
import { followStream } from '../support/arrivals.ts';
import { contentOf, fileName, idOf, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { exportTrials, later } from '../support/export-trials.ts';
import { loggedFiles } from '../support/installation-state.ts';

const { inDrop, reasonBeside, windowStatus } = exportTrials(() => appliance);

const appliance = await sharedAppliance();

test('files for a failed window are held; window reset reads the newest of them first', async () => {
  const window = nextWindowMs();
  const name = fileName('newswire', window);
  const older = fileName('newswire', window, 'csv');
  const rows = [newRow(), newRow(), newRow()];
  assert.equal((await appliance.dropped(name, 'broken\n')).msg, 'file failed');
  assert.equal(windowStatus('newswire', window), 'failed');
  assert.match(reasonBeside(`failed/${name}`).next, /wirewatch window reset newswire 2026-/);
  const first = later(rows[1] ?? {}, { strength_score: 1 });
  const held = await appliance.dropped(older, contentOf('csv', [...rows.slice(0, 1), first]));
  assert.deepEqual([held.msg, held.reason], ['file held', 'its window has failed']);
  assert.equal((await appliance.dropped(name, ndjson(rows.slice(1)))).msg, 'file held');
  for (const one of [older, name]) assert.ok(existsSync(inDrop(one)), 'both stay where they were dropped');
  const listed = JSON.parse(appliance.cli(['window', 'list', 'newswire', '--json']).stdout);
  assert.equal(
    listed.find(({ window_start }: { window_start: string }) => window_start === formatMs(window)).held_file,
    name,
  );
  const status = appliance.cli(['ingest', 'status']).stdout;
  assert.match(
    status,
    new RegExp(`${older} +its window has failed +To read it, run: wirewatch window reset newswire`),
  );
  for (const row of rows) assert.equal(await appliance.detection(idOf(row)), null);
  const arrived = await followStream(appliance);

  const start = name.split('.')[1] ?? '';
  const { stdout } = appliance.cli(['window', 'reset', 'newswire', start, '--json']);
  const { outcome, file } = JSON.parse(stdout);
  assert.deepEqual([outcome, basename(file)], ['applied', name]);
  assert.equal(windowStatus('newswire', window), 'done');
  assert.equal((await appliance.processed(older)).msg, 'file applied', 'the other one is a correction');
  for (const one of [older, name]) assert.ok(!existsSync(inDrop(one)));
  const shown = await Promise.all(rows.map((row) => appliance.detection(idOf(row))));
  assert.deepEqual(
    shown.map((detection) => detection?.version),
    [1, 2, 1],
  );
  assert.deepEqual(
    (await arrived()).sort(),
    [...rows.map((row) => `${idOf(row)} 1 created`), `${idOf(rows[1] ?? {})} 2 updated`].sort(),
    'then they must reach the stream',
  );
  const again = appliance.cli(['window', 'reset', 'newswire', start], { anyStatus: true });
  assert.equal(again.status, 1);
  assert.match(again.stderr, /is done/);
});

test('window reset reads several named windows again, and none when one of them has not failed', async () => {
  const windows = [nextWindowMs(), nextWindowMs()];
  const [first = 0, second = 0] = windows;
  const rows = windows.map(() => newRow());
  for (const [index, window] of windows.entries()) {
    const name = fileName('newswire', window);
    await appliance.dropped(name, 'broken\n');
    await appliance.dropped(name, ndjson(rows.slice(index, index + 1)));
  }

  const unknown = formatMs(nextWindowMs());
  const refused = appliance.cli(['window', 'reset', 'newswire', formatMs(first), unknown], {
    anyStatus: true,
  });
  assert.equal(refused.status, 1);
  assert.match(refused.stderr, new RegExp(`${unknown} is unknown`));
  assert.equal(windowStatus('newswire', first), 'failed');

  const starts = [formatMs(first), formatMs(second), formatMs(first)];
  const { stdout } = appliance.cli(['window', 'reset', 'newswire', ...starts, '--json']);
  assert.deepEqual(
    JSON.parse(stdout).map(({ window_start, outcome }: Record<string, unknown>) => [window_start, outcome]),
    [first, second].map((window) => [formatMs(window), 'applied']),
  );
  for (const window of windows) assert.equal(windowStatus('newswire', window), 'done');
});

test('window reset of several windows tells what became of each, also when one is refused', async () => {
  const [gone, good] = [nextWindowMs(), nextWindowMs()];
  for (const window of [gone, good]) await appliance.dropped(fileName('newswire', window), 'broken\n');
  await appliance.dropped(fileName('newswire', good), ndjson([newRow()]));
  rmSync(join(appliance.drop, 'failed', fileName('newswire', gone)));

  const starts = [formatMs(gone), formatMs(good)];
  const reset = appliance.cli(['window', 'reset', 'newswire', ...starts, '--json'], { anyStatus: true });
  assert.equal(reset.status, 1);
  const documents = JSON.parse(reset.stdout);
  assert.deepEqual(
    documents.map(({ status, outcome }: Record<string, unknown>) => [status, outcome]),
    [
      ['failed', null],
      ['done', 'applied'],
    ],
  );
  assert.match(documents[0].reason, /neither the drop folder nor failed\/ has a file for window/);
  // Its file is put back, so that no alert of it remains.
  await appliance.dropped(fileName('newswire', gone), ndjson([newRow()]));
  const { stdout } = appliance.cli(['window', 'reset', 'newswire', formatMs(gone)]);
  assert.match(stdout, /applied/);
});

test('window reset --all reads the held file of every failed window', async () => {
  const windows = [nextWindowMs(), nextWindowMs(), nextWindowMs()];
  const [first = 0, second = 0, third = 0] = windows;
  for (const window of windows) await appliance.dropped(fileName('newswire', window), 'broken\n');
  const rows = [newRow(), newRow()];
  await appliance.dropped(fileName('newswire', second), ndjson(rows.slice(1)));
  await appliance.dropped(fileName('newswire', first), ndjson(rows.slice(0, 1)));
  const list: { name: string; detail: string }[] = JSON.parse(
    appliance.cli(['alert', 'list', '--json']).stdout,
  );
  const alert = list.find(({ name }) => name === 'held windows');
  assert.match(
    alert?.detail ?? '',
    /^newswire: files wait for 2 failed windows from .* on; to read them, run: wirewatch window reset newswire --all$/,
  );
  appliance.cli(['ingest', 'pause']);
  const reset = JSON.parse(appliance.cli(['window', 'reset', 'newswire', '--all', '--json']).stdout);
  const { alerts, not_applied } = JSON.parse(appliance.cli(['status', '--json']).stdout);
  assert.ok(
    !alerts.some(({ name }: { name: string }) => name === 'held windows'),
    'nothing is held any more',
  );
  assert.ok(!not_applied.some(({ file }: { file: string }) => file === fileName('newswire', first)));
  appliance.cli(['ingest', 'resume']);
  assert.deepEqual(
    reset.map(({ window_start, status }: Record<string, string>) => [window_start, status]),
    [first, second].map((window) => [formatMs(window), 'done']),
  );
  for (const row of rows) assert.ok(await appliance.detection(idOf(row)));
  assert.equal(windowStatus('newswire', third), 'failed', 'no file may be held for it');
  assert.equal(appliance.cli(['window', 'reset', 'newswire', '--all', '--json']).stdout, '[]\n');
  for (const args of [['newswire'], ['newswire', formatMs(third), '--all']])
    assert.equal(appliance.cli(['window', 'reset', ...args], { anyStatus: true }).status, 2);
  await appliance.dropped(fileName('newswire', third), ndjson([newRow()]));
  appliance.cli(['window', 'reset', 'newswire', formatMs(third)]);
});

test('without a held file, window reset reads the failed one again', async () => {
  const window = nextWindowMs();
  const name = fileName('newswire', window);
  const row = newRow();
  await appliance.dropped(name, 'broken\n');
  const reset = () =>
    appliance.cli(['window', 'reset', 'newswire', formatMs(window), '--json'], { anyStatus: true });
  const failing = reset();
  assert.equal(failing.status, 1);
  assert.equal(JSON.parse(failing.stdout).outcome, 'failed');
  assert.equal(windowStatus('newswire', window), 'failed');
  assert.equal(readFileSync(inDrop('failed', name), 'utf8'), 'broken\n');
  assert.equal(reasonBeside(`failed/${name}`).errors[0].line, 1);
  // An operator fixes the file in place.
  writeFileSync(inDrop('failed', name), ndjson([row]));
  const arrived = await followStream(appliance);
  const mended = reset();
  assert.equal(mended.status, 0, mended.stderr);
  assert.equal(windowStatus('newswire', window), 'done');
  assert.deepEqual(await arrived(), [`${idOf(row)} 1 created`]);
  assert.ok(await appliance.detection(idOf(row)));
  assert.ok(!existsSync(inDrop('failed', name)) && !existsSync(inDrop('failed', `${name}.reason.json`)));
});

test('a failed window of an export that is switched off is not reset, and its file stays', async () => {
  const window = nextWindowMs();
  const line = await appliance.dropped(fileName('imagewire', window), 'broken\n');
  assert.equal(line.msg, 'file failed');
  const off = { WIREWATCH_EXPORTS_IMAGEWIRE_ENABLED: 'false' };
  await appliance.restart(off);
  const reset = appliance.cli(['window', 'reset', 'imagewire', formatMs(window)], { anyStatus: true });
  assert.equal(reset.status, 1);
  assert.match(reset.stderr, /imagewire is switched off.*enabled = true/);
  assert.ok(existsSync(inDrop(String(line.destination))));
  await appliance.restart();
  assert.equal(windowStatus('imagewire', window), 'failed');
});

test('a held file that a reset had taken when the program was killed is still held, and read by a reset', async () => {
  const window = nextWindowMs();
  const name = fileName('newswire', window);
  const row = newRow();
  const failed = await appliance.dropped(name, 'broken\n');
  await appliance.dropped(name, ndjson([row]));
  await appliance.serving().stop();
  renameSync(inDrop(name), inDrop('.taken', `${Number(failed.number) + 1}.${name}`));
  await appliance.restart();
  assert.equal((await appliance.processed(name)).msg, 'file held');
  appliance.cli(['window', 'reset', 'newswire', formatMs(window)]);
  assert.equal(windowStatus('newswire', window), 'done');
  assert.ok(await appliance.detection(idOf(row)));
});

test('a failed file that a reset had taken when the program was killed has one record', async () => {
  const window = nextWindowMs();
  const name = fileName('newswire', window);
  const failed = await appliance.dropped(name, 'broken\n');
  await appliance.serving().stop();
  renameSync(inDrop('failed', name), inDrop('.taken', `${Number(failed.number) + 1}.${name}`));
  rmSync(inDrop('failed', `${name}.reason.json`));
  await appliance.restart();
  appliance.cli(['window', 'reset', 'newswire', formatMs(window)], { anyStatus: true });
  const records = loggedFiles(appliance.data).filter((record) => record.name === name);
  const last = new Map(records.map(({ number, destination }) => [number, destination]));
  assert.deepEqual([...last.values()], [null, `failed/${name}`]);
  await appliance.dropped(name, ndjson([newRow()]));
  appliance.cli(['window', 'reset', 'newswire', formatMs(window)]);
});

test('failed_windows = read reads a file for a failed window', async () => {
  await appliance.restart({ WIREWATCH_INGEST_FAILED_WINDOWS: 'read' });
  const window = nextWindowMs();
  const name = fileName('newswire', window);
  const failed = [await appliance.dropped(name, 'broken 1\n'), await appliance.dropped(name, 'broken 2\n')];
  assert.deepEqual(
    failed.map(({ msg }) => msg),
    ['file failed', 'file failed'],
  );
  const row = newRow();
  assert.equal((await appliance.dropped(name, ndjson([row]))).msg, 'file applied');
  assert.ok(await appliance.detection(idOf(row)));
  assert.equal(windowStatus('newswire', window), 'done');
});
