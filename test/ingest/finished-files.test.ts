/**
 * What becomes of dropped files: which names are read or ignored, the final folder of each, repeated content and corrections, and that nothing is overwritten. What a
 * writer adds to a file after it was read is read, too, and an alert says so.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { formatMs, utcDay } from '../../src/time.ts';
import { sharedAppliance } from '../support/appliance.ts';
import { contentOf, fileName, idOf, ndjson, newRow, newRows, nextWindowMs } from '../support/export-files.ts';
import { exportTrials, later } from '../support/export-trials.ts';
import { alertsOf } from '../support/installation-state.ts';
import { follow, readerOf } from '../support/lab.ts';
import { testFolder } from '../support/test-folder.ts';
import { until } from '../support/until.ts';
import { words } from '../support/words.ts';

const ALERT = 'file changed after reading';
const { inDrop, reasonBeside, ingestAnother, window, windowStatus } = exportTrials(() => appliance);

const appliance = await sharedAppliance();

const alert = async () => (await alertsOf(appliance)).find(({ name }) => name === ALERT);

test('a good file moves to archive/, into the folder of its UTC day', async () => {
  const days = [utcDay(Date.now())];
  const name = fileName('newswire', nextWindowMs(), 'csv.gz');
  const content = contentOf('csv.gz', [newRow()]);
  const line = await appliance.dropped(name, content);
  days.push(utcDay(Date.now()));
  const isOfDay = days.some((day) => line.destination === join('archive', day, name));
  assert.ok(isOfDay, String(line.destination));
  assert.ok(fs.readFileSync(inDrop(String(line.destination))).equals(content));
  assert.ok(!fs.existsSync(inDrop(name)));
  assert.deepEqual(fs.readdirSync(inDrop('.taken')), []);
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
  for (const { destination } of [first, again])
    assert.equal(fs.readFileSync(inDrop(String(destination)), 'utf8'), ndjson(rows));
  for (const row of rows) assert.equal((await appliance.detection(idOf(row)))?.version, 1);
  // The same content for another window is merged row by row.
  const other = await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson(rows));
  assert.deepEqual([other.msg, other.unchanged], ['file applied', 2]);
});

test('a correction is merged, and removes nothing', async () => {
  const window = nextWindowMs();
  const [kept, corrected, rescored] = [newRow(), newRow(), newRow()];
  const start = `since=${new Date().toISOString()}`;
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
  const { rows } = await follow(readerOf(appliance.serving().url, appliance.key), start);
  // A new score that changes nothing else is not announced.
  const [announced, ...others] = rows.filter(({ id }) => id === idOf(rescored));
  assert.deepEqual([announced?.version, announced?.last_scored_at], [1, rescored.last_scored_at]);
  assert.deepEqual(others, []);
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
  fs.writeFileSync(inDrop('failed', name), 'here before');
  fs.writeFileSync(inDrop('failed', numbered(next)), 'here before as well');
  const failed = await appliance.dropped(name, 'broken\n');
  assert.equal(failed.number, next);
  assert.equal(failed.destination, `failed/${name.replace('.ndjson', `.${next}.1.ndjson`)}`);
  assert.equal(fs.readFileSync(inDrop('failed', name), 'utf8'), 'here before');
  assert.equal(fs.readFileSync(inDrop('failed', numbered(next)), 'utf8'), 'here before as well');

  fs.writeFileSync(inDrop('refused', 'taken.txt.reason.json'), '{}');
  const refused = await appliance.dropped('taken.txt', 'x');
  assert.equal(refused.destination, `refused/taken.txt.${refused.number}`);
  assert.equal(fs.readFileSync(inDrop('refused', 'taken.txt.reason.json'), 'utf8'), '{}');
});

test('rows that a writer adds to a file in the archive become detections; the alert names the file, and closes', async () => {
  const window = nextWindowMs();
  const name = fileName('newswire', window);
  const rows = newRows(4);
  const idOfRow = (index: number) => idOf(rows[index] ?? {});
  const file = fs.openSync(inDrop(name), 'w');
  const write = (index: number) => fs.writeSync(file, ndjson(rows.slice(index, index + 1)));
  try {
    write(0);
    assert.equal((await appliance.processed(name)).msg, 'file applied');
    assert.equal(await alert(), undefined);
    for (const index of [1, 2]) {
      write(index);
      const again = await appliance.processed(name);
      assert.deepEqual([again.msg, again.created, again.unchanged], ['file applied', 1, index]);
      assert.equal((await appliance.detection(idOfRow(index)))?.version, 1);
      assert.ok((await alert())?.detail.startsWith(`${name}: its writer changed it after it was read`));
      const archived = fs.readFileSync(inDrop(String(again.destination)), 'utf8');
      assert.equal(archived, ndjson(rows.slice(0, index + 1)));
    }
    // Of the same size: only its time is another.
    const text = ndjson(rows.slice(0, 2));
    fs.writeSync(file, ndjson(rows.slice(3)), Buffer.byteLength(text));
    const again = await appliance.processed(name);
    assert.deepEqual([again.msg, again.created], ['file applied', 1]);
    assert.ok(await appliance.detection(idOfRow(3)));
  } finally {
    fs.closeSync(file);
  }
  assert.equal(windowStatus('newswire', window), 'done');
  const replayed = appliance.cli(['ingest', 'replay', '--json']);
  assert.deepEqual(JSON.parse(replayed.stdout).unreadable, [], 'each row is in a file of the archive');
  // An hour of the program is a second.
  await appliance.restart({ WIREWATCH_HASTE: '3600' });
  assert.equal(await alert(), undefined, 'after a start nothing has changed');
  const late = fs.openSync(inDrop(fileName('newswire', nextWindowMs())), 'w');
  try {
    const row = newRow();
    fs.writeSync(late, ndjson([newRow()]));
    await appliance.logged(/^file applied$/);
    fs.writeSync(late, ndjson([row]));
    await until('the alert', async () => (await alert()) !== undefined);
    await until('its end', async () => (await alert()) === undefined);
    assert.ok(await appliance.detection(idOf(row)));
  } finally {
    fs.closeSync(late);
  }
});

test('rows that were added while Wirewatch was stopped are found, too; a time alone changes nothing', async () => {
  const name = fileName('newswire', nextWindowMs());
  const row = newRow();
  const file = fs.openSync(inDrop(name), 'w');
  fs.writeSync(file, ndjson([newRow()]));
  const first = await appliance.processed(name);
  await appliance.serving().stop();
  fs.writeSync(file, ndjson([row]));
  fs.closeSync(file);
  await appliance.restart();
  const again = await appliance.processed(name);
  assert.deepEqual([again.msg, again.created], ['file applied', 1]);
  assert.ok(await appliance.detection(idOf(row)));
  assert.ok(!fs.existsSync(inDrop(String(first.destination))) || first.destination === again.destination);
  fs.utimesSync(inDrop(String(again.destination)), 1, 1);
  assert.equal((await appliance.processed(name)).msg, 'file applied', 'its rows are merged as any others');
  assert.equal((await appliance.detection(idOf(row)))?.version, 1);
});

/** Files of the drop folder must be there after further scans; then they are removed. */
async function assertLeft(names: readonly string[]): Promise<void> {
  await ingestAnother();
  await ingestAnother();
  for (const name of names) {
    assert.ok(fs.lstatSync(inDrop(name), { throwIfNoEntry: false }), name);
    fs.rmSync(inDrop(name), { recursive: true });
  }
}

test('names of unfinished files are ignored', async () => {
  const whole = fileName('newswire', nextWindowMs());
  const names = [`.${whole}`, `${whole}.tmp`, `${whole}.part`, `${whole}.partial`, '.hidden', 'x.tmp'];
  for (const name of names) fs.writeFileSync(inDrop(name), ndjson([newRow()]));
  await assertLeft(names);
});

const REFUSED = [
  ...words(`readme.txt newswire newswire.ndjson newswire.20261101T1010Z newswire.20261101T1010Z.json
    newswire.20261101T1010Z.ndjson.bz2 newswire.20261101T1010Z.NDJSON Newswire.20261101T1010Z.ndjson
    textwire.20261101T1010Z.ndjson newswire.20261101T1011Z.ndjson newswire.20261101T101000Z.ndjson
    newswire.20261301T1010Z.ndjson newswire.20260230T1010Z.ndjson newswire.20261101T2400Z.ndjson
    newswire.20261101T1010.ndjson newswire.2026-11-01T10:10Z.ndjson newswire..ndjson
    newswire.backfill-.ndjson newswire.backfill-Upper.ndjson newswire.backfill.ndjson größe.ndjson
    __proto__ -rf`),
  `newswire.backfill-${'x'.repeat(65)}.ndjson`,
  ...['newswire.backfill-a b.ndjson', ' newswire.20261101T1010Z.ndjson', 'newswire.20261101T1010Z.ndjson\n'],
  ...['new\nline.csv', 'tab\tand \u001b[31mcolour', 'ü'.repeat(125)],
  // They are shortened, and none overwrites another.
  ...['a', 'b', 'c'].map((end) => `${'x'.repeat(249)}${end}`),
];

test('every other file goes to refused/ with a reason, its content unchanged', async () => {
  for (const name of REFUSED) fs.writeFileSync(inDrop(name), `content of ${name}`);
  for (const name of REFUSED) {
    const line = await appliance.processed(name);
    assert.equal(line.msg, 'file refused');
    assert.ok(!fs.existsSync(inDrop(name)));
    assert.equal(fs.readFileSync(inDrop(String(line.destination)), 'utf8'), `content of ${name}`);
    const { file, reason } = reasonBeside(line.destination);
    assert.equal(file, name);
    assert.match(reason, /expected <export>\.<window start>\.<form>/);
  }
});

test('links, pipes and folders are ignored, whatever their name, and names that are not UTF-8', async () => {
  const outside = testFolder();
  const target = join(outside, 'target.ndjson');
  const row = newRow();
  fs.writeFileSync(target, ndjson([row]));
  const names = Array.from({ length: 5 }, () => fileName('newswire', nextWindowMs()));
  const [toFile = '', toNothing = '', toFolder = '', folder = '', pipe = ''] = names;
  fs.symlinkSync(target, inDrop(toFile));
  fs.symlinkSync(join(outside, 'nothing'), inDrop(toNothing));
  fs.symlinkSync(outside, inDrop(toFolder));
  fs.mkdirSync(inDrop(folder));
  assert.equal(spawnSync('mkfifo', [inDrop(pipe)]).status, 0);
  fs.symlinkSync('/', inDrop('root'));
  const strange = Buffer.concat([Buffer.from(inDrop('newswire.')), Buffer.from('fffe2e637376', 'hex')]);
  fs.writeFileSync(strange, 'x');
  await assertLeft([...names, 'root']);
  assert.ok(fs.existsSync(strange));
  fs.rmSync(strange);
  assert.equal(fs.readFileSync(target, 'utf8'), ndjson([row]));
  assert.equal(await appliance.detection(idOf(row)), null);
  const { log } = appliance.serving();
  const alone = log.filter(({ msg }) => msg.startsWith('ignored in the drop folder'));
  assert.equal(alone.length, 7, 'each must be logged once');
});

test('files that were put away are read again, also if a backup keeps hard links to them', async () => {
  const good = await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));
  const windowMs = nextWindowMs();
  const bad = await appliance.dropped(fileName('newswire', windowMs), 'broken');
  for (const path of [String(good.destination), String(bad.destination)])
    fs.linkSync(inDrop(path), join(appliance.data, `backup of ${basename(path)}`));
  assert.deepEqual(JSON.parse(appliance.cli(['ingest', 'replay', '--json']).stdout).unreadable, []);
  const { outcome } = window('reset', 'newswire', formatMs(windowMs)).document;
  assert.equal(outcome, 'failed');
});
