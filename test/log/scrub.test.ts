/** A scrub finds nothing if nothing is damaged. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  DELETE_DETECTIONS,
  DELETE_RESCORED,
  DELETE_STREAM_ROWS,
  endedStreams,
} from '../../src/log/detection-rows.ts';
import { listSegments } from '../../src/log/segment.ts';
import { placesOf } from '../../src/store/stream-place.ts';
import { createHistory, type History, rescored } from '../support/history.ts';
import { assertClean, CLEAN, fill, newRows, scrubbed } from '../support/scrub.ts';

type AtStep = (step: number) => Promise<void> | void;

/** Scrubs while something happens at each of its steps, counted from 1. @returns how many there were */
async function assertCleanWith(history: History, atStep: AtStep): Promise<number> {
  let steps = 0;
  const { findings, not_compared } = await scrubbed(history, async () => {
    steps += 1;
    await atStep(steps);
  });
  assert.deepEqual({ findings, not_compared }, CLEAN);
  return steps;
}

describe('nothing is found if nothing is damaged', () => {
  let history: History;
  before(async () => {
    history = await createHistory();
  });
  after(() => history.delete());

  test('in a new database, beside ingest, and stopped', async () => {
    await assertClean(history, 'new');
    await fill(history);
    assert.ok(listSegments(history.folder.log).length > 2);
    await assertClean(history, 'beside the writer');
    history.stop();
    await assertClean(history, 'stopped');
    await history.restart();
    await assertClean(history, 'started again');
  });

  test('with transactions between any two steps', async () => {
    const steps = await assertCleanWith(history, (step) => {
      if (step % 2 !== 0 || step >= 80) return;
      history.apply(newRows(10_000 + step * 10, 10));
      history.apply(newRows(1 + step, 20, rescored(59, step)));
    });
    assert.ok(steps > 20, `${steps} steps`);
  });

  test('while a subscription is removed, and after it is added again', async () => {
    await assertCleanWith(history, async (step) => {
      if (step === 20) await history.remove(7002);
      if (step === 22) history.apply(newRows(1, 50));
    });
    await assertClean(history, 'afterwards');
  });

  test('while the log is rewritten without removed rows, at any step', async () => {
    for (let step = 1, steps = 1; step <= steps; step += 1) {
      using small = await createHistory(1024);
      small.apply(newRows(1, 60));
      small.apply(newRows(1, 40, rescored(15, 90)));
      const count = await assertCleanWith(small, async (at) => {
        // A range that was read before the removal contains rows that the log no longer has.
        if (at === step - 1)
          for (const minute of [16, 17, 18]) small.apply(newRows((minute - 10) * 10, 80, rescored(minute)));
        if (at !== step) return;
        await small.remove(7002);
        await small.compact();
      });
      steps = Math.max(steps, count);
    }
  });

  test('while rows of a removed subscription are still to be deleted', async () => {
    history.apply(newRows(20_000, 300));
    const { writer } = history;
    const applier = writer().begin();
    applier.removeSubscription(7001);
    writer().commit(applier, { kind: 'remove' });
    await assertClean(history, 'none is deleted');
    const [ordinal = 0] = endedStreams(history.db(), 7001);
    const values = { ordinal, ...placesOf(ordinal), limit: 10 };
    for (const sql of [DELETE_STREAM_ROWS, DELETE_DETECTIONS, DELETE_RESCORED])
      assert.ok(history.db().prepare(sql).run(values).changes > 0);
    await assertClean(history, 'some are deleted');
  });
});
