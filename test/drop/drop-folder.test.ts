/** The drop folder: which names are read, what is ignored, and in which order files are read. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { formatMs } from '../../src/time.ts';
import { sharedAppliance } from '../support/appliance.ts';
import { fileName, idOf, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { exportTrials } from '../support/export-trials.ts';
import { testFolder } from '../support/test-folder.ts';
import { words } from '../support/words.ts';

const { inDrop, reasonBeside, ingestAnother, window } = exportTrials(() => appliance);

const appliance = await sharedAppliance();

/** Files of the drop folder must be there after further scans; then they are removed. */
async function assertLeft(names: readonly string[]): Promise<void> {
  await ingestAnother();
  await ingestAnother();
  for (const name of names) {
    assert.ok(lstatSync(inDrop(name), { throwIfNoEntry: false }), name);
    rmSync(inDrop(name), { recursive: true });
  }
}

test('names of unfinished files are ignored', async () => {
  const whole = fileName('newswire', nextWindowMs());
  const names = [`.${whole}`, `${whole}.tmp`, `${whole}.part`, `${whole}.partial`, '.hidden', 'x.tmp'];
  for (const name of names) writeFileSync(inDrop(name), ndjson([newRow()]));
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
  for (const name of REFUSED) writeFileSync(inDrop(name), `content of ${name}`);
  for (const name of REFUSED) {
    const line = await appliance.processed(name);
    assert.equal(line.msg, 'file refused');
    assert.ok(!existsSync(inDrop(name)));
    assert.equal(readFileSync(inDrop(String(line.destination)), 'utf8'), `content of ${name}`);
    const { file, reason } = reasonBeside(line.destination);
    assert.equal(file, name);
    assert.match(reason, /expected <export>\.<window start>\.<form>/);
  }
});

test('links, pipes and folders are ignored, whatever their name, and names that are not UTF-8', async () => {
  const outside = testFolder();
  const target = join(outside, 'target.ndjson');
  const row = newRow();
  writeFileSync(target, ndjson([row]));
  const names = Array.from({ length: 5 }, () => fileName('newswire', nextWindowMs()));
  const [toFile = '', toNothing = '', toFolder = '', folder = '', pipe = ''] = names;
  symlinkSync(target, inDrop(toFile));
  symlinkSync(join(outside, 'nothing'), inDrop(toNothing));
  symlinkSync(outside, inDrop(toFolder));
  mkdirSync(inDrop(folder));
  assert.equal(spawnSync('mkfifo', [inDrop(pipe)]).status, 0);
  symlinkSync('/', inDrop('root'));
  const strange = Buffer.concat([Buffer.from(inDrop('newswire.')), Buffer.from('fffe2e637376', 'hex')]);
  writeFileSync(strange, 'x');
  await assertLeft([...names, 'root']);
  assert.ok(existsSync(strange));
  rmSync(strange);
  assert.equal(readFileSync(target, 'utf8'), ndjson([row]));
  assert.equal(await appliance.detection(idOf(row)), null);
  const { log } = appliance.serving();
  const alone = log.filter(({ msg }) => msg.startsWith('ignored in the drop folder'));
  assert.equal(alone.length, 7, 'each must be logged once');
});

test('files that were put away are read again, also if a backup keeps hard links to them', async () => {
  const good = await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));
  const windowMs = nextWindowMs();
  const bad = await appliance.dropped(fileName('newswire', windowMs), 'broken');
  for (const { destination } of [good, bad])
    linkSync(inDrop(String(destination)), join(appliance.data, `backup of ${basename(String(destination))}`));
  assert.deepEqual(JSON.parse(appliance.cli(['ingest', 'replay', '--json']).stdout).unreadable, []);
  const { outcome } = window('reset', 'newswire', formatMs(windowMs)).document;
  assert.equal(outcome, 'failed');
});

test('a pause leaves dropped files where they are, also across a restart', async () => {
  appliance.cli(['ingest', 'pause']);
  const name = fileName('newswire', nextWindowMs());
  const row = newRow();
  appliance.put(name, ndjson([row]));
  await appliance.restart();
  const { waiting_files } = JSON.parse(appliance.cli(['ingest', 'status', '--json']).stdout);
  assert.deepEqual(waiting_files, [name]);
  appliance.cli(['ingest', 'resume']);
  assert.equal((await appliance.processed(name)).msg, 'file applied');
  assert.ok(await appliance.detection(idOf(row)));
});
