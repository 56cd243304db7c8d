/** Rewriting the log while the appliance goes on: removed rows are gone, and nothing else. */
import assert from 'node:assert/strict';
import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import fc from 'fast-check';
import { hasRemovedRows } from '../../src/log/compact.ts';
import { entriesAfter } from '../../src/log/log-reader.ts';
import { recoverDetections } from '../../src/log/recover.ts';
import { listSegments } from '../../src/log/segment.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { readLogMark } from '../../src/store/log-mark.ts';
import { assertSameContent, contentOfDatabase } from '../support/database-content.ts';
import { createHistory, type History, QUIETLY, rescored, variedRows } from '../support/history.ts';
import { assertClean, beginEpoch } from '../support/scrub.ts';
import { testFolder } from '../support/test-folder.ts';

/** Thrown to interrupt work, as a stop does. */
class Stopping extends Error {}

let history: History;

/** Creates streams before, between and after those of 7002, corrections, rescorings and a version epoch. */
async function fill(): Promise<void> {
  const all = [7001, 7002, 7003];
  history.apply(variedRows([7001], 1, 20));
  history.apply(variedRows(all, 1000, 120), { batchRows: 50 });
  history.apply(variedRows(all, 1000, 60, rescored(10, 90)));
  history.apply(variedRows(all, 1020, 40, rescored(11)), { with: beginEpoch });
  await history.restart();
  // Known and new rows, and new streams after those of 7002.
  history.apply([...variedRows(all, 1010, 30, rescored(12)), ...variedRows([7002, 7004], 3000, 20)]);
  history.apply(variedRows(all, 1000, 50, rescored(13, 70)));
  history.apply(variedRows([7002], 1000, 30, rescored(14)));
}

/** The database must equal one that is made from the log alone. */
async function assertEqual(what: string): Promise<void> {
  history.writer().flush();
  const folder = dataFolder(testFolder());
  cpSync(history.folder.log, folder.log, { recursive: true });
  const { db, log } = await recoverDetections({ folder, ...QUIETLY });
  log.close();
  using made = db;
  assertSameContent(contentOfDatabase(made), contentOfDatabase(history.db()), what);
}

/** How many lines of the log are about detections of a subscription. */
function linesOf(subscription: number): number {
  const beginning = new RegExp(`^\\{"\\w+":"[ti]\\.${subscription}\\.`);
  const lines = [...entriesAfter(history.folder.log, null)].flatMap(({ part }) => part.lines());
  return lines.filter((line) => beginning.test(line)).length;
}

/** Interrupts a compaction at its n-th step, as a stop does. @returns whether it has this step */
async function compactUntil(turn: number, atStep = async () => {}): Promise<boolean> {
  let turns = 0;
  try {
    await history.compact(async () => {
      turns += 1;
      await atStep();
      if (turns === turn) throw new Stopping();
    });
    return false;
  } catch (error) {
    if (!(error instanceof Stopping)) throw error;
    return true;
  }
}

beforeEach(async () => {
  history = await createHistory(1024);
});
afterEach(() => history.delete());

const hasRemoved = (ifDamaged: boolean) =>
  hasRemovedRows(history.folder.log, readLogMark(history.db())?.entry ?? 0, ifDamaged);

test('a removal that damage hides is not taken for completed', async () => {
  await fill();
  await history.remove(7002);
  for (const { path } of listSegments(history.folder.log)) {
    const content = readFileSync(path);
    // The frame behind the header of the file.
    content.fill(0x5a, content.readUInt32LE(8) + 20, content.readUInt32LE(8) + 40);
    writeFileSync(path, content);
  }
  assert.deepEqual([hasRemoved(false), hasRemoved(true)], [false, true]);
});

test('removed rows are gone, and what is applied meanwhile, at any step, is there', async () => {
  await fill();
  await history.remove(7002);
  assert.ok(linesOf(7002) > 100 && hasRemoved(false));
  let article = 20_000;
  const apply = async () => {
    article += 10;
    history.apply(variedRows([7001, 7005], article, 3));
  };
  assert.ok(!(await compactUntil(-1, apply)));
  assert.ok(article > 20_050, `${article}`);
  assert.ok(linesOf(7002) === 0 && !hasRemoved(true));
  assert.ok(listSegments(history.folder.log).length > 2);
  await assertEqual('compacted');
  await assertClean(history, '');
  history.apply(variedRows([7002, 7003], 1000, 60, rescored(20, 10)));
  await history.restart();
  await assertEqual('and gone on');
  await assertClean(history, '');
});

test('an interruption at any step leaves the old log, and the next compaction does it all', async () => {
  await fill();
  await history.remove(7002);
  const lines = linesOf(7002);
  let turn = 1;
  for (; await compactUntil(turn); turn += 1) {
    assert.equal(linesOf(7002), lines);
    assert.ok(!existsSync(join(history.folder.log, 'draft')));
    if (turn % 4 === 0) await assertEqual(`ended at turn ${turn}`);
    if (turn % 5 === 0) await history.restart();
  }
  assert.ok(turn > 4, `${turn}`);
  assert.equal(linesOf(7002), 0);
  await assertEqual('done');
});

test('whatever was applied, removed, rewritten and restarted, in any order', async () => {
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
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('compact' as const) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart' as const) }) },
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 14 }), async (steps) => {
      history.delete();
      history = await createHistory(512);
      history.apply(variedRows([7001], 1, 1));
      for (const one of steps) {
        if (one.kind === 'remove') await history.remove(one.subscription);
        else if (one.kind === 'compact') await history.compact();
        else if (one.kind === 'restart') await history.restart();
        else {
          const { subscriptions, from, count, minute, score, batchRows, hasEpoch } = one;
          const rows = variedRows(subscriptions, from, count, rescored(minute, score));
          history.apply(rows, { batchRows, ...(hasEpoch ? { with: beginEpoch } : {}) });
        }
      }
      await assertEqual('half');
      await history.compact();
      await assertEqual('whole');
    }),
    { numRuns: 15, seed: 20261122 },
  );
});
