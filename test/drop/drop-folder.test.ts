/** The drop folder: which names are read, what is ignored, and in which order files are read. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { DAY_MS, HOUR_MS, WINDOW_MS } from '../../src/time.ts';
import { sharedAppliance } from '../support/appliance.ts';
import { fileName, idOf, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { exportTrials } from '../support/export-trials.ts';
import type { LogLine } from '../support/program.ts';
import { testFolder } from '../support/test-folder.ts';

const { inDrop, reasonBeside, ingestAnother, windowStatus } = exportTrials(() => appliance);

const appliance = await sharedAppliance();

test('names of unfinished files are ignored', async () => {
  const window = nextWindowMs();
  const whole = fileName('newswire', window);
  const names = [`.${whole}`, `${whole}.tmp`, `${whole}.part`, `${whole}.partial`, '.hidden', 'x.tmp'];
  for (const name of names) writeFileSync(inDrop(name), ndjson([newRow()]));
  await ingestAnother();
  await ingestAnother();
  for (const name of names) assert.ok(existsSync(inDrop(name)), name);
  for (const name of names) rmSync(inDrop(name));
});

test('every other file goes to refused/ with a reason, its content unchanged', async () => {
  const names = [
    'readme.txt',
    'newswire',
    'newswire.ndjson',
    'newswire.20261101T1010Z',
    'newswire.20261101T1010Z.json',
    'newswire.20261101T1010Z.ndjson.bz2',
    'newswire.20261101T1010Z.NDJSON',
    'Newswire.20261101T1010Z.ndjson',
    'textwire.20261101T1010Z.ndjson',
    'newswire.20261101T1011Z.ndjson',
    'newswire.20261101T101000Z.ndjson',
    'newswire.20261301T1010Z.ndjson',
    'newswire.20260230T1010Z.ndjson',
    'newswire.20261101T2400Z.ndjson',
    'newswire.20261101T1010.ndjson',
    'newswire.2026-11-01T10:10Z.ndjson',
    'newswire..ndjson',
    'newswire.backfill-.ndjson',
    'newswire.backfill-Upper.ndjson',
    'newswire.backfill-a b.ndjson',
    `newswire.backfill-${'x'.repeat(65)}.ndjson`,
    'newswire.backfill.ndjson',
    ' newswire.20261101T1010Z.ndjson',
    'new\nline.csv',
    'newswire.20261101T1010Z.ndjson\n',
    'tab\tand \u001b[31mcolour',
    'größe.ndjson',
    '__proto__',
    '-rf',
    'x'.repeat(250),
    'ü'.repeat(125),
  ];
  for (const name of names) writeFileSync(inDrop(name), `content of ${name}`);
  for (const name of names) {
    const line = await appliance.processed(name);
    assert.equal(line.msg, 'file refused');
    assert.ok(!existsSync(inDrop(name)));
    assert.equal(readFileSync(inDrop(String(line.destination)), 'utf8'), `content of ${name}`);
    const reason = reasonBeside(line.destination);
    assert.equal(reason.file, name);
    assert.match(reason.reason, /expected <export>\.<window start>\.<form>/);
  }
});

test('a shortened name does not overwrite another', async () => {
  for (const end of ['a', 'b', 'c']) {
    const name = `${'x'.repeat(200)}${end}`;
    writeFileSync(inDrop(name), name);
    const line = await appliance.processed(name);
    assert.equal(readFileSync(inDrop(String(line.destination)), 'utf8'), name);
  }
});

test('a file of a window that has not ended waits; one more than a day ahead is refused', async () => {
  const now = Math.floor(Date.now() / WINDOW_MS) * WINDOW_MS;
  const early = [now + WINDOW_MS, now + 2 * WINDOW_MS, now + DAY_MS - HOUR_MS];
  for (const window of early) appliance.put(fileName('newswire', window), ndjson([newRow()]));
  await ingestAnother();
  await ingestAnother();
  for (const window of early) {
    assert.ok(existsSync(inDrop(fileName('newswire', window))));
    rmSync(inDrop(fileName('newswire', window)));
  }
  const ahead = await appliance.dropped(
    fileName('newswire', now + DAY_MS + 2 * WINDOW_MS),
    ndjson([newRow()]),
  );
  assert.equal(ahead.msg, 'file refused');
  const { reason, next } = reasonBeside(ahead.destination);
  assert.match(reason, /more than a day in the future/);
  assert.match(next, /the problem given as the reason, then drop the file again/);
  assert.doesNotMatch(next, /name/, 'the name must be valid');
});

test('links, pipes and folders are ignored, whatever their name', async () => {
  const outside = testFolder();
  const target = join(outside, 'target.ndjson');
  const row = newRow();
  writeFileSync(target, ndjson([row]));
  mkdirSync(join(outside, 'folder'));
  const [toFile, toNothing, toFolder, folder, pipe] = Array.from({ length: 5 }, () =>
    inDrop(fileName('newswire', nextWindowMs())),
  );
  assert.ok(toFile && toNothing && toFolder && folder && pipe);
  symlinkSync(target, toFile);
  symlinkSync(join(outside, 'nothing'), toNothing);
  symlinkSync(join(outside, 'folder'), toFolder);
  mkdirSync(folder);
  assert.equal(spawnSync('mkfifo', [pipe]).status, 0);
  symlinkSync('/', inDrop('root'));
  await ingestAnother();
  await ingestAnother();
  assert.equal(readlinkSync(toFile), target);
  assert.equal(readFileSync(target, 'utf8'), ndjson([row]));
  assert.ok(lstatSync(toNothing).isSymbolicLink() && lstatSync(toFolder).isSymbolicLink());
  assert.ok(lstatSync(folder).isDirectory() && lstatSync(pipe).isFIFO());
  assert.equal(await appliance.detection(idOf(row)), null);
  const alone = appliance.serving().log.filter(({ msg }) => msg.startsWith('ignored in the drop folder'));
  assert.equal(alone.length, 6, 'each must be logged once');
  for (const path of [toFile, toNothing, toFolder, folder, pipe, inDrop('root')])
    rmSync(path, { recursive: true });
});

test('a name that is not UTF-8 is ignored', async () => {
  const path = Buffer.concat([
    Buffer.from(inDrop('newswire.')),
    Buffer.from([0xff, 0xfe]),
    Buffer.from('.ndjson'),
  ]);
  writeFileSync(path, 'x');
  await ingestAnother();
  await ingestAnother();
  assert.ok(existsSync(path));
  rmSync(path);
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

test('files of an export that is switched off are refused', async () => {
  await appliance.restart({ WIREWATCH_EXPORTS_IMAGEWIRE_ENABLED: 'false' });
  const window = nextWindowMs();
  for (const name of [fileName('imagewire', window), 'imagewire.backfill-off.ndjson']) {
    const line = await appliance.dropped(name, ndjson([newRow()]));
    assert.equal(line.msg, 'file refused');
    assert.match(reasonBeside(line.destination).reason, /imagewire is switched off/);
  }
  assert.equal(windowStatus('imagewire', window), undefined);
  await ingestAnother();
});

test('files dropped during a stop are read at the next start', async () => {
  await appliance.serving().stop();
  const name = fileName('newswire', nextWindowMs());
  appliance.put(name, ndjson([newRow()]));
  await appliance.restart();
  assert.equal((await appliance.processed(name)).msg, 'file applied');
});

/** Makes a link where a folder was a moment ago; an empty folder that the appliance made again in that moment goes. */
function linkInPlaceOf(folder: string, elsewhere: string): void {
  for (let tries = 0; ; tries++) {
    try {
      symlinkSync(elsewhere, folder);
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || tries === 100) throw error;
      rmSync(folder, { recursive: true, force: true });
    }
  }
}

test('a Wirewatch folder that becomes a link is not followed: nothing is read until it is a folder again', async () => {
  for (const own of ['archive', 'failed', 'refused', '.taken']) {
    const elsewhere = mkdtempSync(join(tmpdir(), 'wirewatch-outside-'));
    const good = fileName('newswire', nextWindowMs());
    const bad = fileName('newswire', nextWindowMs());
    const alone = `no-export-${own}`;
    const names = [good, bad, alone];
    const seen = appliance.serving().log.length;
    const isUnusable = ({ msg }: LogLine) => msg.startsWith('cannot use the drop folder');
    const isNew = (line: LogLine) => appliance.serving().log.indexOf(line) >= seen;
    renameSync(inDrop(own), inDrop('.away'));
    try {
      linkInPlaceOf(inDrop(own), elsewhere);
      for (const name of names) appliance.put(name, name === good ? ndjson([newRow()]) : 'no rows\n');
      await appliance
        .serving()
        .logged('the report of the unusable name', (line) => isUnusable(line) && isNew(line));
      assert.equal((await fetch(`${appliance.serving().url}/v1/health`)).status, 503);
      assert.deepEqual(readdirSync(elsewhere), []);
    } finally {
      rmSync(inDrop(own));
      renameSync(inDrop('.away'), inDrop(own));
    }
    const outcomes = [];
    for (const name of names) outcomes.push((await appliance.processed(name)).msg);
    assert.deepEqual(outcomes, ['file applied', 'file failed', 'file refused'], own);
    assert.deepEqual(readdirSync(elsewhere), []);
    rmSync(elsewhere, { recursive: true });
  }
});
