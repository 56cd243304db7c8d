/** A writer that goes on writing into a file after it was read: what it adds is read, too, and an alert says so. */
import assert from 'node:assert/strict';
import { closeSync, existsSync, openSync, readFileSync, utimesSync, writeSync } from 'node:fs';
import { test } from 'node:test';
import { sharedAppliance } from '../support/appliance.ts';
import { fileName, idOf, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { exportTrials } from '../support/export-trials.ts';
import { alertsOf } from '../support/installation-state.ts';
import { until } from '../support/until.ts';

const ALERT = 'file changed after reading';
const { inDrop, windowStatus } = exportTrials(() => appliance);

const appliance = await sharedAppliance();

const alert = async () => (await alertsOf(appliance)).find(({ name }) => name === ALERT);

test('rows that a writer adds to a file in the archive become detections; the alert names the file, and closes', async () => {
  const window = nextWindowMs();
  const name = fileName('newswire', window);
  const rows = [newRow(), newRow(), newRow(), newRow()];
  const idOfRow = (index: number) => idOf(rows[index] ?? {});
  const file = openSync(inDrop(name), 'w');
  const write = (index: number) => writeSync(file, ndjson(rows.slice(index, index + 1)));
  try {
    write(0);
    assert.equal((await appliance.processed(name)).msg, 'file applied');
    assert.equal(await alert(), undefined);
    for (const index of [1, 2]) {
      write(index);
      const again = await appliance.processed(name);
      assert.deepEqual([again.msg, again.created, again.unchanged], ['file applied', 1, index]);
      assert.equal((await appliance.detection(idOfRow(index)))?.version, 1);
      assert.match(
        (await alert())?.detail ?? '',
        new RegExp(`^${name}: its writer changed it after it was read`),
      );
      assert.equal(readFileSync(inDrop(String(again.destination)), 'utf8'), ndjson(rows.slice(0, index + 1)));
    }
    // Of the same size: only its time is another.
    const text = ndjson(rows.slice(0, 2));
    writeSync(file, ndjson(rows.slice(3)), Buffer.byteLength(text));
    const again = await appliance.processed(name);
    assert.deepEqual([again.msg, again.created], ['file applied', 1]);
    assert.ok(await appliance.detection(idOfRow(3)));
  } finally {
    closeSync(file);
  }
  assert.equal(windowStatus('newswire', window), 'done');
  const replayed = appliance.cli(['ingest', 'replay', '--json']);
  assert.deepEqual(JSON.parse(replayed.stdout).unreadable, [], 'each row is in a file of the archive');
  // An hour of the program is a second.
  await appliance.restart({ WIREWATCH_HASTE: '3600' });
  assert.equal(await alert(), undefined, 'after a start nothing has changed');
  const late = openSync(inDrop(fileName('newswire', nextWindowMs())), 'w');
  try {
    const row = newRow();
    writeSync(late, ndjson([newRow()]));
    await appliance.serving().logged('the file', ({ msg }) => msg === 'file applied');
    writeSync(late, ndjson([row]));
    await until('the alert', async () => (await alert()) !== undefined);
    await until('its end', async () => (await alert()) === undefined);
    assert.ok(await appliance.detection(idOf(row)));
  } finally {
    closeSync(late);
  }
});

test('rows that were added while Wirewatch was stopped are found, too; a time alone changes nothing', async () => {
  const name = fileName('newswire', nextWindowMs());
  const row = newRow();
  const file = openSync(inDrop(name), 'w');
  writeSync(file, ndjson([newRow()]));
  const first = await appliance.processed(name);
  await appliance.serving().stop();
  writeSync(file, ndjson([row]));
  closeSync(file);
  await appliance.restart();
  const again = await appliance.processed(name);
  assert.deepEqual([again.msg, again.created], ['file applied', 1]);
  assert.ok(await appliance.detection(idOf(row)));
  assert.ok(!existsSync(inDrop(String(first.destination))) || first.destination === again.destination);
  utimesSync(inDrop(String(again.destination)), 1, 1);
  assert.equal((await appliance.processed(name)).msg, 'file applied', 'its rows are merged as any others');
  assert.equal((await appliance.detection(idOf(row)))?.version, 1);
});
