/** Damaged and missing parts of the log are made anew from the copy: with the same entries, or not at all. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { FIRST_GENERATION, partName } from '../../src/copy/copy-contents.ts';
import { TakenOver } from '../../src/copy/ship.ts';
import { requireHealing, requireNewest, takeLog } from '../../src/copy/source.ts';
import { entriesAfter } from '../../src/log/log-reader.ts';
import { listSegments } from '../../src/log/segment.ts';
import { findTail } from '../../src/log/torn-end.ts';
import { LogDamage } from '../../src/store/log-errors.ts';
import { setWaitsForCopy } from '../../src/store/log-mark.ts';
import { PROMOTE } from '../../src/store/role.ts';
import { createInstallation, dropRows, type Serving } from '../support/appliance.ts';
import { addEntry, shipTo } from '../support/copy-at.ts';
import { newRow } from '../support/export-files.ts';
import { flipBit } from '../support/flip-bit.ts';
import { createCopied, type History, rowsFrom } from '../support/history.ts';
import { copyOf, createMachinePair } from '../support/machine-pair.ts';
import { type MemoryPlace, memoryPlace } from '../support/memory-place.ts';
import { testFolder } from '../support/test-folder.ts';
import { until } from '../support/until.ts';

let history: History;
let place: MemoryPlace;
beforeEach(async () => {
  history = await createCopied(600);
  place = memoryPlace();
  for (let from = 0; from < 60; from += 10) history.apply(rowsFrom(from, 10));
});
afterEach(() => history.delete());

/** Brings the copy up to date, and stops. @returns what the log has: commit lines, in order */
async function shipped(): Promise<string[]> {
  history.writer().flush();
  await shipTo(place, history);
  history.stop();
  return entries();
}

function entries(): string[] {
  const ids: string[] = [];
  for (const { part } of entriesAfter(history.folder.log, null)) {
    // Unpacked, so that all of it is read.
    void part.lines();
    if (part.commit !== null) ids.push(part.commit.id);
  }
  return ids;
}

const heal = async () => takeLog(await requireNewest(place, history.folder, false), history.folder.log);

const segments = () => listSegments(history.folder.log).map(({ path }) => path);

const CASES: Readonly<Record<string, (paths: readonly string[]) => void>> = {
  'the first segment is damaged': ([path = '']) => flipBit(path),
  'a header is damaged': ([, path = '']) => flipBit(path, 20),
  'the newest segment is damaged': (paths) => flipBit(paths.at(-1) ?? '', -3),
  'several are damaged': (paths) => paths.forEach((path) => void flipBit(path)),
  'a segment in the middle is missing': ([, path = '']) => rmSync(path),
  'the first segment is missing': ([path = '']) => rmSync(path),
  'the newest segment is missing': (paths) => rmSync(paths.at(-1) ?? ''),
  'a segment is cut off': ([, path = '']) => truncateSync(path, 100),
  'all are missing': (paths) => paths.forEach((path) => void rmSync(path)),
};

for (const [name, spoil] of Object.entries(CASES))
  for (const isCompacted of [false, true])
    test(`${name}${isCompacted ? ', of a compacted log' : ''}: the log has its entries again`, async () => {
      if (isCompacted) await history.compact();
      for (let from = 100; from < 160; from += 10) history.apply(rowsFrom(from, 10));
      const expected = await shipped();
      // Without it, the database tells what this machine wrote there.
      if (isCompacted) rmSync(history.folder.copied, { recursive: true });
      assert.ok(segments().length >= 3);
      spoil(segments());
      await heal();
      assert.deepEqual(entries(), expected);
      assert.equal((await history.restart()).madeAnew, null);
    });

test('an entry that the copy lacks is not given up', async () => {
  await shipped();
  await history.restart();
  history.apply(rowsFrom(200, 10));
  history.stop();
  flipBit(segments()[1] ?? '');
  const { log } = history.folder;
  const contents = () => readdirSync(log).map((name) => readFileSync(join(log, name)));
  const before = contents();
  await assert.rejects(heal, /the copy lacks entry \d+, which this machine has/);
  assert.deepEqual(contents(), before);
});

test('one that waits for the copy is: nobody has seen it', async () => {
  history.apply(rowsFrom(90, 1), { with: (db) => setWaitsForCopy(db, true) });
  const expected = await shipped();
  await history.loseInDatabase(() => history.apply(rowsFrom(200, 10)));
  flipBit(segments()[1] ?? '');
  await heal();
  assert.deepEqual(entries(), expected);
});

for (const isNoted of [true, false])
  test(`no second writer comes of a machine that another one has replaced${isNoted ? '' : ', without its note'}`, async () => {
    const ids = await shipped();
    let { last } = findTail(history.folder.log);
    for (const operation of [{ kind: PROMOTE, machine: 'other' }, { kind: 'test' }])
      last = addEntry(place, last, operation);
    if (!isNoted) rmSync(history.folder.copied, { recursive: true });
    flipBit(segments().at(-1) ?? '', -3);
    await assert.rejects(heal, isNoted ? TakenOver : /has entries behind those that this machine has/);
    // Of a standby it is what it needs.
    const there = await requireNewest(place, history.folder, true);
    await takeLog(there, history.folder.log);
    assert.equal(entries().length, ids.length + 2);
  });

test('nor for a copy that has the newest entry, and is damaged before it', async () => {
  await shipped();
  const oldest = [...place.objects.keys()].filter((name) => name.startsWith('log/')).sort()[0] ?? '';
  const content = Buffer.from(place.objects.get(oldest) ?? '');
  content.writeUInt8(content.readUInt8(content.length >> 1) ^ 4, content.length >> 1);
  await requireHealing(place, history.folder, false);
  place.objects.set(oldest, content);
  await assert.rejects(requireHealing(place, history.folder, false), LogDamage);
});

test('an appliance heals its log at the start, and while it runs once verify has found damage', async () => {
  const copy = join(testFolder(), 'copy');
  using one = createInstallation({ WIREWATCH_COPY_TO: copy });
  const log = join(one.data, 'log');
  /** Nothing is written after that which the copy could lack. */
  const isQuiet = async (serving: Serving) => {
    await serving.logged('rest', ({ msg }) => msg === 'checked for missing windows');
    await until('the copy', () => copyOf(one)?.entries_behind === 0);
  };
  let serving = await one.serve();
  await dropRows(serving, one.drop, [newRow()]);
  await isQuiet(serving);
  await serving.stop();
  const [path = ''] = listSegments(log).map((segment) => segment.path);
  rmSync(join(one.data, 'detections.db'));
  flipBit(path);
  serving = await one.serve();
  await serving.logged('the log', ({ msg }) => msg === 'the damaged log was rebuilt from the copy');
  await isQuiet(serving);
  flipBit(path);
  // It is read again.
  const part = join(copy, partName(FIRST_GENERATION, 1));
  renameSync(part, `${copy}-part`);
  assert.equal(one.cli(['verify'], { anyStatus: true }).status, 1);
  await serving.logged('the alert', ({ alert }) => alert === 'log damaged');
  await serving.logged('the copy', ({ msg }) => msg === 'the damaged log cannot be rebuilt from the copy');
  renameSync(`${copy}-part`, part);
  await until('the end of the alert', () => !one.cli(['alert', 'list']).stdout.includes('log damaged'));
  assert.equal(one.cli(['verify']).status, 0);
  await serving.stop();
});

test('a damaged log of a machine that was replaced keeps it from starting, then as the one that was replaced', async (t) => {
  const pair = createMachinePair();
  t.after(() => pair.remove());
  const { one, other, place: copy } = pair;
  const writer = await one.serve();
  pair.drop();
  await writer.logged('the file', ({ msg }) => msg === 'file applied');
  await until('the copy', () => copyOf(one)?.entries_behind === 0);
  other.cli(['restore', copy, '--replace']);
  const standby = await other.serve();
  await writer.kill();
  other.cli(['promote']);
  const [newest = ''] = listSegments(join(one.data, 'log')).map(({ path }) => path);
  truncateSync(newest, statSync(newest).size - 60);
  const start = () => one.cli(['serve', '--port', '0'], { anyStatus: true }).stderr;
  const said = start();
  assert.match(said, /machine .* took over.* cannot be rebuilt from the copy/);
  assert.match(said, /the log in .* is damaged/);
  assert.match(start(), /another machine took over from this one/);
  await standby.stop();
});
