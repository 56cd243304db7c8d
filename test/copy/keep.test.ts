/** The copy that a running appliance keeps: it follows, and an alert opens when it has not for five minutes. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import fs, { readdirSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { afterEach, beforeEach, test } from 'node:test';
import { findAccess } from '../../src/auth/spare-copy.ts';
import { type KeptCopy, keepCopy } from '../../src/copy/keep.ts';
import { Unreachable } from '../../src/copy/place.ts';
import { verifyCopy } from '../../src/copy/source.ts';
import type { Mark } from '../../src/log/format.ts';
import { failed } from '../../src/refused.ts';
import { readLogMark } from '../../src/store/log-mark.ts';
import { formatMs, MINUTE_MS } from '../../src/time.ts';
import { openAccess } from '../support/access.ts';
import { createHistory, type History, rowsFrom } from '../support/history.ts';
import { type MemoryPlace, memoryPlace } from '../support/memory-place.ts';
import { until } from '../support/until.ts';

let history: History;
let place: MemoryPlace;
let kept: KeptCopy | null;
let nowMs: number;
let turns: number;
/** The alert "copy behind". */
let alert: string | null;
/** Whether that needs someone now. */
let isUrgent: boolean;
/** The alert "disk full". */
let full: string | null;
let said: string[];
let verifyEveryMs: number;
let proposed: Mark | null;
/** The ends that the copy had. */
let copied: number[];
beforeEach(async () => {
  history = await createHistory();
  place = memoryPlace();
  writeFileSync(history.folder.secret, randomBytes(32));
  openAccess(history.folder.root, { create: true }).close();
  history.apply(rowsFrom(1, 1));
  nowMs = Date.parse('2026-11-20T09:00:00Z');
  [turns, alert, isUrgent, full, said, proposed, copied] = [0, null, false, null, [], null, []];
  verifyEveryMs = 0;
});
afterEach(async () => {
  await kept?.close();
  history.delete();
});

function keep(open: () => Promise<MemoryPlace> = async () => place): KeptCopy {
  const { folder } = history;
  kept = keepCopy({
    to: 'memory',
    open,
    folder,
    applied: () => readLogMark(history.db()),
    proposed: () => proposed,
    onCopied: (end) => void copied.push(end.entry),
    accessChange() {
      const found = findAccess(folder);
      return found.kind === 'sound' ? found.state.change : 0;
    },
    verifyEveryMs,
    now: () => nowMs,
    log: (level, msg) => void said.push(`${level}: ${msg}`),
    onAlert(detail, holdsUpIngest) {
      [alert, isUrgent] = [detail, holdsUpIngest];
      turns += 1;
    },
    onDiskFull(detail) {
      full = detail;
    },
    onTakenOver: (by) => said.push(`taken over: ${by}`),
  });
  return kept;
}

const nextTurn = async () => {
  const before = turns;
  await until('the next look', () => turns > before);
};
const upToDate = (copy: KeptCopy) =>
  until('the copy to be up to date', () => copy.state().behind_since === null);
const away = () => {
  throw new Unreachable('the place does not answer');
};

test('it gets what is there at the start, and each entry and change of keys after that', async () => {
  const copy = keep();
  assert.deepEqual([copy.state().entries_behind, copy.state().contact_at], [null, null]);
  await upToDate(copy);
  history.apply(rowsFrom(10, 2));
  const end = readLogMark(history.db())?.entry;
  assert.equal(copy.state().entries_behind, 1);
  await until('the entry to be copied', () => copy.state().entries_behind === 0);
  assert.deepEqual(await verifyCopy(place, () => {}), { entries: end, findings: [] });
  const { size } = place.objects;
  await nextTurn();
  assert.equal(place.objects.size, size, 'nothing is new');
  openAccess(history.folder.root, { create: true }).exec('UPDATE change SET number = number + 1');
  await until('access.db to be copied', () => place.objects.size > size);
  assert.deepEqual([alert, said], [null, []]);
});

test('a place that does not answer is an alert after five minutes, until it is written again', async () => {
  const copy = keep();
  await upToDate(copy);
  place.before = away;
  const sinceMs = nowMs;
  history.apply(rowsFrom(10, 1));
  await until('the failure', () => copy.state().failure !== null);
  nowMs += 5 * MINUTE_MS - 1;
  await nextTurn();
  assert.equal(alert, null);
  nowMs += 1;
  await nextTurn();
  assert.match(
    alert ?? '',
    /^memory: the place does not answer\. It was written last at 2026-11-20T09:00:00Z$/,
  );
  assert.deepEqual(copy.state(), {
    to: 'memory',
    entries_behind: 1,
    behind_since: formatMs(sinceMs),
    contact_at: formatMs(sinceMs),
    failure: 'the place does not answer',
  });
  place.before = () => {};
  await upToDate(copy);
  await nextTurn();
  assert.equal(alert, null);
  assert.deepEqual(said, [
    'warn: cannot write the copy: it is tried again',
    'info: the copy is up to date again',
  ]);
});

test('a place that is refused is an alert at once', async () => {
  const copy = keep(async () => {
    throw failed('cannot keep a copy in memory: it has no hard links.');
  });
  await nextTurn();
  assert.match(alert ?? '', /it has no hard links\. It was not written since the start$/);
  assert.equal(copy.state().contact_at, null);
});

test('a place that had the copy and is empty is not filled: its disk may not be mounted', async () => {
  const copy = keep();
  await upToDate(copy);
  await copy.close();
  place.objects.clear();
  keep();
  await until('the alert', () => alert !== null);
  assert.match(alert ?? '', /is empty, although a copy was kept there/);
  assert.equal(place.objects.size, 0);
});

test('a copy that is refused though nothing is new is behind since five minutes, not since 1970', async () => {
  const copy = keep();
  await upToDate(copy);
  place.before = () => {
    throw failed('cannot keep a copy in memory: it is full.');
  };
  await until('the alert', () => alert !== null);
  assert.equal(copy.state().behind_since, formatMs(nowMs - 5 * MINUTE_MS));
});

test('where a transaction waits for it, it is written at once, and a place that is away is an alert at once', async () => {
  const copy = keep();
  await upToDate(copy);
  place.before = away;
  history.apply(rowsFrom(10, 1));
  proposed = readLogMark(history.db());
  copy.wake();
  await until('the alert', () => alert !== null);
  assert.match(alert ?? '', /does not answer\. .*\. Ingest waits for it$/);
  assert.ok(isUrgent);
  const end = proposed?.entry ?? 0;
  assert.equal(copied.includes(end), false);
  place.before = () => {};
  await until('the entry to be copied', () => copied.includes(end));
  proposed = null;
  await until('the end of the alert', () => alert === null);
});

test('where a transaction waits and the disk of this machine is full, that is the alert, and no draft is left', async () => {
  const copy = keep();
  await upToDate(copy);
  const { copied: notes, root } = history.folder;
  const { writeFileSync: write } = fs;
  fs.writeFileSync = (file, ...rest) => {
    if (!String(file).startsWith(notes)) return write(file, ...rest);
    write(file, '');
    throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC', syscall: 'write' });
  };
  syncBuiltinESMExports();
  try {
    history.apply(rowsFrom(10, 1));
    proposed = readLogMark(history.db());
    copy.wake();
    await until('the alert', () => full !== null);
    assert.deepEqual([full, alert], [`the disk of ${root} is full`, null]);
  } finally {
    fs.writeFileSync = write;
    syncBuiltinESMExports();
  }
  await until('the entry to be copied', () => copied.includes(proposed?.entry ?? 0));
  await until('the end of the alert', () => full === null);
  assert.deepEqual(
    readdirSync(notes).filter((name) => name.startsWith('.')),
    [],
  );
});

for (const [what, harm] of [
  ['damaged objects', (names: string[]) => names.slice(0, 1)],
  ['damaged objects of a place that goes away meanwhile', (names: string[]) => names.slice(0, 1)],
  ['a damaged newest object', (names: string[]) => names.slice(-1)],
  ['a lost newest object', (names: string[]) => names.slice(-1)],
] as const)
  test(`${what}: found and written anew, in a new generation`, async () => {
    for (let from = 10; from < 60; from += 10) history.apply(rowsFrom(from, 10));
    verifyEveryMs = 20;
    const copy = keep();
    await upToDate(copy);
    history.apply(rowsFrom(100, 1));
    await until('the entry to be copied', () => copy.state().entries_behind === 0);
    const namesOf = (folder: string) => [...place.objects.keys()].filter((name) => name.startsWith(folder));
    let isAway = what.includes('away');
    place.before = (operation, name) => {
      if (!isAway || operation !== 'create' || !name.startsWith('log/0002')) return;
      isAway = false;
      away();
    };
    const chosen = [...harm(namesOf('log/').sort()), ...(what.includes('newest') ? [] : namesOf('access/'))];
    for (const name of chosen)
      if (what.includes('lost')) place.objects.delete(name);
      else place.objects.set(name, Buffer.from('damaged'));
    await until('the new generation', () => namesOf('log/').some((name) => name.startsWith('log/0002')));
    const end = readLogMark(history.db())?.entry;
    await until('a sound copy', async () => {
      const { findings, entries } = await verifyCopy(place, () => {});
      return findings.length === 0 && entries === end;
    });
    assert.equal(said.filter((text) => text === 'warn: the copy is damaged: it is written anew').length, 1);
  });
