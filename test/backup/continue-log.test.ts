/** The log of a backup is continued with what follows on its end in another log, entry by entry, and nothing else. */
import assert from 'node:assert/strict';
import { cpSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { continueLog } from '../../src/backup/continue-log.ts';
import { findTail } from '../../src/history/log-reader.ts';
import { LogWriter } from '../../src/history/log-writer.ts';
import { target } from '../support/backup.ts';
import { addEntries, makeLog, rewrite } from '../support/small-log.ts';

let count = 0;
const newFolder = () => {
  count += 1;
  return target(`continue-${count}`);
};
const copyOf = (folder: string) => {
  const copy = newFolder();
  cpSync(folder, copy, { recursive: true });
  return copy;
};
const lastOf = (folder: string) => findTail(folder).last ?? assert.fail();
const pathOf = (folder: string, index = -1) => join(folder, readdirSync(folder).at(index) ?? '');
const bytesOf = (folder: string, index = -1) => readFileSync(pathOf(folder, index));
const add = (folder: string, entries: number, line = `{"row":"${Math.random()}"}\n`) => {
  const writer = new LogWriter({ folder, program: '1' }, findTail(folder));
  for (let added = 0; added < entries; added += 1) {
    writer.append(line);
    writer.commit('', { kind: 'test' }, 0);
  }
  writer.close();
};
const damage = (folder: string, at: number, index = -1) => {
  const bytes = bytesOf(folder, index);
  bytes.fill(0x5a, at, at + 4);
  writeFileSync(pathOf(folder, index), bytes);
};
const continued = (from: string, to: string) => {
  const made = continueLog(from, to, lastOf(to));
  return made === null ? null : [made.last?.entry, made.rest];
};
const newLog = (entries: number) => {
  const folder = newFolder();
  makeLog(folder, 0).close();
  add(folder, entries);
  return folder;
};

test('a log that parted before the end does not continue a copy, however long it is', () => {
  const common = newLog(1);
  for (const rows of [0, 1, 2, 5, 20, 200]) {
    const [copy, live] = [copyOf(common), copyOf(common)];
    add(copy, 1);
    add(live, 1, '{"row":"0"}\n'.repeat(rows + 1));
    const before = bytesOf(copy);
    // Equal lengths, too, and a last entry across the end of the copy.
    for (const length of [before.length, before.length + 1, bytesOf(live).length]) {
      const cut = copyOf(live);
      if (length < bytesOf(cut).length) truncateSync(pathOf(cut), length);
      else
        writeFileSync(pathOf(cut), Buffer.concat([bytesOf(cut), Buffer.alloc(length - bytesOf(cut).length)]));
      assert.equal(continued(cut, copy), null, `${rows}, ${length}`);
      assert.deepEqual(bytesOf(copy), before);
    }
  }
});

test('damage before the end of the copy is replaced by the copy; damage behind it ends what is taken', () => {
  const copy = newLog(3);
  const own = bytesOf(copy).length;
  const same = copyOf(copy);
  const live = copyOf(copy);
  add(live, 1);
  const next = bytesOf(live).length;
  add(live, 2);
  const cases: [folder: string, damagedAt: number, expected: unknown][] = [
    [same, 150, [3, 'nothing']],
    [same, own - 10, null],
    [live, 5, [6, 'nothing']],
    [live, own - 10, [6, 'nothing']],
    [live, own + 30, [3, 'damaged']],
    [live, next + 30, [4, 'damaged']],
    [live, bytesOf(live).length - 10, [5, 'torn']],
  ];
  for (const [folder, at, expected] of cases) {
    const [damaged, to] = [copyOf(folder), copyOf(copy)];
    damage(damaged, at);
    assert.deepEqual(continued(damaged, to), expected, `at ${at}`);
    assert.deepEqual(
      continued(live, to),
      [6, 'nothing'],
      'what was made must be a log that can be continued',
    );
  }
});

test('a segment that was rewritten since continues the copy, damaged or not', () => {
  const copy = newLog(3);
  for (const isDamaged of [false, true]) {
    const [live, to] = [copyOf(copy), copyOf(copy)];
    add(live, 5);
    rewrite(pathOf(live));
    const { id } = lastOf(live);
    if (isDamaged) damage(live, 130);
    assert.deepEqual(continued(live, to), [8, 'nothing']);
    assert.equal(lastOf(to).id, id);
  }
});

test('later segments are taken up to the first that is missing or damaged', () => {
  const live = newFolder();
  const writer = makeLog(live, 5);
  const copy = copyOf(live);
  addEntries(writer, 20);
  writer.close();
  const last = lastOf(live).entry;
  assert.deepEqual(continued(live, copyOf(copy)), [last, 'nothing']);
  const firstOf = (index: number) => Number.parseInt(readdirSync(live).at(index) ?? '', 10);
  const missing = copyOf(live);
  rmSync(pathOf(missing, -2));
  assert.deepEqual(continued(missing, copyOf(copy)), [firstOf(-2) - 1, 'damaged']);
  const damaged = copyOf(live);
  damage(damaged, bytesOf(damaged, -2).length - 10, -2);
  assert.equal(continued(damaged, copyOf(copy))?.[1], 'damaged');
  const stump = copyOf(live);
  writeFileSync(join(stump, `${String(last + 1).padStart(12, '0')}.zst`), 'P*M');
  const to = copyOf(copy);
  assert.deepEqual(continued(stump, to), [last, 'torn']);
  assert.equal(readdirSync(to).length, readdirSync(live).length);
  const later = copyOf(live);
  writeFileSync(join(later, `${String(last + 2).padStart(12, '0')}.zst`), 'P*M');
  assert.deepEqual(
    continued(later, copyOf(copy)),
    [last, 'damaged'],
    'an entry is missing, though nothing of it is left',
  );
});
