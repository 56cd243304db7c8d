/**
 * `wirewatch pull` when the subscriptions of its key change: the copy has every detection that the key reads (client
 * guide: When the subscriptions of your key change).
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { beforeEach, test } from 'node:test';
import { createKey, sharedAppliance } from '../../support/appliance.ts';
import { NO_PRELOAD } from '../../support/command.ts';
import { fileName, idOf, ndjson, newRow, nextWindowMs, type Row } from '../../support/export-files.ts';
import { preloaded } from '../../support/preload.ts';
import { inFolder, runProgram } from '../../support/program.ts';
import { pulled } from '../../support/pull.ts';

/** The ids of all detections, by subscription. */
const ids: Record<number, string[]> = { 7001: [], 7002: [] };

const appliance = await sharedAppliance();
const key = createKey(appliance.cli, 'agency', '7001,7002');

/** A detection of each subscription reaches the stream. */
async function deliver(): Promise<void> {
  const rows: Row[] = [7001, 7002].map((subscription_id) => newRow({ subscription_id }));
  await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson(rows));
  for (const row of rows) ids[Number(row.subscription_id)]?.push(idOf(row));
}
beforeEach(deliver);

function reads(subscriptions: string): void {
  appliance.cli(['key', 'set', String(key.split('_')[2]), '--subscriptions', subscriptions]);
}

function argsIn(folder: string, ...more: string[]): string[] {
  writeFileSync(join(folder, 'key'), key);
  return ['pull', '--base-url', appliance.serving().url, '--key-file', join(folder, 'key'), ...more];
}

async function succeeds(args: string[]): Promise<string> {
  const { code, stderr } = await pulled(args);
  assert.equal(code, 0, stderr);
  return stderr;
}

function idsIn(into: string): string[] {
  if (into.endsWith('.ndjson')) {
    const lines = readFileSync(into, 'utf8').trimEnd().split('\n');
    return [...new Set(lines.map((line) => String(JSON.parse(line).id)))].sort();
  }
  const db = new DatabaseSync(into);
  const rows = db.prepare('SELECT id FROM detections ORDER BY id').all();
  db.close();
  return rows.map(({ id }) => String(id));
}

function every(...subscriptions: number[]): string[] {
  return subscriptions.flatMap((id) => ids[id] ?? []).sort();
}

test('a subscription that was added is copied completely, once', () =>
  inFolder(async (folder) => {
    reads('7001');
    const into = join(folder, 'copy.db');
    const args = argsIn(folder, '--into', into, '--full');
    await succeeds(args);
    await deliver();
    await succeeds(args);
    assert.deepEqual(idsIn(into), every(7001));
    reads('7001,7002');
    await succeeds(args.slice(0, -1));
    assert.deepEqual(idsIn(into), every(7001, 7002));
    const compared = await pulled([...args.slice(0, -1), '--compare']);
    assert.equal(compared.code, 0, compared.stdout);
    const again = JSON.parse((await pulled([...args, '--json'])).stdout);
    assert.deepEqual([again.rows_read, again.stored], [0, 0]);
  }));

test('one that was removed and came back is copied again', () =>
  inFolder(async (folder) => {
    reads('7001,7002');
    const into = join(folder, 'copy.db');
    const args = argsIn(folder, '--into', into);
    await succeeds([...args, '--full']);
    reads('7001');
    await deliver();
    await succeeds(args);
    reads('7001,7002');
    await succeeds(args);
    assert.deepEqual(idsIn(into), every(7001, 7002));
  }));

test('a copy of changes gets only the changes of a subscription that was added', () =>
  inFolder(async (folder) => {
    reads('7001');
    const into = join(folder, 'copy.db');
    const args = argsIn(folder, '--into', into);
    await succeeds(args);
    reads('7001,7002');
    await deliver();
    await succeeds(args);
    const found = new Set(idsIn(into));
    for (const id of [7001, 7002])
      assert.deepEqual([found.has(String(ids[id]?.[0])), found.has(String(ids[id]?.at(-1)))], [false, true]);
  }));

test('one that was removed during the walk, and came back, is copied completely', () =>
  inFolder(async (folder) => {
    reads('7001,7002');
    const into = join(folder, 'copy.db');
    const args = argsIn(folder, '--into', into);
    await succeeds([...args, '--full']);
    // As if it had been killed before it read any period.
    const me = JSON.parse(await (await appliance.get('/v1/me', key)).text());
    const from = String(me.subscriptions[0].data_starts.text).slice(0, 10);
    const to = new Date().toISOString().slice(0, 10);
    const step = (subscription_id: number) => ({ subscription_id, content_type: 'text', from, to });
    const walk = JSON.stringify({ steps: [step(7002), step(7001)], cursor: 'of-the-first' });
    const db = new DatabaseSync(into);
    db.exec(`DELETE FROM detections; UPDATE state SET notes = json_set(notes, '$.walk', json('${walk}'))`);
    db.close();
    reads('7001');
    await succeeds(args);
    assert.deepEqual(idsIn(into), every(7001));
    reads('7001,7002');
    await succeeds(args);
    assert.deepEqual(idsIn(into), every(7001, 7002));
  }));

test('with --follow, one that was added is copied completely', { skip: NO_PRELOAD }, () =>
  inFolder(async (folder) => {
    reads('7001');
    const into = join(folder, 'copy.ndjson');
    const args = argsIn(folder, '--into', into, '--full', '--follow', '--poll-seconds', '1');
    const fast = preloaded(
      'const now = performance.now.bind(performance); performance.now = () => now() * 1000;',
    );
    const program = runProgram(args, fast);
    const has = (expected: string[]) => () =>
      existsSync(into) && expected.every((id) => readFileSync(into, 'utf8').includes(`"${id}"`))
        ? true
        : undefined;
    await program.until('the history', has(every(7001)));
    reads('7001,7002');
    await program.until('the history of the other', has(every(7001, 7002)));
    assert.equal(await program.stop(), 0, program.stderr());
    assert.deepEqual(idsIn(into), every(7001, 7002));
  }),
);
