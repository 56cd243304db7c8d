/** After rows of removed subscriptions are deleted from the log, it still gives the same database, at any moment. */
import assert from 'node:assert/strict';
import { cpSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { listSegments } from '../../src/history/segment.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { ordinalOf } from '../../src/store/stream-place.ts';
import { assertSameContent, contentOfDetections, withoutOpenDelivery } from '../support/database-content.ts';
import { createHistory } from '../support/history.ts';
import {
  assertClean,
  assertEqual,
  commits,
  contentNow,
  contentOfLog,
  EPOCH,
  fill,
  history,
  linesOf,
  purgeUntil,
  rescored,
  rowsOf,
  startHistory,
  streamOf,
} from '../support/purge.ts';

describe('the rebuilt database is equal', () => {
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
    history.apply(rowsOf([7001, 7003], 1000, 60, rescored(20, 10)));
    await assertEqual('and gone on');
    await assertClean();
  });

  test('after several removals, of an account with several subscriptions, and of one added again', async () => {
    await fill();
    await history.remove(7002);
    await history.purge();
    history.apply(rowsOf([7002, 7006], 1000, 60));
    history.apply(rowsOf([7002], 1000, 40, rescored(21, 50)));
    const kept = linesOf(7002);
    assert.ok(kept.length > 50);
    for (const subscription of [7001, 7004]) await history.remove(subscription);
    assert.equal(await history.purge(), null);
    assert.deepEqual(linesOf(7002), kept, 'later rows must stay');
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

  test('after an interruption at any point, and it continues there', async () => {
    await fill();
    await history.remove(7002);
    history.apply(rowsOf([7002, 7003], 1000, 20));
    await history.remove(7003);
    let turn = 1;
    for (; await purgeUntil(turn); turn += 1) {
      await assertEqual(`ended at turn ${turn}`);
      if (turn % 5 === 0) await assertClean();
      // A draft left by a kill, and a restart.
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

  test('whatever was applied, removed and purged, partly or completely, in any order', async () => {
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
        await startHistory(512);
        history.apply(rowsOf([7001], 1, 1));
        for (const one of steps) {
          if (one.kind === 'remove') await history.remove(one.subscription);
          else if (one.kind === 'purge') await purgeUntil(one.turns);
          else if (one.kind === 'restart') await history.restart();
          else {
            const { subscriptions, from, count, minute, score, batchRows, hasEpoch } = one;
            const rows = rowsOf(subscriptions, from, count, rescored(minute, score));
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

  test('with removed rows in the open segment: later entries go into another one', async () => {
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

  test('if the database refuses the removal at first, as on a full disk', async () => {
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
    assert.equal(commits().length, before + 1, 'it must be logged once');
    assert.equal(await history.purge(), null);
    assert.deepEqual(linesOf(7002), []);
    await assertEqual('purged');
  });

  test('for a database from before the removal, with any part of its rows', async () => {
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
      history.apply(rowsOf([7002, 7003], 100, 40, rescored(10, 80)));
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

  test('for a log that is truncated before the removal: a stream has all its rows, or none', async () => {
    await fill();
    await history.remove(7002);
    // After six steps that delete rows, and four segments.
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
