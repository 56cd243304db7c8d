/** A wrong clock: no irreversible actions, and correct answers to clients. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import type { ExportFileName } from '../../src/exports/file-name.ts';
import { exportReader } from '../../src/ingest/reading/export-reader.ts';
import { steadyClock } from '../../src/ingest/steady-clock.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, WINDOW_MS } from '../../src/time.ts';
import { type Appliance, showLogOfFailures, startAppliance } from '../support/appliance.ts';
import { changeDetections, reading } from '../support/database-content.ts';
import { fileName, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { exportTrials } from '../support/export-trials.ts';
import { openAlertsOf } from '../support/installation-state.ts';
import { isOpen } from '../support/open-files.ts';
import { until } from '../support/until.ts';

let appliance: Appliance;
showLogOfFailures(() => appliance?.serving());
/** For `await using`. */
async function started(): Promise<Appliance> {
  appliance = await startAppliance({ WIREWATCH_INGEST_QUIET_MS: '0' });
  return appliance;
}

const { ingestAnother: apply } = exportTrials(() => appliance);

/** Delivery times in the order of the stream, epoch milliseconds. The appliance must be stopped. */
function readDeliveries(): number[] {
  const select = 'SELECT delivered_at FROM delivery ORDER BY first_position';
  return reading(join(appliance.data, 'detections.db'), (db) => db.prepare<[], number>(select).pluck().all());
}

test('with a clock behind, a change is not delivered before the end of a finished window, and a file too far ahead waits', async () => {
  await using _ = await started();
  await apply();
  await appliance.serving().stop();
  // The newest finished window ends in the future, as if the clock had been set back. Earlier ones may already be missing.
  const start = Math.floor((Date.now() + 2 * DAY_MS) / WINDOW_MS) * WINDOW_MS;
  changeDetections(appliance.data, `UPDATE export_window SET window_start = ${start} WHERE status = 'done'`);
  await appliance.restart();
  const end = start + WINDOW_MS;
  const name = fileName('newswire', end + WINDOW_MS);
  appliance.put(name, ndjson([newRow()]));
  await apply();
  assert.ok(existsSync(join(appliance.drop, name)));
  assert.deepEqual(readdirSync(join(appliance.drop, 'refused')), []);
  await appliance.serving().stop();
  assert.ok((readDeliveries().at(-1) ?? 0) >= end);
});

test('after a clock ahead is corrected, windows are judged by the right time, without an alert; deliveries continue from the latest', async () => {
  await using _ = await started();
  await apply();
  await appliance.serving().stop();
  // As a clock jump leaves it.
  const ahead = Date.now() + DAY_MS;
  changeDetections(appliance.data, `UPDATE delivery SET delivered_at = ${ahead}`);
  await appliance.restart();
  const thisWindow = Math.floor(Date.now() / WINDOW_MS) * WINDOW_MS;
  // The window after this one, which may end during the test.
  const early = fileName('newswire', thisWindow + WINDOW_MS);
  const tooFar = fileName('newswire', thisWindow + DAY_MS + 2 * WINDOW_MS);
  appliance.put(early, ndjson([newRow()]));
  assert.equal((await appliance.dropped(tooFar, ndjson([newRow()]))).msg, 'file refused');
  assert.ok(existsSync(join(appliance.drop, 'refused', tooFar)));
  await apply();
  assert.ok(existsSync(join(appliance.drop, early)));
  assert.ok(!(await openAlertsOf(appliance)).includes('clock wrong'));
  await appliance.serving().stop();
  const [jumped, next, ...more] = readDeliveries();
  assert.deepEqual([jumped, more], [ahead, []]);
  assert.ok(next !== undefined && next >= ahead);
});

test('a stop waits for no file without valid rows', { skip: process.platform !== 'linux' }, async () => {
  await using _ = await started();
  const path = join(appliance.drop, `${fileName('newswire', nextWindowMs())}.gz`);
  const blank = gzipSync(Buffer.alloc(50_000_000, '\n'), { level: 1 });
  writeFileSync(path, Buffer.concat(Array.from({ length: 40 }, () => blank)));
  await until('it is being read', () => isOpen(path));
  assert.equal(await appliance.serving().stop(), 0);
  assert.ok(existsSync(path), 'the file must not be read to its end');
});

test('after a stop no file is begun', () => {
  const options = { settings: {}, stopped: AbortSignal.abort(new Error('stopping')) };
  const exports = exportReader(options as never, {} as never, Date.now);
  assert.throws(() => exports.read({ path: '', found: null }, {} as ExportFileName, ''), /^Error: stopping$/);
});

test('irreversible actions wait until the clock has run evenly for an hour', () => {
  let [wallMs, monotonicMs] = [Date.now(), 0];
  const startOf = () => wallMs - monotonicMs;
  const clock = steadyClock(startOf, () => monotonicMs);
  const advance = (ms: number) => {
    wallMs += ms;
    monotonicMs += ms;
    return clock.isSteady();
  };
  assert.ok(advance(0));
  assert.ok(!clock.isProven(), 'a start may begin with a wrong clock');
  assert.ok(advance(DAY_MS));
  assert.ok(clock.isProven());
  // The clock is corrected slightly every day.
  wallMs += MINUTE_MS;
  assert.ok(advance(1000));
  for (const jumpMs of [40 * DAY_MS, -40 * DAY_MS]) {
    wallMs += jumpMs;
    assert.ok(!advance(1000));
    assert.ok(!clock.isProven());
    assert.ok(!advance(HOUR_MS / 2));
    assert.ok(advance(HOUR_MS / 2));
  }
});
