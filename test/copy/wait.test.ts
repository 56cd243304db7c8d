/**
 * A writer whose transactions wait for the copy, as a program: nothing is shown that the copy lacks, also over a kill, and a
 * promotion needs no version epoch.
 */
import assert from 'node:assert/strict';
import { existsSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { commitsBackwards } from '../../src/log/log-reader.ts';
import { listSegments } from '../../src/log/segment.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { createInstallation, type Installation, putFile, type Serving } from '../support/appliance.ts';
import { assertFailed } from '../support/command.ts';
import { fileName, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { flipBit } from '../support/flip-bit.ts';
import { changedRows, createMachinePair } from '../support/machine-pair.ts';
import { until } from '../support/until.ts';

const pair = createMachinePair({ WIREWATCH_COPY_WAIT: 'true' });
const { work, place, settings, one, other, drop } = pair;
after(pair.remove);
let writer = await one.serve();

type Body = Readonly<{ id: string; version: number }>;

const rowsOf = (machine: Serving, key = one.key) => changedRows<Body>(machine, key);

/** The newest entries of its log: what they did. */
const operationsIn = ({ data }: Installation) =>
  Array.from(commitsBackwards(dataFolder(data).log), ({ operation }) => operation);

/** What its log says of waiting, the newest first. */
const copyModes = (installation: Installation) =>
  operationsIn(installation).flatMap(({ kind, wait }) => (kind === 'copy mode' ? [wait] : []));

const alerts = () => one.cli(['alert', 'list']).stdout;

/** The place, in which a start may have made another one. */
function bringBack(): void {
  rmSync(place, { recursive: true, force: true });
  renameSync(`${place}-away`, place);
}

test('a file is shown once its entry is in the copy', async () => {
  const dropped = drop();
  await until('the rows', async () => (await rowsOf(writer)).length === dropped.length);
  assert.deepEqual(copyModes(one), [true]);
});

test('while the copy is away ingest waits with an alert, reads go on, and a kill shows nothing either', async () => {
  const rows = await rowsOf(writer);
  // Otherwise the note of the last delivery could be what waits.
  await until('ingest to rest', () => {
    const { copy } = JSON.parse(one.cli(['status', '--json']).stdout);
    return operationsIn(one)[0]?.kind === 'delivery time' && copy.entries_behind === 0;
  });
  renameSync(place, `${place}-away`);
  drop();
  await until('the proposal', () => operationsIn(one)[0]?.kind === 'file');
  await until('the alert', async () => /copy behind[\s\S]*Ingest waits for it/.test(alerts()));
  assert.deepEqual(await rowsOf(writer), rows);
  await writer.kill();
  writer = await one.serve();
  await until('the alert', async () => /copy behind[\s\S]*Ingest waits for it/.test(alerts()));
  assert.deepEqual(await rowsOf(writer), rows);
  // A start makes a place that is missing, and tries again and again.
  await until('the place to be back', () => {
    try {
      bringBack();
    } catch {}
    return !existsSync(`${place}-away`);
  });
  await until('the rows', async () => (await rowsOf(writer)).length === rows.length + 2);
  await until('the end of the alert', async () => !alerts().includes('copy behind'));
});

/** Ends the writer while a file is only proposed. @param meanwhile called before the next start, which then shows its rows */
async function endWithProposal(end: () => Promise<unknown>, meanwhile: () => void = () => {}): Promise<void> {
  const rows = await rowsOf(writer);
  renameSync(place, `${place}-away`);
  drop();
  await until('the alert', async () => /Ingest waits for it/.test(alerts()));
  await end();
  bringBack();
  meanwhile();
  writer = await one.serve();
  await until('the rows', async () => (await rowsOf(writer)).length === rows.length + 2);
}

test('a stop while it waits loses nothing', () => endWithProposal(() => writer.stop()));

test('a proposal hinders no healing of a damaged log, and is nothing that a restore loses', async () => {
  const kill = () => writer.kill();
  await endWithProposal(kill, () => flipBit(listSegments(join(one.data, 'log'))[0]?.path ?? ''));
  await writer.logged('the log', ({ msg }) => msg === 'the damaged log was rebuilt from the copy');
  await endWithProposal(kill, () => {
    const restored = JSON.parse(one.cli(['restore', place, '--replace', '--json']).stdout);
    assert.deepEqual([restored.raised, restored.gone], [false, null]);
  });
});

test('a command on a stopped installation waits for the copy, too', async () => {
  await writer.stop();
  renameSync(place, `${place}-away`);
  const refused = one.cli(['window', 'expect', 'newswire', '2026-11-20T08:00:00Z'], { anyStatus: true });
  const unwritten = /could not be written, for which changes wait: .*\. What was begun is completed once/;
  assertFailed(refused, 1, unwritten);
  bringBack();
  one.cli(['window', 'expect', 'newswire', '2026-11-20T09:00:00Z']);
  writer = await one.serve();
});

test('a standby that is promoted continues versions and positions; what the old writer proposed is not shown', async () => {
  other.cli(['restore', place, '--replace']);
  const standby = await other.serve();
  const rows = drop();
  const isRead = async () => (await rowsOf(writer)).some(({ id }) => id.endsWith(`.${rows[1]?.article_id}`));
  await until('the rows', isRead);
  const before = await rowsOf(writer);
  writer.kill('SIGSTOP');
  other.cli(['promote']);
  drop();
  await until('the new rows', async () => (await rowsOf(standby)).length > before.length);
  const versions = (await rowsOf(standby)).map(({ version }) => version);
  assert.deepEqual(new Set(versions), new Set([1]), 'an epoch raises versions');
  writer.kill('SIGCONT');
  await until('the takeover', async () => (await writer.get('/v1/health')).status === 503);
});

test('waiting needs a copy, and ends only through it', async () => {
  using alone = createInstallation({
    ...settings,
    WIREWATCH_COPY_TO: join(work, 'another'),
    WIREWATCH_INGEST_DROP: join(work, 'another-drop'),
  });
  const waiting = await alone.serve();
  const readFile = async (serving: Serving, count: number) => {
    putFile(join(work, 'another-drop'), fileName('newswire', nextWindowMs()), ndjson([newRow()]));
    await until('the row', async () => (await rowsOf(serving, alone.key)).length === count);
  };
  await readFile(waiting, 1);
  await waiting.stop();
  const refused = alone.begin({ WIREWATCH_COPY_TO: '', WIREWATCH_COPY_WAIT: 'false' });
  assert.equal(await refused.ended, 78);
  const ending = await alone.serve({ WIREWATCH_COPY_WAIT: 'false' });
  await readFile(ending, 2);
  await ending.stop();
  assert.deepEqual(copyModes(alone), [false, true]);
  await (await alone.serve({ WIREWATCH_COPY_TO: '', WIREWATCH_COPY_WAIT: 'false' })).stop();
});
