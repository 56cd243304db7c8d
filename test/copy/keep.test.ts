/** The appliance's part in the copy: it follows, alerts open where it cannot, and it ends once another machine took over. */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { type ApplianceCopy, createApplianceCopy } from '../../src/appliance-copy.ts';
import { findAccess } from '../../src/auth/spare-copy.ts';
import type { Config } from '../../src/config/load.ts';
import { Unreachable } from '../../src/copy/place.ts';
import { verifyCopy } from '../../src/copy/source.ts';
import { HELD_UP_INGEST } from '../../src/health/alert-texts.ts';
import { writeScrubRecord } from '../../src/log/scrub-findings.ts';
import { failed } from '../../src/refused.ts';
import { readLogMark } from '../../src/store/log-mark.ts';
import { PROMOTE, RESTORE, readRole } from '../../src/store/role.ts';
import { formatMs, MINUTE_MS } from '../../src/time.ts';
import { openAccess } from '../support/access.ts';
import { addEntry } from '../support/copy-at.ts';
import { createCopied, type History, rowsFrom } from '../support/history.ts';
import { type MemoryPlace, memoryPlace } from '../support/memory-place.ts';
import { patched, systemError } from '../support/patched-fs.ts';
import { until } from '../support/until.ts';

let history: History;
let place: MemoryPlace;
let kept: ApplianceCopy | null;
let nowMs: number;
let turns: number;
/** By name, and whom they concern. */
let alerts: Map<string, string>;
let said: string[];
beforeEach(async () => {
  history = await createCopied();
  place = memoryPlace();
  history.apply(rowsFrom(1, 1));
  nowMs = Date.parse('2026-11-20T09:00:00Z');
  [turns, alerts, said, kept] = [0, new Map(), [], null];
});
afterEach(async () => {
  await kept?.close();
  history.delete();
});

function keep(open: () => Promise<MemoryPlace> = async () => place): ApplianceCopy {
  const { folder, db } = history;
  const config = { copy: { to: 'memory', standby: false, wait: false }, verify: { every_hours: 24 } };
  const log = (level: string) => (_: object, text: string) => void said.push(`${level}: ${text}`);
  kept = createApplianceCopy(
    config as Config,
    {
      folder,
      access: {
        change() {
          const found = findAccess(folder);
          return found.kind === 'sound' ? found.state.change : 0;
        },
      },
      reader: { db, end: () => void said.push('reads end') },
      conditions: {
        set(name, detail, of = '') {
          if (name === 'disk full') turns += 1;
          if (detail === null) alerts.delete(`${name} ${of}`);
          else alerts.set(`${name} ${of}`, detail);
        },
      },
      stopIngest: () => void said.push('ingest stops'),
    },
    { error: log('error'), warn: log('warn'), info: log('info') } as never,
    () => nowMs,
    open,
  );
  kept.write();
  return kept;
}

const behind = () => alerts.get('copy behind ') ?? null;
const heldUp = () => alerts.get(`copy behind ${HELD_UP_INGEST}`) ?? null;
const nextTurn = async () => {
  const before = turns;
  await until('the next look', () => turns > before);
};
const stateOf = (copy: ApplianceCopy) => copy.state() ?? assert.fail('no state');
const upToDate = (copy: ApplianceCopy) =>
  until('the copy to be up to date', () => stateOf(copy).behind_since === null);
const away = () => {
  throw new Unreachable('the place does not answer');
};

test('it gets what is there at the start, and each entry and change of keys after that', async () => {
  const copy = keep();
  assert.deepEqual([stateOf(copy).entries_behind, stateOf(copy).contact_at], [null, null]);
  await upToDate(copy);
  history.apply(rowsFrom(10, 2));
  const end = readLogMark(history.db())?.entry;
  assert.equal(stateOf(copy).entries_behind, 1);
  await until('the entry to be copied', () => stateOf(copy).entries_behind === 0);
  assert.deepEqual(await verifyCopy(place, () => {}), { entries: end, findings: [] });
  const { size } = place.objects;
  await nextTurn();
  assert.equal(place.objects.size, size, 'nothing is new');
  openAccess(history.folder.root, { create: true }).exec('UPDATE change SET number = number + 1');
  await until('access.db to be copied', () => place.objects.size > size);
  assert.deepEqual([[...alerts], said], [[], []]);
});

test('a place that does not answer is an alert after five minutes, until it is written again', async () => {
  const copy = keep();
  await upToDate(copy);
  place.before = away;
  const sinceMs = nowMs;
  history.apply(rowsFrom(10, 1));
  await until('the failure', () => stateOf(copy).failure !== null);
  nowMs += 5 * MINUTE_MS - 1;
  await nextTurn();
  assert.equal(behind(), null);
  nowMs += 1;
  await nextTurn();
  const unanswered = /^memory: the place does not answer\. It answered last at 2026-11-20T09:00:00Z$/;
  assert.match(behind() ?? '', unanswered);
  assert.deepEqual(stateOf(copy), {
    to: 'memory',
    entries_behind: 1,
    behind_since: formatMs(sinceMs),
    contact_at: formatMs(sinceMs),
    failure: 'the place does not answer',
  });
  place.before = () => {};
  await upToDate(copy);
  await nextTurn();
  assert.deepEqual([...alerts], []);
  const told = ['warn: cannot write the copy: it is tried again', 'info: the copy is up to date again'];
  assert.deepEqual(said, told);
});

test('a place that is refused is an alert at once: behind since five minutes, not since 1970', async () => {
  let isRefused = true;
  const copy = keep(async () => {
    if (isRefused) throw failed('cannot keep a copy in memory: it has no hard links.');
    return place;
  });
  await nextTurn();
  assert.match(behind() ?? '', /it has no hard links\. It has not answered since the start$/);
  assert.equal(stateOf(copy).contact_at, null);
  isRefused = false;
  await upToDate(copy);
  await until('the end of the alert', () => behind() === null);
  // Also where nothing is new.
  place.before = () => {
    throw failed('cannot keep a copy in memory: it is full.');
  };
  await until('the alert', () => behind() !== null);
  assert.equal(stateOf(copy).behind_since, formatMs(nowMs - 5 * MINUTE_MS));
});

test('a place that had the copy and is empty is not filled: its disk may not be mounted', async () => {
  const copy = keep();
  await upToDate(copy);
  await copy.close();
  place.objects.clear();
  keep();
  await until('the alert', () => behind() !== null);
  assert.match(behind() ?? '', /is empty, although a copy was kept there/);
  assert.equal(place.objects.size, 0);
});

test('neither is one that is empty from one moment to the next, with a transaction that waits', async () => {
  const copy = keep();
  await upToDate(copy);
  place.objects.clear();
  const isDecided = propose(copy);
  await until('the alert', () => heldUp() !== null);
  assert.match(heldUp() ?? '', /is empty, although a copy was kept there/);
  assert.deepEqual([isDecided(), place.objects.size], [false, 0]);
});

/** Has a transaction wait for the copy. @returns whether it is decided */
function propose(copy: ApplianceCopy): () => boolean {
  history.apply(rowsFrom(10, 1));
  let isDecided = false;
  void copy.decide(readLogMark(history.db()) ?? assert.fail()).then(() => (isDecided = true));
  return () => isDecided;
}

test('where a transaction waits for it, it is written at once, and a place that is away is an alert at once', async () => {
  const copy = keep();
  await upToDate(copy);
  place.before = away;
  const isDecided = propose(copy);
  await until('the alert', () => heldUp() !== null);
  assert.match(heldUp() ?? '', /does not answer\. .*\. Ingest waits for it$/);
  assert.equal(isDecided(), false);
  place.before = () => {};
  await until('the entry to be copied', isDecided);
  await until('the end of the alert', () => alerts.size === 0);
});

test('where a transaction waits for minutes while the copy is written, that is an alert, too', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const copy = keep();
  await upToDate(copy);
  const written = Promise.withResolvers<void>();
  place.before = () => written.promise;
  const isDecided = propose(copy);
  await until('the attempt', () => stateOf(copy).behind_since !== null);
  nowMs += 5 * MINUTE_MS;
  t.mock.timers.tick(MINUTE_MS);
  assert.match(heldUp() ?? '', /^memory: it is being written\. .*\. Ingest waits for it$/);
  written.resolve();
  await until('the entry to be copied', isDecided);
});

test('where a transaction waits and the disk of this machine is full, that is the alert, and no draft is left', async () => {
  const copy = keep();
  await upToDate(copy);
  const { copied: notes, root } = history.folder;
  let isDecided: () => boolean;
  {
    using _ = patched('writeFileSync', (write) => (file, ...rest) => {
      if (!String(file).startsWith(notes)) return write(file, ...rest);
      write(file, '');
      throw systemError('ENOSPC', 'write');
    });
    isDecided = propose(copy);
    await until('the alert', () => alerts.size > 0);
    assert.deepEqual([...alerts], [['disk full copy', `the disk of ${root} is full`]]);
  }
  await until('the entry to be copied', isDecided);
  await until('the end of the alert', () => alerts.size === 0);
  const drafts = readdirSync(notes).filter((name) => name.startsWith('.'));
  assert.deepEqual(drafts, []);
});

for (const [what, at] of [
  ['damaged objects', 0],
  ['damaged objects of a place that goes away meanwhile', 0],
  ['a damaged newest object', -1],
  ['a lost object', 0],
  ['a damaged newest object, found by a start', -1],
] as const)
  test(`${what}: found and written anew, in a new generation`, async () => {
    for (let from = 10; from < 60; from += 10) history.apply(rowsFrom(from, 10));
    const isStart = what.includes('start');
    const copy = keep();
    await upToDate(copy);
    history.apply(rowsFrom(100, 1));
    await until('the entry to be copied', () => stateOf(copy).entries_behind === 0);
    if (isStart) await copy.close();
    const namesOf = (folder: string) => [...place.objects.keys()].filter((name) => name.startsWith(folder));
    let isAway = what.includes('away');
    place.before = (operation, name) => {
      if (!isAway || operation !== 'create' || !name.startsWith('log/0002')) return;
      isAway = false;
      away();
    };
    const chosen = [
      namesOf('log/').sort().at(at) ?? '',
      ...(what.includes('objects') ? namesOf('access/') : []),
    ];
    for (const name of chosen)
      if (what.includes('lost')) place.objects.delete(name);
      else place.objects.set(name, Buffer.from('damaged'));
    if (isStart) keep();
    else {
      // As the daily verification of the log does, whose record outlasts a restart.
      writeScrubRecord(history.folder, { entry: null, findings: [], not_compared: null }, nowMs);
      // With something new, the next look is within a second.
      history.apply(rowsFrom(200, 1));
    }
    await until('the new generation', () => namesOf('log/').some((name) => name.startsWith('log/0002')));
    const end = readLogMark(history.db())?.entry;
    await until('a sound copy', async () => {
      const { findings, entries } = await verifyCopy(place, () => {});
      return findings.length === 0 && entries === end;
    });
    const told = said.filter((text) => text === 'warn: the copy is damaged: it is rewritten');
    assert.equal(told.length, isStart ? 0 : 1);
  });

test('a lost newest object is written again with what is new', async () => {
  const copy = keep();
  await upToDate(copy);
  const [newest = assert.fail()] = (await place.list('log/', '')).toReversed();
  place.objects.delete(newest);
  history.apply(rowsFrom(10, 1));
  await until('the entry to be copied', () => stateOf(copy).entries_behind === 0);
  assert.deepEqual((await verifyCopy(place, () => {})).findings, []);
});

test('a verification whose reading of the copy a restart cut short is made good for after it, once', async () => {
  let copy = keep();
  const copied = (from: number) => {
    history.apply(rowsFrom(from, 1));
    return until('the entry to be copied', () => stateOf(copy).entries_behind === 0);
  };
  await upToDate(copy);
  for (const from of [10, 20]) await copied(from);
  // A start reads the newest ones.
  const oldest = [...place.objects.keys()].filter((name) => name.startsWith('log/')).sort()[0];
  let reads = 0;
  place.before = (operation, name) => {
    if (operation !== 'read' || name !== oldest) return;
    reads += 1;
    return reads === 1 ? new Promise(() => {}) : undefined;
  };
  writeScrubRecord(history.folder, { entry: null, findings: [], not_compared: null }, nowMs);
  await copied(30);
  await until('the reading to begin', () => reads === 1);
  for (const from of [100, 200]) {
    await copy.close();
    copy = keep();
    await upToDate(copy);
    for (const next of [10, 20]) await copied(from + next);
    await until('it to be read again', () => reads === 2);
    await nextTurn();
    assert.equal(reads, 2);
  }
});

for (const [operation, by] of [
  [{ kind: PROMOTE, machine: 'other' }, /^machine other took over at 2/],
  [{ kind: RESTORE, host: 'other' }, /^the copy was restored on other at 2/],
] as const)
  test(`once another machine took over (${operation.kind}) it ends, also on a full disk, and the program goes on`, async () => {
    const { folder } = history;
    const copy = keep();
    await upToDate(copy);
    // The note of the role cannot be written.
    mkdirSync(join(folder.root, '.role.json.tmp'));
    addEntry(place, readLogMark(history.db()), operation);
    await until('the end', () => said.some((text) => /the next start finds it out/.test(text)));
    assert.deepEqual(said.slice(1, 3), ['reads end', 'ingest stops']);
    assert.match(alerts.get('another machine took over ') ?? '', by);
    // The ingest thread, which was told to stop, comes to the end of its own promotion.
    copy.promoted();
    assert.deepEqual([copy.role(), readRole(folder).superseded], ['superseded', null]);
  });
