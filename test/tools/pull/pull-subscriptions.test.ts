/**
 * `wirewatch pull` when the subscriptions of its key change: the copy has every detection that the key reads (client
 * guide: When the subscriptions of your key change).
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { DAY_MS, formatMs, HOUR_MS, SECOND_MS } from '../../../src/time.ts';
import { createKey, sharedAppliance } from '../../support/appliance.ts';
import { assertFailed, NO_PRELOAD, runBeside, succeedBeside } from '../../support/command.ts';
import { idOf, ndjson, newRow, type Row } from '../../support/export-files.ts';
import { preloaded } from '../../support/preload.ts';
import { inFolder, runProgram } from '../../support/program.ts';
import { pullArgs, type Responses, sqlIn, subscription, withService } from '../../support/pull.ts';

/** The ids of all detections, by subscription. */
const ids: Record<number, string[]> = { 7001: [], 7002: [] };

const appliance = await sharedAppliance();
const key = createKey(appliance.cli, 'agency', '7001,7002');

/** A detection of each subscription reaches the stream; the time of one is an hour ahead. */
async function deliver(): Promise<void> {
  const first_detected_at = formatMs(Date.now() + HOUR_MS);
  const ahead = newRow({ subscription_id: 7002, first_detected_at, last_scored_at: first_detected_at });
  const rows: Row[] = [newRow({ subscription_id: 7001 }), ahead];
  await appliance.dropped(`newswire.backfill-${idOf(ahead)}.ndjson`, ndjson(rows));
  for (const row of rows) ids[Number(row.subscription_id)]?.push(idOf(row));
}
beforeEach(deliver);

/** What the key reads from now on. */
function reads(...subscriptions: number[]): void {
  appliance.cli(['key', 'set', String(key.split('_')[2]), '--subscriptions', subscriptions.join()]);
}

const every = (...subscriptions: number[]) => subscriptions.flatMap((id) => ids[id] ?? []).sort();

/** Runs `use` for a new copy, with a function that updates it. */
const withCopy = (use: (into: string, pull: (...more: string[]) => Promise<string>) => Promise<void>) =>
  inFolder((folder) => {
    const into = join(folder, 'copy.db');
    const args = (more: string[]) => pullArgs({ ...appliance, key }, folder, '--into', into, ...more);
    return use(into, async (...more) => (await succeedBeside(args(more))).stdout);
  });

const idsIn = (into: string) => sqlIn(into, 'SELECT id FROM detections ORDER BY id').map(({ id }) => `${id}`);

test('a subscription that was added is copied completely, once', () =>
  withCopy(async (into, pull) => {
    reads(7001);
    await pull('--full');
    await deliver();
    await pull('--full');
    assert.deepEqual(idsIn(into), every(7001));
    reads(7001, 7002);
    await pull();
    assert.deepEqual(idsIn(into), every(7001, 7002));
    await pull('--compare');
    const again = JSON.parse(await pull('--full', '--json'));
    assert.deepEqual([again.rows_read, again.stored], [0, 0]);
  }));

test('one that was removed and came back is copied again', () =>
  withCopy(async (into, pull) => {
    reads(7001, 7002);
    await pull('--full');
    reads(7001);
    await deliver();
    await pull();
    reads(7001, 7002);
    await pull();
    assert.deepEqual(idsIn(into), every(7001, 7002));
  }));

test('a copy of changes gets only the changes of a subscription that was added', () =>
  withCopy(async (into, pull) => {
    reads(7001);
    // The clock of an answer counts seconds: the detections so far must be of an earlier one.
    await sleep(SECOND_MS);
    await pull();
    reads(7001, 7002);
    await deliver();
    await pull();
    const found = new Set(idsIn(into));
    for (const id of [7001, 7002])
      assert.deepEqual([found.has(String(ids[id]?.[0])), found.has(String(ids[id]?.at(-1)))], [false, true]);
  }));

test('one that was removed during the walk, and came back, is copied completely', () =>
  withCopy(async (into, pull) => {
    reads(7001, 7002);
    await pull('--full');
    // As if it had been killed before it read any period.
    const me = JSON.parse(await (await appliance.get('/v1/me', key)).text());
    const from = String(me.subscriptions[0].data_starts.text).slice(0, 10);
    const to = new Date().toISOString().slice(0, 10);
    const step = (subscription_id: number) => ({ subscription_id, content_type: 'text', from, to });
    const walk = JSON.stringify({ steps: [step(7002), step(7001)], cursor: 'of-the-first' });
    sqlIn(into, 'DELETE FROM detections');
    sqlIn(into, `UPDATE state SET notes = json_set(notes, '$.walk', json('${walk}'))`);
    reads(7001);
    await pull();
    assert.deepEqual(idsIn(into), every(7001));
    reads(7001, 7002);
    await pull();
    assert.deepEqual(idsIn(into), every(7001, 7002));
  }));

test('one that is removed or added again during the walk changes it; a 400 for another reason ends it', () => {
  const subscriptions = [subscription(7001, 'text'), subscription(7002, 'text')];
  const removed: Responses = [...Array(2).fill([200, {}]), [400, {}, () => void subscriptions.shift()]];
  return withService(subscriptions, removed, async (to, folder, requests, responses) => {
    const args = [...to, '--into', join(folder, 'copy.db'), '--full'];
    await succeedBeside(args);
    assert.match(requests.at(-2) ?? '', /detections\?subscription_id=7002/);
    const data_starts = { text: formatMs(Date.now() - 40 * DAY_MS) };
    subscriptions.push({ ...subscription(7003, 'text'), data_starts });
    responses.push([200, {}], [400, {}]);
    assertFailed(await runBeside(args), 1, /detections answered with status 400/);

    // Removed, and added again: the service refuses its earlier days.
    subscriptions.splice(-1, 1, subscription(7003, 'text'));
    requests.length = 0;
    await succeedBeside(args);
    const read = requests.map((target) => new URL(target, 'http://x').searchParams);
    const from = new Date().toISOString().slice(0, 10);
    const asked = read.map((query) => `${query.get('subscription_id')} ${query.get('from')}`);
    assert.deepEqual(asked, ['7003 null', `7003 ${from}`, 'null null']);

    // Removed before any of its periods is read.
    subscriptions.push(subscription(7004, 'text'));
    responses.push([400, {}, () => void subscriptions.pop()]);
    await succeedBeside(args);
  });
});

test('with --follow, one that was added is copied completely', { skip: NO_PRELOAD }, () =>
  inFolder(async (folder) => {
    reads(7001);
    const into = join(folder, 'copy.ndjson');
    const follow = ['--into', into, '--full', '--follow', '--poll-seconds', '1'];
    const fast = 'const now = performance.now.bind(performance); performance.now = () => now() * 1000;';
    await using program = runProgram(pullArgs({ ...appliance, key }, folder, ...follow), preloaded(fast));
    const has = (expected: string[]) => () =>
      (existsSync(into) && expected.every((id) => readFileSync(into, 'utf8').includes(`"${id}"`))) ||
      undefined;
    await program.until('the history', has(every(7001)));
    reads(7001, 7002);
    await program.until('the history of the other', has(every(7001, 7002)));
  }),
);
