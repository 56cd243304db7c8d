/**
 * Windows over time in the real program. Its clock cannot be set; instead, the stored times are moved back while it is
 * stopped.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { DAY_MS, formatMs, WINDOW_MS } from '../../src/time.ts';
import { sharedAppliance } from '../support/appliance.ts';
import { assertFailed } from '../support/command.ts';
import { changeDetections } from '../support/database-content.ts';
import { fileName, idOf, ndjson, newRow, type Row } from '../support/export-files.ts';
import { exportTrials } from '../support/export-trials.ts';
import { alertsOf } from '../support/installation-state.ts';

// The comparison with the log would find the times that are moved here.
const appliance = await sharedAppliance({ WIREWATCH_VERIFY_EVERY_HOURS: '0' });
const { inDrop, window, followStream } = exportTrials(() => appliance);

const FIRST = Math.floor(Date.now() / WINDOW_MS) * WINDOW_MS - 2 * DAY_MS;
const startOf = (count: number) => formatMs(FIRST + count * WINDOW_MS);
const nameOf = (count: number) => fileName('newswire', FIRST + count * WINDOW_MS);
const drop = (count: number, row: Row = newRow()) => appliance.dropped(nameOf(count), ndjson([row]));

/** Moves all stored times back by `ms`, and starts again. @param waiting the window of a file that is dropped meanwhile */
async function passTime(ms: number, waiting: number): Promise<void> {
  await appliance.serving().stop();
  changeDetections(
    appliance.data,
    `UPDATE window_look SET looked_at = looked_at - ${ms}; UPDATE export_window SET since = since - ${ms}`,
  );
  appliance.put(nameOf(waiting), ndjson([newRow()]));
  await appliance.restart();
}

function starts(status: string): string[] {
  const windows: { window_start: string }[] = window('list', 'newswire', '--status', status).document;
  return windows.map(({ window_start }) => window_start).sort();
}

const alert = async (name: string) => (await alertsOf(appliance)).find((one) => one.name === name);

const lastSearch = () => appliance.logged(/^checked for missing windows$/);

const gaps = async (): Promise<{ window_start: string; status: string }[]> =>
  (await appliance.read('/v1/me')).data_gaps.text;

test('a new installation has no missing windows, and every start searches for them', async () => {
  const none = /^No windows match\. The list starts with the first window that is read\.\n$/;
  assert.match(appliance.cli(['window', 'list']).stdout, none);
  // After this run's first search, nothing becomes missing until the next day or start.
  await lastSearch();
  for (const count of [0, 3]) await drop(count);
  assert.match(appliance.cli(['window', 'list', '--status', 'missing']).stdout, none);
  assert.deepEqual(await gaps(), []);
});

test('a file that waits during a pause is not missing; one that has not come is, in the list, in gaps, and an alert', async () => {
  appliance.cli(['ingest', 'pause']);
  await passTime(DAY_MS, 1);
  await lastSearch();
  const { waiting_files, paused_since } = JSON.parse(appliance.cli(['ingest', 'status', '--json']).stdout);
  assert.deepEqual(waiting_files, [nameOf(1)]);
  assert.ok(paused_since);
  const missing = starts('missing');
  assert.deepEqual(missing.slice(0, 3), [startOf(2), startOf(4), startOf(5)]);
  assert.ok(existsSync(inDrop(nameOf(1))));
  appliance.cli(['ingest', 'resume']);
  assert.equal((await appliance.processed(nameOf(1))).msg, 'file applied');
  assert.deepEqual(starts('missing'), missing);
  assert.ok(missing.length > 100 && missing.length < 144);
  const newest = Date.parse(missing.at(-1) ?? '');
  assert.ok(Date.now() - newest >= DAY_MS + 2 * WINDOW_MS, 'a day after it was due');
  const found = await alert('missing windows');
  assert.equal(found?.page_worthy, false);
  assert.ok(found?.detail.includes(startOf(2)));
  assert.deepEqual((await gaps()).at(-1), { window_start: startOf(2), status: 'missing' });
});

test('a late file of a missing window is read when it arrives', async () => {
  const row = newRow();
  const arrived = await followStream();
  assert.equal((await drop(2, row)).msg, 'file applied');
  assert.deepEqual(await arrived(), [`${idOf(row)} 1 created`], 'then it must reach the stream');
  assert.ok(!starts('missing').includes(startOf(2)));
  assert.ok(starts('done').includes(startOf(2)));
});

test('after 30 days missing windows are abandoned, but not one whose file waits', async () => {
  await passTime(30 * DAY_MS, 4);
  assert.equal((await appliance.processed(nameOf(4))).msg, 'file applied');
  await lastSearch();
  assert.ok(starts('done').includes(startOf(4)));
  assert.deepEqual(starts('abandoned')[0], startOf(5));
  const abandoned = await alert('abandoned windows');
  assert.ok(abandoned?.what_to_do.includes('wirewatch window accept newswire'));
});

test('a file for an abandoned window is held, with the command that reads it', async () => {
  const line = await drop(5);
  assert.equal(line.msg, 'file held');
  // As during a pause, what its writer drops under the same name replaces it.
  const late = newRow();
  appliance.put(nameOf(5), ndjson([late]));
  const command = `wirewatch window accept newswire ${startOf(5)}`;
  assert.equal(line.what_to_do, `To read it, run: ${command}`);
  assert.ok((await alert('held windows'))?.detail.includes(command));
  assert.equal(await appliance.detection(idOf(late)), null);

  const arrived = await followStream();
  const reset = window('reset', 'newswire', startOf(5));
  assertFailed(reset, 1, /is abandoned: only a failed window can be reset\. Run: wirewatch window accept/);
  const { file: _, ...accepted } = window('accept', 'newswire', startOf(5)).document;
  const read = { status: 'done', outcome: 'applied', reason: null };
  assert.deepEqual(accepted, { export: 'newswire', window_start: startOf(5), ...read });
  assert.deepEqual(await arrived(), [`${idOf(late)} 1 created`]);
  assert.equal(await alert('held windows'), undefined);
  assert.ok(!(await gaps()).some(({ window_start }) => window_start === startOf(5)));
});

test('window accept is only for abandoned and failed windows; of an abandoned one it needs a good file', async () => {
  const accept = (count: number) => window('accept', 'newswire', startOf(count));
  for (const [count, reason] of [
    [5, /is done: only an abandoned or failed window can be accepted/],
    [6, /neither the drop folder nor failed\/ has a file for window /],
  ] as const)
    assertFailed(accept(count), 1, reason);
  assert.equal((await appliance.dropped(nameOf(6), 'no json\n')).msg, 'file held');
  const { status, document } = accept(6);
  assert.deepEqual([status, document.outcome, document.file], [1, 'failed', `failed/${nameOf(6)}`]);
  assert.deepEqual(starts('failed'), [startOf(6)]);
  assert.equal((await appliance.processed(nameOf(6))).msg, 'file failed', 'as for any other file');
  const isServed = ({ msg, outcome }: { readonly msg: string; readonly outcome?: unknown }) =>
    msg === 'request served' && JSON.stringify(outcome).includes('failed');
  const served = await appliance.serving().logged('the request', isServed);
  assert.equal(Object(served.request).window_start, startOf(6));
});

test('window expect sets the first expected window: nothing holds a file of an earlier one any more', async () => {
  const expect = (count: number) => window('expect', 'newswire', startOf(count));
  const row = newRow();
  assert.equal((await drop(7, row)).msg, 'file held');
  assert.equal(expect(9).document.no_longer_missing, 2);
  assert.equal((await appliance.processed(nameOf(7))).msg, 'file applied');
  assert.ok(await appliance.detection(idOf(row)));
  assert.equal(await alert('held windows'), undefined);
  const { stdout } = appliance.cli(['window', 'expect', 'newswire', startOf(3)]);
  assert.equal(stdout, `Windows of newswire are expected from ${startOf(3)} on.\n`, 'earlier ones are known');

  await appliance.serving().stop();
  const never = starts('abandoned').length + starts('missing').length;
  assert.ok(never > 100);
  const expected = { export: 'newswire', expected_from: startOf(288), no_longer_missing: never };
  assert.deepEqual(expect(288).document, expected);
  assert.deepEqual([starts('abandoned'), starts('failed')], [[], [startOf(6)]]);
  await appliance.restart();
  await lastSearch();
  assert.deepEqual(starts('missing'), []);
  assertFailed(expect(288 + 144), 2, /is in the future: expected one that has started/);
});
