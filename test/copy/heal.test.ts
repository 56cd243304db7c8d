/** Damaged and missing parts of the log are made anew from the copy: with the same entries, or not at all. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { requireNewest, takeLog } from '../../src/copy/source.ts';
import { entriesAfter } from '../../src/log/log-reader.ts';
import { listSegments } from '../../src/log/segment.ts';
import { createInstallation, dropRows, type Serving } from '../support/appliance.ts';
import { shipTo } from '../support/copy-at.ts';
import { newRow } from '../support/export-files.ts';
import { flipBit } from '../support/flip-bit.ts';
import { createCopied, type History, rowsFrom } from '../support/history.ts';
import { copyOf } from '../support/machine-pair.ts';
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
    void part.lines;
    if (part.commit !== null) ids.push(part.commit.id);
  }
  return ids;
}

const heal = async () => takeLog(place, await requireNewest(place, history.folder), history.folder.log);

const segments = () => listSegments(history.folder.log).map(({ path }) => path);

const CASES: Readonly<Record<string, (paths: readonly string[]) => void>> = {
  'the first segment is damaged': ([path = '']) => flipBit(path),
  'a header is damaged': ([, path = '']) => flipBit(path, 20),
  'the newest segment is damaged': (paths) => flipBit(paths.at(-1) ?? '', -3),
  'several are damaged': (paths) => {
    for (const path of paths) flipBit(path);
  },
  'a segment in the middle is missing': ([, path = '']) => rmSync(path),
  'the first segment is missing': ([path = '']) => rmSync(path),
  'the newest segment is missing': (paths) => rmSync(paths.at(-1) ?? ''),
  'a segment is cut off': ([, path = '']) => truncateSync(path, 100),
  'all are missing': (paths) => {
    for (const path of paths) rmSync(path);
  },
};

for (const [name, spoil] of Object.entries(CASES))
  for (const isCompacted of [false, true])
    test(`${name}${isCompacted ? ', of a compacted log' : ''}: the log has its entries again`, async () => {
      if (isCompacted) await history.compact();
      for (let from = 100; from < 160; from += 10) history.apply(rowsFrom(from, 10));
      const expected = await shipped();
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

test('an appliance heals its log at the start, and while it runs once verify has found damage', async () => {
  using one = createInstallation({ WIREWATCH_COPY_TO: join(testFolder(), 'copy') });
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
  assert.equal(one.cli(['verify'], { anyStatus: true }).status, 1);
  await serving.logged('the alert', ({ alert }) => alert === 'log damaged');
  await until('the end of the alert', () => !one.cli(['alert', 'list']).stdout.includes('log damaged'));
  assert.equal(one.cli(['verify']).status, 0);
  await serving.stop();
});
