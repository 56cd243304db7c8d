/** Rewriting the log while the appliance goes on: removed rows are gone, and nothing else. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import fc from 'fast-check';
import { hasRemovedRows } from '../../src/log/compact.ts';
import { listSegments } from '../../src/log/segment.ts';
import { readLogMark } from '../../src/store/log-mark.ts';
import {
  assertClean,
  assertEqual,
  compactUntil,
  EPOCH,
  fill,
  history,
  linesOf,
  rescored,
  rowsOf,
  startHistory,
} from '../support/removals.ts';

beforeEach(() => startHistory(1024));
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
    history.apply(rowsOf([7001, 7005], article, 3));
  };
  assert.ok(!(await compactUntil(-1, apply)));
  assert.ok(article > 20_050, `${article}`);
  assert.ok(linesOf(7002) === 0 && !hasRemoved(true));
  assert.ok(listSegments(history.folder.log).length > 2);
  await assertEqual('compacted');
  await assertClean();
  history.apply(rowsOf([7002, 7003], 1000, 60, rescored(20, 10)));
  await history.restart();
  await assertEqual('and gone on');
  await assertClean();
});

test('removed rows are nowhere in the database file either, whatever happened to them before', async () => {
  history.delete();
  await startHistory(1_000_000);
  const all = [7001, 7002, 7003];
  for (const [from, rows, ...how] of [
    [0, 300],
    [0, 300, 20, 50],
    [0, 300, 30],
    [100, 100, 40],
  ] as const) {
    const [minute, score] = how;
    const members = minute === undefined ? {} : rescored(minute, score);
    for (let at = 0; at < 8000; at += 1000) history.apply(rowsOf(all, at + from, rows, members));
  }
  const count = (text: string) =>
    readFileSync(history.folder.detections).toString('latin1').split(text).length - 1;
  await history.remove(7001);
  assert.ok(count('"subscription_id":7002') > 1000);
  await history.remove(7002);
  assert.equal(count('"subscription_id":7002'), 0);
  assert.ok(count('"subscription_id":7003') > 1000);
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
      await startHistory(512);
      history.apply(rowsOf([7001], 1, 1));
      for (const one of steps) {
        if (one.kind === 'remove') await history.remove(one.subscription);
        else if (one.kind === 'compact') await history.compact();
        else if (one.kind === 'restart') await history.restart();
        else {
          const { subscriptions, from, count, minute, score, batchRows, hasEpoch } = one;
          const rows = rowsOf(subscriptions, from, count, rescored(minute, score));
          history.apply(rows, { batchRows, ...(hasEpoch ? { with: (db) => db.exec(EPOCH) } : {}) });
        }
      }
      await assertEqual('half');
      await history.compact();
      await assertEqual('whole');
    }),
    { numRuns: 15, seed: 20261122 },
  );
});
