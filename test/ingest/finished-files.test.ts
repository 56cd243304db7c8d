/** The final folder of each file, repeated content and corrections, and that nothing is overwritten. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { utcDay } from '../../src/time.ts';
import { sharedAppliance } from '../support/appliance.ts';
import { contentOf, fileName, idOf, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { exportTrials, later } from '../support/export-trials.ts';

const { inDrop, windowStatus } = exportTrials(() => appliance);

const appliance = await sharedAppliance();

test('a good file moves to archive/, into the folder of its UTC day', async () => {
  const days = [utcDay(Date.now())];
  const name = fileName('newswire', nextWindowMs(), 'csv.gz');
  const content = contentOf('csv.gz', [newRow()]);
  const line = await appliance.dropped(name, content);
  days.push(utcDay(Date.now()));
  assert.ok(
    days.some((day) => line.destination === join('archive', day, name)),
    String(line.destination),
  );
  assert.ok(readFileSync(inDrop(String(line.destination))).equals(content));
  assert.ok(!existsSync(inDrop(name)));
  assert.deepEqual(readdirSync(inDrop('.taken')), []);
});

test('the same content for the same window changes nothing', async () => {
  const window = nextWindowMs();
  const rows = [newRow(), newRow()];
  const name = fileName('newswire', window);
  const first = await appliance.dropped(name, ndjson(rows));
  const again = await appliance.dropped(name, ndjson(rows));
  assert.equal(again.msg, 'file repeated');
  assert.equal(again.reason, `same content as file ${first.number}, which was already applied`);
  assert.equal(again.destination, String(first.destination).replace(/\.ndjson$/, `.${again.number}.ndjson`));
  for (const line of [first, again]) {
    assert.equal(readFileSync(inDrop(String(line.destination)), 'utf8'), ndjson(rows));
  }
  for (const row of rows) assert.equal((await appliance.detection(idOf(row)))?.version, 1);
  // The same content for another window is merged row by row.
  const other = await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson(rows));
  assert.deepEqual([other.msg, other.unchanged], ['file applied', 2]);
});

test('a correction is merged, and removes nothing', async () => {
  const window = nextWindowMs();
  const [kept, corrected, rescored] = [newRow(), newRow(), newRow()];
  await appliance.dropped(fileName('newswire', window), ndjson([kept, corrected, rescored]));
  const correction = ndjson([later(corrected, { strength_score: 97 }), later(rescored), newRow()]);
  const line = await appliance.dropped(fileName('newswire', window), correction);
  assert.equal(line.msg, 'file applied');
  assert.deepEqual([line.created, line.updated, line.rescored, line.unchanged], [1, 1, 1, 0]);
  assert.equal((await appliance.detection(idOf(kept)))?.version, 1);
  const changed = await appliance.detection(idOf(corrected));
  assert.deepEqual([changed?.version, changed?.strength.band], [2, 'max']);
  const same = await appliance.detection(idOf(rescored));
  assert.deepEqual([same?.version, same?.last_scored_at], [1, later(rescored).last_scored_at]);
});

test('a bad second file for a done window fails, and the window stays done', async () => {
  const window = nextWindowMs();
  const name = fileName('newswire', window);
  await appliance.dropped(name, ndjson([newRow()]));
  const line = await appliance.dropped(name, 'broken\n');
  assert.deepEqual([line.msg, line.destination], ['file failed', `failed/${name}`]);
  assert.equal(windowStatus('newswire', window), 'done');
  const good = await appliance.dropped(name, ndjson([newRow()]));
  assert.equal(good.msg, 'file applied', 'its next file must be read');
});

test('existing names are not overwritten', async () => {
  const window = nextWindowMs();
  const name = fileName('newswire', window);
  const numbered = (number: unknown) => name.replace('.ndjson', `.${number}.ndjson`);
  const good = await appliance.dropped(name, ndjson([newRow()]));
  // Files that an operator put there are kept, too.
  const next = Number(good.number) + 1;
  writeFileSync(inDrop('failed', name), 'here before');
  writeFileSync(inDrop('failed', numbered(next)), 'here before as well');
  const failed = await appliance.dropped(name, 'broken\n');
  assert.equal(failed.number, next);
  assert.equal(failed.destination, `failed/${name.replace('.ndjson', `.${next}.1.ndjson`)}`);
  assert.equal(readFileSync(inDrop('failed', name), 'utf8'), 'here before');
  assert.equal(readFileSync(inDrop('failed', numbered(next)), 'utf8'), 'here before as well');

  writeFileSync(inDrop('refused', 'taken.txt.reason.json'), '{}');
  const refused = await appliance.dropped('taken.txt', 'x');
  assert.equal(refused.destination, `refused/taken.txt.${refused.number}`);
  assert.equal(readFileSync(inDrop('refused', 'taken.txt.reason.json'), 'utf8'), '{}');
});
