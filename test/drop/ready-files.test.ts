/** When a dropped file is ready, and that no file is taken that changed since the scan. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { beforeEach, test } from 'node:test';
import fc from 'fast-check';
import { type DropFolder, dropFolder, shortName } from '../../src/drop/drop-folder.ts';
import { FORMS, parseFileName } from '../../src/exports/file-name.ts';
import { openContent } from '../../src/exports/unpacking.ts';
import { DAY_MS, formatWindowStart, WINDOW_MS } from '../../src/time.ts';
import { type DiskCall, diskCallsOf, recordDiskCalls } from '../support/disk-calls.ts';
import { forAll } from '../support/for-all.ts';
import { testFolder } from '../support/test-folder.ts';
import { words } from '../support/words.ts';

const NOW_MS = Date.parse('2026-11-21T12:00:00Z');
const NAME = 'newswire.20261121T1010Z.ndjson';

let root = '';
let monotonicMs = 0;
let drop: DropFolder;

beforeEach(() => {
  root = testFolder();
  monotonicMs = 1000;
  drop = dropFolder(root, { quiet_ms: 500, truncated_seconds: 60 }, () => monotonicMs);
  drop.prepare();
  taken = join(root, drop.takenPath(7, NAME));
});

const path = (name = NAME) => join(root, name);
/** Of the file with ingest number 7. */
let taken = '';
const scan = (nowMs = NOW_MS) => drop.scan(nowMs, { isRecorded: () => false, heldBy: () => null });

const readyNames = () => scan().ready.map(({ name }) => name);

/** Scans twice, with enough time between. @returns the only file that is ready then */
function ready() {
  scan();
  monotonicMs += 500;
  const [waiting, ...others] = scan().ready;
  assert.ok(waiting && others.length === 0);
  return waiting;
}

test('a file is ready after two equal scans, quiet_ms apart', async () => {
  fs.writeFileSync(path(), 'x');
  assert.deepEqual([scan().ready.length, scan().nextScanMs], [0, 500]);
  monotonicMs += 499;
  assert.deepEqual([scan().ready.length, scan().nextScanMs], [0, 1]);
  monotonicMs += 1;
  assert.deepEqual(readyNames(), [NAME]);
});

test('any change restarts the wait, even with the same size and time', async () => {
  const replace = () => {
    fs.writeFileSync(path('other.part'), fs.readFileSync(path()));
    fs.utimesSync(path('other.part'), 1, 1);
    fs.renameSync(path('other.part'), path());
  };
  const changes = [() => fs.appendFileSync(path(), 'more'), () => fs.utimesSync(path(), 1, 1), replace];
  fs.writeFileSync(path(), 'x');
  for (const change of changes) {
    scan();
    monotonicMs += 499;
    change();
    scan();
    monotonicMs += 499;
    assert.equal(scan().ready.length, 0);
    monotonicMs += 1;
    assert.equal(scan().ready.length, 1);
  }
});

test('a file changed, replaced or removed since the scan is neither taken nor read', async () => {
  const changes = [
    () => fs.appendFileSync(path(), 'more'),
    () => {
      fs.writeFileSync(path('other.part'), 'y');
      fs.renameSync(path('other.part'), path());
    },
    () => fs.unlinkSync(path()),
    () => {
      fs.unlinkSync(path());
      fs.symlinkSync('/etc/hostname', path());
    },
    () => {
      fs.unlinkSync(path());
      assert.equal(spawnSync('mkfifo', [path()]).status, 0);
    },
  ];
  for (const change of changes) {
    fs.writeFileSync(path(), 'x');
    const waiting = ready();
    change();
    const isThere = fs.existsSync(path());
    assert.equal(drop.take(waiting, 7), false);
    assert.equal(fs.existsSync(path()), isThere, 'the file must stay where it is');
    assert.ok(!fs.existsSync(taken));
    await assert.rejects(openContent(drop.source(waiting), 'ndjson'), { code: /^(ESTALE|ENOENT|ELOOP)$/ });
    fs.rmSync(path(), { force: true });
  }
});

test('a taken file is in .taken, and is found there until it is processed', async () => {
  fs.writeFileSync(path(), 'x');
  assert.equal(drop.take(ready(), 7), true);
  assert.ok(!fs.existsSync(path()));
  const again = ready();
  assert.deepEqual([again.name, again.path], [NAME, drop.takenPath(7, NAME)]);
  assert.deepEqual(drop.scan(NOW_MS, { isRecorded: (number) => number === 7, heldBy: () => null }).ready, []);
});

test('notes of skipped rows are beside the taken file, and go with the next reading', () => {
  fs.writeFileSync(path(), 'x');
  const waiting = ready();
  fs.appendFileSync(path(), 'more');
  assert.equal(drop.take(waiting, 6, 'of a file that changed'), false);
  assert.equal(drop.take(ready(), 7, 'of a transaction that failed'), true);
  assert.equal(drop.take(ready(), 8, 'notes'), true);
  assert.deepEqual(fs.readdirSync(join(root, '.taken')).sort(), [`8.${NAME}`, 'skipped-8.ndjson']);
  assert.equal(fs.readFileSync(join(root, drop.skippedPath(8)), 'utf8'), 'notes');
});

test('a taken file is on the disk, with its new name, and is opened before it is moved', async () => {
  fs.writeFileSync(path(), 'x');
  const waiting = ready();
  const calls = await diskCallsOf(() => drop.take(waiting, 7));
  const moved = calls.findIndex((call) => 'to' in call && call.to === taken);
  const synced = (some: DiskCall[]) => some.flatMap((call) => (call.call === 'sync' ? [call.path] : []));
  assert.ok(moved >= 0);
  assert.deepEqual(synced(calls.slice(0, moved)), [path()]);
  assert.deepEqual(synced(calls.slice(moved)), [join(root, '.taken')]);
});

test('a file written to while it is taken is scanned again', async () => {
  fs.writeFileSync(path(), 'x');
  const waiting = ready();
  // The writer still has the file open, and continues.
  using _ = recordDiskCalls((call) => {
    if (call.call === 'rename') fs.appendFileSync(call.to, 'more');
  });
  assert.equal(drop.take(waiting, 7), false);
  assert.equal(fs.readFileSync(taken, 'utf8'), 'xmore');
});

test('a truncated file waits, unless it changes', async () => {
  const name = `${NAME}.gz`;
  fs.writeFileSync(path(name), 'x');
  const first = ready();
  assert.ok(first.kind === 'export' && !first.isFinal);
  drop.noteTruncated(first);
  assert.deepEqual([scan().ready.length, scan().nextScanMs], [0, 59_500]);
  fs.appendFileSync(path(name), 'more');
  const second = ready();
  assert.ok(second.kind === 'export' && !second.isFinal);
  // A result from before a change does not apply to the changed file.
  drop.noteTruncated(first);
  assert.equal(scan().ready.length, 1);
  drop.noteTruncated(second);
  monotonicMs += 59_500;
  const [third] = scan().ready;
  assert.ok(third?.kind === 'export' && third.isFinal);
});

test('an empty uncompressed file waits as long; a compressed one does not', async () => {
  fs.writeFileSync(path(), '');
  fs.writeFileSync(path('newswire.20261121T1000Z.csv.gz'), '');
  scan();
  monotonicMs += 500;
  assert.deepEqual(readyNames(), ['newswire.20261121T1000Z.csv.gz']);
  monotonicMs += 59_500;
  assert.equal(scan().ready.length, 2);
});

test('ready files are in the order of windows, then backfills, then refused ones', async () => {
  const names = words(`newswire.20261121T0950Z.csv imagewire.20261121T1010Z.csv newswire.20261121T1010Z.csv
    imagewire.backfill-a.csv newswire.backfill-a.csv odd`);
  for (const name of names.toReversed()) fs.writeFileSync(path(name), 'x');
  scan();
  monotonicMs += 500;
  assert.deepEqual(readyNames(), names);
});

test('thousands of held files keep no other file waiting', async () => {
  const nameOf = (_: unknown, index: number) =>
    `imagewire.${formatWindowStart(NOW_MS - (index + 1000) * WINDOW_MS)}.ndjson`;
  // As many as one scan looks at.
  const held = Array.from({ length: 20_000 }, nameOf);
  for (const name of [...held, NAME]) fs.writeFileSync(path(name), 'x');
  const known: Parameters<typeof drop.scan>[1] = {
    isRecorded: () => false,
    heldBy: ({ export: exportName }) => (exportName === 'imagewire' ? 'abandoned' : null),
  };
  drop.scan(NOW_MS, known);
  monotonicMs += 500;
  const found = drop.scan(NOW_MS, known);
  const names = found.ready.map(({ name }) => name);
  assert.deepEqual(names, [NAME]);
  assert.deepEqual(found.held.map(({ file }) => file.name).sort(), held.sort());
});

test('a file that waits for the end of its window is scanned then; one more than a day ahead is refused', async () => {
  fs.writeFileSync(path('newswire.20261121T1200Z.csv'), 'x');
  scan(NOW_MS + 1000);
  monotonicMs += 500;
  assert.equal(scan(NOW_MS + 1000).nextScanMs, WINDOW_MS - 1000);
  assert.equal(scan(NOW_MS + WINDOW_MS - 1).ready.length, 0);
  assert.equal(scan(NOW_MS + WINDOW_MS).ready.length, 1);
  const ahead = [scan(NOW_MS - DAY_MS), scan(NOW_MS - DAY_MS - 1)].flatMap(({ ready }) => ready);
  const kinds = ahead.map(({ kind }) => kind);
  assert.deepEqual(kinds, ['refused'], 'if it is more than a day ahead');
});

test('the label of a backfill has 1 to 64 of a-z 0-9 . _ -', () => {
  for (const label of ['a', 'x'.repeat(64), '2026.10_part-1', 'a.part', '-', 'x.csv'])
    for (const form of FORMS) {
      const name = `newswire.backfill-${label}.${form}`;
      const file = { name, export: 'newswire', window_start: null, label } as const;
      assert.deepEqual(parseFileName(name), { kind: 'export', file });
    }
});

test('any name is parsed, and shortened to leave room for number and note', () => {
  forAll(100, fc.string({ unit: 'binary', maxLength: 300 }), (name) => {
    const parsed = parseFileName(name);
    assert.ok(['export', 'unfinished', 'refused'].includes(parsed.kind));
    const short = shortName(name);
    assert.ok(Buffer.byteLength(short) <= 180);
    if (name.isWellFormed()) assert.ok(name.startsWith(short));
  });
});
