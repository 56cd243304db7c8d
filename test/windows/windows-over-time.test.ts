/**
 * Windows over time in the real program. Its clock cannot be set; instead, the stored times are moved back while it is
 * stopped.
 */

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { AlertDocument } from '../../src/health/alert-texts.ts';
import { openDatabase } from '../../src/store/database.ts';
import { DETECTIONS_SCHEMA } from '../../src/store/detections-schema.ts';
import { DAY_MS, formatMs, WINDOW_MS } from '../../src/time.ts';
import { putFile, sharedAppliance } from '../support/appliance.ts';
import { followStream } from '../support/arrivals.ts';
import { fileName, idOf, ndjson, newRow } from '../support/export-files.ts';

// The comparison with the log would find the times that are moved here.
const appliance = await sharedAppliance({ WIREWATCH_VERIFY_EVERY_HOURS: '0' });

const FIRST = Math.floor(Date.now() / WINDOW_MS) * WINDOW_MS - 2 * DAY_MS;
const at = (count: number) => FIRST + count * WINDOW_MS;
const late = newRow();

/** Moves all stored times back by `ms`. */
async function passTime(ms: number): Promise<void> {
  await appliance.serving().stop();
  const db = openDatabase(join(appliance.data, 'detections.db'), 'write', DETECTIONS_SCHEMA);
  db.prepare('UPDATE window_look SET looked_at = looked_at - ?').run(ms);
  db.prepare('UPDATE export_window SET since = since - ?').run(ms);
  db.close();
}

function starts(status: string): string[] {
  const { stdout } = appliance.cli(['window', 'list', 'newswire', '--status', status, '--json']);
  const windows: { window_start: string }[] = JSON.parse(stdout);
  return windows.map(({ window_start }) => window_start).sort();
}

function alert(name: string): AlertDocument | undefined {
  const list: AlertDocument[] = JSON.parse(appliance.cli(['alert', 'list', '--json']).stdout);
  return list.find((one) => one.name === name);
}

const lastSearch = () =>
  appliance
    .serving()
    .logged('the search for missing windows', ({ msg }) => msg === 'checked for missing windows');

async function gaps(): Promise<{ window_start: string; status: string }[]> {
  const answer = await appliance.get('/v1/me');
  return JSON.parse(await answer.text()).data_gaps.text;
}

test('a new installation has no missing windows, and every start searches for them', async () => {
  assert.match(appliance.cli(['window', 'list']).stdout, /^There are no windows yet\. /);
  // After this run's first search, nothing becomes missing until the next day or start.
  await lastSearch();
  await appliance.dropped(fileName('newswire', at(0)), ndjson([newRow()]));
  await appliance.dropped(fileName('newswire', at(3)), ndjson([newRow()]));
  assert.deepEqual(starts('missing'), []);
  assert.equal(appliance.cli(['window', 'list', '--status', 'missing']).stdout, 'No windows match.\n');
  assert.deepEqual(await gaps(), []);
});

test('a file that waits during a pause is not missing; one that has not come is', async () => {
  appliance.cli(['ingest', 'pause']);
  await passTime(DAY_MS);
  putFile(appliance.drop, fileName('newswire', at(1)), ndjson([newRow()]));
  await appliance.restart();
  await lastSearch();
  const missing = starts('missing');
  assert.deepEqual(missing.slice(0, 3), [formatMs(at(2)), formatMs(at(4)), formatMs(at(5))]);
  assert.ok(existsSync(join(appliance.drop, fileName('newswire', at(1)))));
  appliance.cli(['ingest', 'resume']);
  assert.equal((await appliance.processed(fileName('newswire', at(1)))).msg, 'file applied');
  assert.deepEqual(starts('missing'), missing);
  assert.ok(missing.length > 100 && missing.length < 144);
  const newest = Date.parse(missing.at(-1) ?? '');
  assert.ok(Date.now() - newest >= DAY_MS + 2 * WINDOW_MS, 'a day after it was due');
});

test('missing windows are in the list, in gaps, and a non-urgent alert', async () => {
  const found = alert('missing windows');
  assert.equal(found?.page_worthy, false);
  assert.ok(found?.detail.includes(formatMs(at(2))));
  const gapList = await gaps();
  assert.deepEqual(gapList.at(-1), { window_start: formatMs(at(2)), status: 'missing' });
});

test('a late file of a missing window is read when it arrives', async () => {
  const row = newRow();
  const arrived = await followStream(appliance);
  assert.equal((await appliance.dropped(fileName('newswire', at(2)), ndjson([row]))).msg, 'file applied');
  assert.deepEqual(await arrived(), [`${idOf(row)} 1 created`], 'then it must reach the stream');
  assert.ok(await appliance.detection(idOf(row)));
  assert.ok(!starts('missing').includes(formatMs(at(2))));
  assert.ok(starts('done').includes(formatMs(at(2))));
});

test('after 30 days missing windows are abandoned, but not one whose file waits', async () => {
  await passTime(30 * DAY_MS);
  const name = fileName('newswire', at(4));
  putFile(appliance.drop, name, ndjson([newRow()]));
  await appliance.restart();
  assert.equal((await appliance.processed(name)).msg, 'file applied');
  await lastSearch();
  assert.ok(starts('done').includes(formatMs(at(4))));
  assert.deepEqual(starts('abandoned')[0], formatMs(at(5)));
  assert.ok(alert('abandoned windows')?.what_to_do.includes('wirewatch window accept newswire'));
});

test('a file for an abandoned window is held, with the command that reads it', async () => {
  const name = fileName('newswire', at(5));
  const line = await appliance.dropped(name, ndjson([newRow()]));
  assert.equal(line.msg, 'file held');
  // As during a pause, what its writer drops under the same name replaces it.
  appliance.put(name, ndjson([late]));
  const command = `wirewatch window accept newswire ${formatMs(at(5))}`;
  assert.equal(line.what_to_do, `To read it, run: ${command}`);
  assert.ok(alert('held windows')?.detail.includes(command));
  assert.equal(await appliance.detection(idOf(late)), null);
});

test('window reset refuses it; window accept reads the held file', async () => {
  const start = formatMs(at(5));
  const arrived = await followStream(appliance);
  const reset = appliance.cli(['window', 'reset', 'newswire', start], { anyStatus: true });
  assert.equal(reset.status, 1);
  assert.match(
    reset.stderr,
    /is abandoned: only a failed window can be reset\. Run: wirewatch window accept/,
  );
  const accepted = JSON.parse(appliance.cli(['window', 'accept', 'newswire', start, '--json']).stdout);
  assert.deepEqual(
    { ...accepted, file: null },
    { export: 'newswire', window_start: start, status: 'done', file: null, outcome: 'applied', reason: null },
  );
  assert.deepEqual(await arrived(), [`${idOf(late)} 1 created`]);
  assert.ok(await appliance.detection(idOf(late)));
  assert.equal(alert('held windows'), undefined);
  assert.ok(!(await gaps()).some(({ window_start }) => window_start === start));
});

test('window accept is only for abandoned and failed windows; of an abandoned one it needs a file', async () => {
  const done = appliance.cli(['window', 'accept', 'newswire', formatMs(at(5))], { anyStatus: true });
  assert.equal(done.status, 1);
  assert.match(done.stderr, /is done: only an abandoned or failed window can be accepted/);
  const empty = appliance.cli(['window', 'accept', 'newswire', formatMs(at(6))], { anyStatus: true });
  assert.equal(empty.status, 1);
  assert.match(empty.stderr, /neither the drop folder nor failed\/ has a file for window /);
});

test('an accepted file that is bad makes the window failed', async () => {
  const name = fileName('newswire', at(6));
  assert.equal((await appliance.dropped(name, 'no json\n')).msg, 'file held');
  const { status, stdout } = appliance.cli(['window', 'accept', 'newswire', formatMs(at(6))], {
    anyStatus: true,
  });
  assert.equal(status, 1);
  assert.match(stdout, /failed: the file has rows or lines that do not match the export format/);
  assert.match(stdout, /The details are in (\S+)\.reason\.json in the drop folder\./);
  assert.deepEqual(starts('failed'), [formatMs(at(6))]);
  const line = await appliance.processed(name);
  assert.equal(line.msg, 'file failed', 'as for any other file');
  const served = await appliance
    .serving()
    .logged(
      'the request',
      ({ msg, outcome }) => msg === 'request served' && JSON.stringify(outcome).includes('failed'),
    );
  const { window_start } = Object(served.request);
  assert.equal(window_start, formatMs(at(6)));
});

test('window expect has the file of an earlier abandoned window read: nothing holds it any more', async () => {
  const row = newRow();
  const name = fileName('newswire', at(7));
  assert.equal((await appliance.dropped(name, ndjson([row]))).msg, 'file held');
  const args = ['window', 'expect', 'newswire', formatMs(at(9)), '--json'];
  assert.equal(JSON.parse(appliance.cli(args).stdout).no_longer_missing, 2);
  assert.equal((await appliance.processed(name)).msg, 'file applied');
  assert.ok(await appliance.detection(idOf(row)));
  assert.equal(alert('held windows'), undefined);
});

test('window expect sets the first expected window, with and without the appliance', async () => {
  const text = appliance.cli(['window', 'expect', 'newswire', formatMs(at(3))]).stdout;
  const message = `Windows of newswire are expected from ${formatMs(at(3))} on.`;
  assert.equal(text, `${message}\n`, 'earlier windows are done, failed or abandoned');
  await appliance.serving().stop();
  const never = starts('abandoned').length + starts('missing').length;
  assert.ok(never > 100);
  const expected = JSON.parse(
    appliance.cli(['window', 'expect', 'newswire', formatMs(at(288)), '--json']).stdout,
  );
  assert.deepEqual(expected, {
    export: 'newswire',
    expected_from: formatMs(at(288)),
    no_longer_missing: never,
  });
  assert.deepEqual(starts('abandoned'), []);
  assert.deepEqual(starts('failed'), [formatMs(at(6))]);
  await appliance.restart();
  await lastSearch();
  assert.deepEqual(starts('missing'), []);
  const future = formatMs(at(288 + 144));
  const early = appliance.cli(['window', 'expect', 'newswire', future], { anyStatus: true });
  assert.equal(early.status, 2);
  assert.match(early.stderr, /is in the future: expected one that has started/);
});
