/**
 * A writer whose transactions wait for the copy, as a program: nothing is shown that the copy lacks, also over a kill, and a
 * promotion needs no version epoch.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { newestCommits } from '../../src/log/log-reader.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { createInstallation, type Installation, putFile, type Serving } from '../support/appliance.ts';
import { fileName, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { until } from '../support/until.ts';

let work: string;
let place: string;
let settings: Record<string, string>;
let one: Installation;
let other: Installation;
let writer: Serving;

before(async () => {
  work = mkdtempSync(join(tmpdir(), 'wirewatch-wait-'));
  place = join(work, 'copy');
  settings = {
    WIREWATCH_COPY_TO: place,
    WIREWATCH_COPY_WAIT: 'true',
    WIREWATCH_INGEST_DROP: join(work, 'drop'),
    WIREWATCH_SERVER_BASE_URL: 'https://api.example',
  };
  one = createInstallation(settings);
  writer = await one.serve();
});

after(() => {
  one.remove();
  other?.remove();
  rmSync(work, { recursive: true, force: true });
});

interface Body {
  readonly id: string;
  readonly version: number;
}

/** @returns the articles, so that they can be scored again */
function drop(rows = [newRow(), newRow()]) {
  putFile(join(work, 'drop'), fileName('newswire', nextWindowMs()), ndjson(rows));
  return rows;
}

async function rowsOf({ url }: Serving): Promise<Body[]> {
  const since = new Date(Date.now() - 86_400_000).toISOString().replace(/\.\d+/, '');
  const headers = { Authorization: `Bearer ${one.key}` };
  const response = await fetch(`${url}/v1/detections/changes?since=${since}&limit=1000`, { headers });
  assert.equal(response.status, 200);
  return ((await response.json()) as { data: Body[] }).data;
}

/** The newest entries of its log: what they did. */
function operationsIn({ data }: Installation) {
  const all = { before: Number.POSITIVE_INFINITY, limit: 99, segmentsMax: 9 };
  return newestCommits(dataFolder(data).log, all, () => true).commits.map(({ operation }) => operation);
}

/** What its log says of waiting, the newest first. */
const copyModes = (installation: Installation) =>
  operationsIn(installation).flatMap(({ kind, wait }) => (kind === 'copy mode' ? [wait] : []));

const alerts = () => one.cli(['alert', 'list']).stdout;

test('a file is shown once its entry is in the copy', async () => {
  const dropped = drop();
  await until('the rows', async () => (await rowsOf(writer)).length === dropped.length);
  assert.deepEqual(copyModes(one), [true]);
});

test('while the copy is away ingest waits with an alert, reads go on, and a kill shows nothing either', async () => {
  const rows = await rowsOf(writer);
  renameSync(place, `${place}-away`);
  drop();
  await until('the proposal', () => operationsIn(one)[0]?.kind === 'file');
  await until('the alert', async () => /copy behind[\s\S]*Ingest waits for it/.test(alerts()));
  assert.deepEqual(await rowsOf(writer), rows);
  await writer.kill();
  writer = await one.serve();
  await until('the alert', async () => /copy behind[\s\S]*Ingest waits for it/.test(alerts()));
  assert.deepEqual(await rowsOf(writer), rows);
  rmSync(place, { recursive: true, force: true });
  renameSync(`${place}-away`, place);
  await until('the rows', async () => (await rowsOf(writer)).length === rows.length + 2);
  await until('the end of the alert', async () => !alerts().includes('copy behind'));
});

test('a stop while it waits loses nothing', async () => {
  const rows = await rowsOf(writer);
  renameSync(place, `${place}-away`);
  drop();
  await until('the alert', async () => /Ingest waits for it/.test(alerts()));
  await writer.stop();
  rmSync(place, { recursive: true, force: true });
  renameSync(`${place}-away`, place);
  writer = await one.serve();
  await until('the rows', async () => (await rowsOf(writer)).length === rows.length + 2);
});

test('a command on a stopped installation waits for the copy, too', async () => {
  await writer.stop();
  renameSync(place, `${place}-away`);
  const refused = one.cli(['window', 'expect', 'newswire', '2026-11-20T08:00:00Z'], { anyStatus: true });
  assert.equal(refused.status, 1);
  assert.match(refused.stderr, /could not be written, for which a change waits/);
  rmSync(place, { recursive: true, force: true });
  renameSync(`${place}-away`, place);
  one.cli(['window', 'expect', 'newswire', '2026-11-20T09:00:00Z']);
  writer = await one.serve();
});

test('a standby that is promoted continues versions and positions; what the old writer proposed is not shown', async () => {
  other = createInstallation({ ...settings, WIREWATCH_COPY_STANDBY: 'true' });
  other.cli(['restore', place, '--replace']);
  const standby = await other.serve();
  const rows = drop();
  const isRead = async () => (await rowsOf(writer)).some(({ id }) => id.endsWith(`.${rows[1]?.article_id}`));
  await until('the rows', isRead);
  const before = await rowsOf(writer);
  writer.pause('SIGSTOP');
  other.cli(['promote']);
  drop();
  await until('the new rows', async () => (await rowsOf(standby)).length > before.length);
  const versions = (await rowsOf(standby)).map(({ version }) => version);
  assert.deepEqual(new Set(versions), new Set([1]), 'an epoch raises versions');
  writer.pause('SIGCONT');
  await until('the takeover', async () => (await writer.get('/v1/health')).status === 503);
});

test('waiting needs a copy, and ends only through it', async () => {
  const alone = createInstallation({
    ...settings,
    WIREWATCH_COPY_TO: join(work, 'another'),
    WIREWATCH_INGEST_DROP: join(work, 'another-drop'),
  });
  try {
    const waiting = await alone.serve();
    const readFile = async (serving: Serving, count: number) => {
      putFile(join(work, 'another-drop'), fileName('newswire', nextWindowMs()), ndjson([newRow()]));
      await until('the row', async () => (await rowsOf(serving)).length === count);
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
  } finally {
    alone.remove();
  }
});
