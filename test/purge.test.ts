/** Rows of removed subscriptions, taken out of the log: what is made of it stays equal, whenever it is made. */
import assert from 'node:assert/strict';
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { readEntries } from '../src/history/entries.ts';
import { entriesAfter } from '../src/history/log-reader.ts';
import { purgedStreams } from '../src/history/purge.ts';
import { recoverDetections } from '../src/history/recover.ts';
import { scrub } from '../src/history/scrub.ts';
import { listSegments } from '../src/history/segment.ts';
import { Stopping } from '../src/ingest/workshop.ts';
import { type DataFolder, dataFolder } from '../src/store/folder.ts';
import { ordinalOf } from '../src/store/stream-place.ts';
import { assertSameContent, type Content, contentOfDatabase } from './support/database-content.ts';
import { createHistory, type History, type HistoryRow } from './support/history.ts';

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
