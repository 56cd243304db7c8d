/** Rows of removed subscriptions, taken out of the log: what is made of it stays equal, whenever it is made. */
import assert from 'node:assert/strict';
import fs, {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, mock, test } from 'node:test';
import fc from 'fast-check';
import { copyLog } from '../../src/backup/log-copy.ts';
import { readEntries } from '../../src/history/entries.ts';
import { entriesAfter, findTail } from '../../src/history/log-reader.ts';
import { purgedStreams } from '../../src/history/purge.ts';
import { recoverDetections } from '../../src/history/recover.ts';
import { scrub } from '../../src/history/scrub.ts';
import { listSegments } from '../../src/history/segment.ts';
import { type DataFolder, dataFolder } from '../../src/store/folder.ts';
import { ordinalOf } from '../../src/store/stream-place.ts';
import {
  assertSameContent,
  type Content,
  contentOfDatabase,
  contentOfDetections,
  withoutOpenDelivery,
} from '../support/database-content.ts';
import { createHistory, type History, type HistoryRow } from '../support/history.ts';

class Stopping extends Error {}

let history: History;
beforeEach(async () => {
  history = await createHistory(1024);
});
afterEach(() => history.delete());

const EPOCH = `INSERT INTO version_epoch (number, at, position, reason, orphans)
  VALUES ((SELECT count(*) + 1 FROM version_epoch), 1, 1, 'test', 'read')`;

/** Both content types of each of these subscriptions, in turn, so that runs of new detections are of several streams. */
const rowsOf = (
  subscriptions: readonly number[],
  from: number,
  count: number,
  members: HistoryRow['row'] = {},
): HistoryRow[] =>
  Array.from({ length: count }, (_, index) => ({
    content_type: index % 5 < 2 ? 'image' : 'text',
    row: {
      subscription_id: subscriptions[index % subscriptions.length] ?? 0,
      article_id: from + index,
      ...members,
    },
    ...(index % 4 === 0 ? { given: '2026-11-20T08:10:00Z' } : {}),
    ...(index % 7 === 0 ? { withheld: 'https://print.example/1' } : {}),
  }));

const again = (minute: number, score?: number) => ({
  last_scored_at: `2026-11-20T09:${minute}:00Z`,
  ...(score === undefined ? {} : { strength_score: score }),
});

/** Streams that are first seen before, between and after those of 7002; corrections, rescorings, a version epoch. */
async function fill(): Promise<void> {
  const all = [7001, 7002, 7003];
  history.apply(rowsOf([7001], 1, 20));
  history.apply(rowsOf(all, 1000, 120), { batchRows: 50 });
  history.apply(rowsOf(all, 1000, 60, again(10, 90)));
  history.apply(rowsOf(all, 1020, 40, again(11)), { with: (db) => db.exec(EPOCH) });
  await history.restart();
  // Rows that are known, with others that are new; then streams that are new behind those of 7002.
  history.apply([...rowsOf(all, 1010, 30, again(12)), ...rowsOf([7002, 7004], 3000, 20)]);
  history.apply(rowsOf(all, 1000, 50, again(13, 70)));
  history.apply(rowsOf([7002], 1000, 30, again(14)));
}

function contentNow(): Content {
  history.writer().flush();
  return contentOfDatabase(history.db());
}

/** What the log comes to, by itself. */
async function contentOfLog({ log }: DataFolder = history.folder): Promise<Content> {
  const place = dataFolder(`${history.folder.root}-made`);
  cpSync(log, place.log, { recursive: true });
  try {
    const made = await recoverDetections({
      folder: place,
      program: 'test',
      onReadable: () => {},
      onBegin: () => {},
      onProgress: () => {},
      between: async () => {},
    });
    made.log.close();
    const content = contentOfDatabase(made.db);
    made.db.close();
    return content;
  } finally {
    rmSync(place.root, { recursive: true, force: true });
  }
}

async function assertClean(): Promise<void> {
  const { findings, not_compared } = await scrub({
    folder: history.folder,
    between: async () => {},
    onProgress: () => {},
  });
  assert.deepEqual({ findings, not_compared }, { findings: [], not_compared: null });
}

async function assertEqual(what: string): Promise<void> {
  const expected = contentNow();
  assertSameContent(await contentOfLog(), expected, what);
}

const streamOf = (row: unknown) => {
  const { ordinal, subscription_id, sequence, removed } = Object(row);
  return { ordinal, subscription_id, sequence, removed };
};

/** Lines about detections of a subscription, by entry. */
function linesOf(subscription: number): number[] {
  const found: number[] = [];
  let entry = 1;
  for (const { part } of entriesAfter(history.folder.log, 'detections', null)) {
    for (const line of part.lines)
      if (new RegExp(`^\\{"\\w+":"[ti]\\.${subscription}\\.`).test(line)) found.push(entry);
    if (part.kind === 'commit') entry = part.commit.entry + 1;
  }
  return found;
}

const commits = () =>
  [...entriesAfter(history.folder.log, 'detections', null)].flatMap(({ part }) =>
    part.kind === 'commit'
      ? [[part.commit.entry, part.commit.id, part.commit.at, part.commit.operation]]
      : [],
  );
const segments = () =>
  listSegments(history.folder.log).map(({ path }) => [path, statSync(path).ino, statSync(path).size]);

/** Ends a purge at its n-th turn, as a stop does. @returns whether it was there */
async function purgeUntil(turn: number): Promise<boolean> {
  let turns = 0;
  try {
    await history.purge(async () => {
      turns += 1;
      if (turns === turn) throw new Stopping();
    });
    return false;
  } catch (error) {
    if (!(error instanceof Stopping)) throw error;
    return true;
  }
}

describe('what is made of the log is equal', () => {
  test('with a subscription gone; entries keep their numbers, ids and times', async () => {
    await fill();
    await history.remove(7002);
    history.apply(rowsOf([7001, 7005], 9000, 20));
    history.writer().flush();
    const before = commits();
    assert.ok(linesOf(7002).length > 100);
    assert.equal(await history.purge(), null);
    assert.deepEqual(linesOf(7002), []);
    assert.ok(linesOf(7001).length > 50);
    assert.deepEqual(commits(), before);
    await assertEqual('purged');
    await assertClean();
    history.apply(rowsOf([7001, 7003], 1000, 60, again(20, 10)));
    await assertEqual('and gone on');
    await assertClean();
  });

  test('of several removals, of an account with several subscriptions, and of one that came back', async () => {
    await fill();
    await history.remove(7002);
    await history.purge();
    history.apply(rowsOf([7002, 7006], 1000, 60));
    history.apply(rowsOf([7002], 1000, 40, again(21, 50)));
    const kept = linesOf(7002);
    assert.ok(kept.length > 50);
    for (const subscription of [7001, 7004]) await history.remove(subscription);
    assert.equal(await history.purge(), null);
    assert.deepEqual(linesOf(7002), kept, 'what came later stays');
    assert.deepEqual([...linesOf(7001), ...linesOf(7004)], []);
    await assertEqual('three gone');
    await history.remove(7002);
    history.apply(rowsOf([7003, 7002], 1000, 20));
    assert.equal(await history.purge(), null);
    assert.equal(linesOf(7002).length, 10);
    await assertEqual('gone twice, and back');
    await assertClean();
    history.stop();
    await history.restart();
    await assertEqual('after a restart');
  });

  test('at every moment at which it may be ended, and it goes on from there', async () => {
    await fill();
    await history.remove(7002);
    history.apply(rowsOf([7002, 7003], 1000, 20));
    await history.remove(7003);
    let turn = 1;
    for (; await purgeUntil(turn); turn += 1) {
      await assertEqual(`ended at turn ${turn}`);
      if (turn % 5 === 0) await assertClean();
      // A draft that a kill has left, and a start.
      if (turn === 1) writeFileSync(`${listSegments(history.folder.log)[1]?.path}.tmp`, 'half');
      await history.restart();
    }
    assert.ok(turn > 12, `${turn}`);
    assert.ok(!readdirSync(history.folder.log).some((name) => name.endsWith('.tmp')));
    assert.equal(linesOf(7002).length, 10);
    assert.deepEqual(linesOf(7003), []);
    await assertEqual('done');
    await assertClean();
  });

  test('whatever was applied, removed and purged, half or whole, in any order', async () => {
    const subscription = fc.integer({ min: 7001, max: 7004 });
    const step = fc.oneof(
      {
        weight: 5,
        arbitrary: fc.record({
          kind: fc.constant('apply' as const),
          subscriptions: fc.uniqueArray(subscription, { minLength: 1 }),
          from: fc.integer({ min: 1, max: 40 }),
          count: fc.integer({ min: 1, max: 30 }),
          minute: fc.integer({ min: 10, max: 59 }),
          score: fc.option(fc.integer({ min: 0, max: 99 }), { nil: undefined }),
          batchRows: fc.integer({ min: 1, max: 30 }),
          hasEpoch: fc.boolean(),
        }),
      },
      { weight: 2, arbitrary: fc.record({ kind: fc.constant('remove' as const), subscription }) },
      {
        weight: 2,
        arbitrary: fc.record({ kind: fc.constant('purge' as const), turns: fc.integer({ min: 1, max: 30 }) }),
      },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart' as const) }) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 14 }), async (steps) => {
        history.delete();
        history = await createHistory(512);
        history.apply(rowsOf([7001], 1, 1));
        for (const one of steps) {
          if (one.kind === 'remove') await history.remove(one.subscription);
          else if (one.kind === 'purge') await purgeUntil(one.turns);
          else if (one.kind === 'restart') await history.restart();
          else {
            const { subscriptions, from, count, minute, score, batchRows, hasEpoch } = one;
            const rows = rowsOf(subscriptions, from, count, again(minute, score));
            history.apply(rows, { batchRows, ...(hasEpoch ? { with: (db) => db.exec(EPOCH) } : {}) });
          }
        }
        await assertEqual('half');
        assert.equal(await history.purge(), null);
        await assertEqual('whole');
      }),
      { numRuns: 15, seed: 20261122 },
    );
  });

  test('with rows of it in the open segment: what follows goes into another one', async () => {
    const own = await createHistory(1_000_000);
    try {
      for (let from = 0; from < 60; from += 20) own.apply(rowsOf([7001, 7002], from, 20));
      await own.remove(7002);
      assert.equal(await own.purge(), null);
      own.apply(rowsOf([7001], 100, 20));
      own.stop();
      const before = contentOfDetections(own.folder.root);
      rmSync(own.folder.detections);
      await own.restart();
      own.stop();
      const [made, expected] = [contentOfDetections(own.folder.root), before].map(withoutOpenDelivery);
      assertSameContent(made ?? {}, expected ?? {});
    } finally {
      own.delete();
    }
  });

  test('where the database refused the removal at first, as a full disk does', async () => {
    await fill();
    const before = commits().length;
    const db = history.db();
    const exec = db.exec.bind(db);
    db.exec = (sql) => {
      if (sql === 'COMMIT') throw Object.assign(new Error('full'), { code: 'SQLITE_FULL' });
      return exec(sql);
    };
    await assert.rejects(history.remove(7002), { code: 'SQLITE_FULL' });
    db.exec = exec;
    await history.remove(7002);
    assert.equal(commits().length, before + 1, 'it is said once');
    assert.equal(await history.purge(), null);
    assert.deepEqual(linesOf(7002), []);
    await assertEqual('purged');
  });

  test('for a database of before the removal, whatever part of the rows it has', async () => {
    const states: string[] = [];
    const keep = () => {
      history.stop();
      states.push(`${history.folder.root}-${states.length}`);
      cpSync(history.folder.detections, states.at(-1) ?? '');
      return history.restart();
    };
    try {
      history.apply(rowsOf([7001], 1, 20));
      await keep();
      history.apply(rowsOf([7001, 7002], 100, 40));
      await keep();
      history.apply(rowsOf([7002, 7003], 100, 40, again(10, 80)));
      await keep();
      await fill();
      await keep();
      await history.remove(7002);
      await history.purge();
      const content = contentNow();
      for (const state of states) {
        history.stop();
        cpSync(state, history.folder.detections);
        const { madeAnew } = await history.restart();
        assert.equal(madeAnew, null);
        assertSameContent({ ...contentNow(), log_mark: [] }, { ...content, log_mark: [] }, state);
      }
    } finally {
      for (const state of states) rmSync(state, { force: true });
    }
  });

  test('of a log that was cut off before the removal: a stream is there with all its rows, or with none', async () => {
    await fill();
    await history.remove(7002);
    // Behind six turns in which rows are deleted, and four segments.
    assert.ok(await purgeUntil(10));
    history.stop();
    const place = dataFolder(`${history.folder.root}-cut`);
    const seen = { live: 0, ended: 0 };
    try {
      cpSync(history.folder.log, place.log, { recursive: true });
      for (const { path } of listSegments(place.log).toReversed()) {
        const { stream = [], stream_row = [], detection = [] } = await contentOfLog(place);
        for (const { ordinal, subscription_id, sequence, removed } of stream.map(streamOf)) {
          if (subscription_id !== 7002) continue;
          const isOfIt = (row: unknown) => ordinalOf(Number(Object(row).place)) === ordinal;
          assert.equal(stream_row.filter(isOfIt).length, removed === 1 ? 0 : sequence);
          assert.equal(detection.some(isOfIt), removed === 0);
          seen[removed === 1 ? 'ended' : 'live'] += 1;
        }
        rmSync(path);
      }
      assert.ok(seen.live > 2 && seen.ended > 4, JSON.stringify(seen));
    } finally {
      rmSync(place.root, { recursive: true, force: true });
    }
  });
});

describe('a segment', () => {
  test('without rows of it, or from which they are gone, is not written again', async () => {
    history.apply(rowsOf([7001], 1, 60));
    history.writer().closeSegment();
    history.apply(rowsOf([7002], 1, 60));
    history.writer().closeSegment();
    history.apply(rowsOf([7001], 100, 60));
    const before = segments();
    await history.remove(7002);
    await history.purge();
    const after = segments();
    assert.deepEqual(after[0], before[0]);
    assert.notDeepEqual(after[1], before[1]);
    assert.ok(Number(after[1]?.[2]) < Number(before[1]?.[2]));
    assert.deepEqual(after[2]?.slice(0, 2), before[2]?.slice(0, 2));
    const names = readdirSync(history.folder.log);
    rmSync(join(history.folder.log, 'purged.json'));
    await history.purge();
    assert.deepEqual(segments(), after);
    assert.deepEqual(readdirSync(history.folder.log), names);
  });

  test('that is looked through is not looked through again, unless something else was removed', async () => {
    await fill();
    await history.remove(7002);
    await history.purge();
    let turns = 0;
    const count = async () => {
      turns += 1;
    };
    await history.purge(count);
    assert.equal(turns, 0);
    // A log that was copied back has no note.
    writeFileSync(join(history.folder.log, 'purged.json'), 'no JSON');
    await history.purge(count);
    assert.ok(turns > 0);
    assert.deepEqual([...purgedStreams(history.folder.log)].length, 2);
  });

  test('that is damaged stays as it is, and so does the note; those behind it are done', async () => {
    await fill();
    await history.remove(7002);
    const [first] = listSegments(history.folder.log);
    const path = first?.path ?? '';
    const whole = readFileSync(path);
    const bad = Buffer.from(whole);
    bad[whole.length - 30] = (bad[whole.length - 30] ?? 0) ^ 1;
    writeFileSync(path, bad);
    assert.match(String(await history.purge()), /is damaged at byte/);
    assert.deepEqual(readFileSync(path), bad);
    assert.ok(!existsSync(join(history.folder.log, 'purged.json')));
    writeFileSync(path, whole);
    await assertEqual('half done');
    assert.equal(await history.purge(), null);
    assert.deepEqual(linesOf(7002), []);
    await assertEqual('done');
  });

  test('for which there is no room, or no right, stays as it is; it says how much is needed, and is done once there is', async () => {
    await fill();
    await history.remove(7002);
    const full = Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
    const failures = [
      ['statfsSync', () => ({ bavail: 1000, bsize: 4096 }), /the disk needs 33 MiB of free space/],
      [
        'writeFileSync',
        () => {
          throw full;
        },
        /ENOSPC: no space left/,
      ],
      [
        'renameSync',
        () => {
          throw Object.assign(new Error('EACCES: permission denied'), { code: 'EACCES' });
        },
        /EACCES: permission denied/,
      ],
    ] as const;
    for (const [name, fail, reason] of failures) {
      // Two segments are done before.
      let calls = 0;
      const real = fs[name];
      const mocked = mock.method(fs, name, (...args: unknown[]) => {
        calls += 1;
        return calls > 2 ? fail() : Reflect.apply(real, fs, args);
      });
      syncBuiltinESMExports();
      try {
        assert.match(String(await history.purge()), reason);
      } finally {
        mocked.mock.restore();
        syncBuiltinESMExports();
      }
      assert.ok(!readdirSync(history.folder.log).some((file) => /tmp|purged/.test(file)));
      await assertEqual(name);
    }
    assert.equal(await history.purge(), null);
    assert.deepEqual(linesOf(7002), []);
    await assertEqual('done');
  });

  test('that is open keeps its reader: it reads to its end, and on in the next', async () => {
    await fill();
    const { log } = history.folder;
    const read: string[] = [];
    const reader = entriesAfter(log, 'detections', null);
    for (let count = 0; count < 3; count += 1) read.push(JSON.stringify(reader.next().value?.part.lines));
    await history.remove(7002);
    await history.purge();
    let last = 0;
    for (const { part } of reader) if (part.kind === 'commit') last = part.commit.entry;
    assert.equal(last, commits().length);
  });

  test('that is printed meanwhile, and followed, is printed entry by entry', async () => {
    await fill();
    const entries = readEntries(history.folder.log, 'detections', { fromMs: 0, follow: true });
    for (let entry = 1; entry <= 10; entry += 1) {
      const { value } = await entries.next();
      assert.equal(value?.commit.entry, entry);
      if (entry === 2) await history.remove(7002);
      if (entry === 5) await history.purge();
      if (entry === 8) history.apply(rowsOf([7001], 9000, 1));
      const [last = ''] = [...(value?.lines() ?? [])].flat().slice(-1);
      assert.equal(JSON.parse(last).commit.id, value?.commit.id);
    }
    await entries.return(undefined);
  });
});

describe('a backup of a log that is rewritten meanwhile', () => {
  const copyTo = () => `${history.folder.root}-backup`;
  const asideOf = () => `${history.folder.root}-aside`;
  const liveCopy = () => `${history.folder.root}-live`;
  afterEach(() => {
    for (const folder of [copyTo(), asideOf(), liveCopy(), `${liveCopy()}-old`])
      rmSync(folder, { recursive: true, force: true });
  });

  function copy(from: string, onBytes: () => void = () => {}): void {
    mkdirSync(copyTo(), { recursive: true });
    const end = findTail(from, 'detections').last;
    copyLog({ from, to: join(copyTo(), 'log'), kind: 'detections', end, aside: asideOf(), onBytes });
  }

  /** It reaches as far as it did, and what it comes to is of one moment: each stream is whole, or gone. */
  async function assertGood(what: string, least: number): Promise<void> {
    const place = dataFolder(copyTo());
    assert.ok((findTail(place.log, 'detections').last?.entry ?? 0) >= least, what);
    const { stream = [], stream_row = [], detection = [] } = await contentOfLog(place);
    for (const { ordinal, subscription_id, sequence, removed } of stream.map(streamOf)) {
      const isOfIt = (row: unknown) => ordinalOf(Number(Object(row).place)) === ordinal;
      assert.equal(stream_row.filter(isOfIt).length, removed === 1 ? 0 : sequence, what);
      assert.equal(detection.some(isOfIt), removed === 0, what);
      const known = ordinals.get(`${subscription_id} ${Object(stream[ordinal - 1]).content_type}`);
      assert.equal(ordinal, known, what);
    }
  }
  let ordinals: ReadonlyMap<string, number>;
  function noteOrdinals(): void {
    const rows = history.db().prepare<[], Record<string, unknown>>('SELECT * FROM stream').all();
    ordinals = new Map(
      rows.map((row) => [`${row.subscription_id} ${row.content_type}`, Number(row.ordinal)]),
    );
  }

  test('begun at any turn of it, and cut off at any point: it is good, and the next one completes it', async () => {
    await fill();
    const { log } = history.folder;
    copy(log);
    const least = findTail(log, 'detections').last?.entry ?? 0;
    const old = `${liveCopy()}-old`;
    cpSync(join(copyTo(), 'log'), old, { recursive: true, preserveTimestamps: true });
    history.apply([...rowsOf([7001, 7002], 7000, 80), ...rowsOf([7002], 1000, 30, again(16))]);
    history.apply(rowsOf([7001], 7500, 60));
    await history.remove(7002);
    noteOrdinals();
    let cut = 0;
    for (let turn = 1; ; turn += 3) {
      const isEnded = await purgeUntil(turn);
      for (let calls = 0; ; calls += 1) {
        rmSync(join(copyTo(), 'log'), { recursive: true });
        cpSync(old, join(copyTo(), 'log'), { recursive: true, preserveTimestamps: true });
        let called = 0;
        const cutOff = () => {
          called += 1;
          if (called > calls) throw new Stopping();
        };
        try {
          copy(log, cutOff);
          break;
        } catch (error) {
          assert.ok(error instanceof Stopping);
          await assertGood(`turn ${turn}, cut off after ${calls}`, least);
          cut += 1;
        }
      }
      await assertGood(`turn ${turn}`, least);
      const expected = contentNow();
      copy(log);
      assertSameContent(await contentOfLog(dataFolder(copyTo())), expected, `turn ${turn}`);
      if (!isEnded) break;
    }
    assert.ok(cut > 20, `${cut}`);
    assert.ok(readdirSync(asideOf()).length > 3, 'what was replaced is kept');
  });

  test('of which segments become others while it copies: it takes them again', async () => {
    await fill();
    await history.remove(7002);
    noteOrdinals();
    const { log } = history.folder;
    const old = `${liveCopy()}-old`;
    cpSync(log, old, { recursive: true, preserveTimestamps: true });
    await history.purge();
    history.stop();
    const newest = listSegments(log).toReversed();
    for (const rewritten of [1, 3, newest.length])
      for (let at = 1; ; at += 1) {
        rmSync(liveCopy(), { recursive: true, force: true });
        cpSync(old, liveCopy(), { recursive: true, preserveTimestamps: true });
        rmSync(copyTo(), { recursive: true, force: true });
        if (at % 2 === 0) copy(liveCopy());
        let calls = 0;
        const rewrite = () => {
          calls += 1;
          if (calls !== at) return;
          for (const { path } of newest.slice(0, rewritten)) {
            const target = join(liveCopy(), basename(path));
            cpSync(path, `${target}.tmp`);
            renameSync(`${target}.tmp`, target);
          }
        };
        // A folder that lacks the end has older segments that are rewritten, and newer ones that are new.
        if (at % 2 === 0) for (const { path } of listSegments(join(copyTo(), 'log')).slice(3)) rmSync(path);
        copy(liveCopy(), rewrite);
        await assertGood(`${rewritten} at ${at}`, 1);
        copy(liveCopy());
        for (const { path } of listSegments(liveCopy()))
          assert.deepEqual(readFileSync(join(copyTo(), 'log', basename(path))), readFileSync(path));
        if (calls < at) break;
      }
  });
});
