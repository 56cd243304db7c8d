/**
 * An older database is put back under the appliance: it is led through what happened since, and comes out as it
 * was. Clients notice nothing but that they read again what they know.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { formatMs, formatWindowStart } from '../../src/time.ts';
import {
  createInstallation,
  createKey,
  type Installation,
  putFile,
  type Serving,
} from '../support/appliance.ts';
import { contentOf, fileName, idOf, newRow, nextWindowMs, type Row } from '../support/export-files.ts';
import {
  assertSameContent,
  assertSameShown,
  atRest,
  CAUGHT_UP,
  Client,
  contentOfDatabase,
  copyDatabase,
  journalOf,
  logged,
  OLDER,
  putBack,
  RAISED,
  shown,
} from '../support/put-back.ts';

const PATIENT = { timeout: 180_000 };
const SETTINGS = { WIREWATCH_INGEST_QUIET_MS: '0', WIREWATCH_SERVER_BASE_URL: 'https://api.example' };

let installation: Installation;
let client: Client;

beforeEach(() => {
  installation = createInstallation(SETTINGS);
  client = new Client(installation.key);
});
afterEach(() => installation.remove());

/** Drops the files one after the other, and waits until they are dealt with. */
async function drop(serving: Serving, files: readonly (readonly [string, string | Buffer])[]): Promise<void> {
  for (const [name, content] of files) {
    putFile(installation.drop, name, content);
    await atRest(installation, serving);
  }
}

/** A file of a new window with these rows, scored at its start. */
function windowOf(rows: readonly Row[]): [string, Buffer] {
  const startMs = nextWindowMs();
  const scored = rows.map((row) => ({ ...row, last_scored_at: formatMs(startMs) }));
  return [fileName('newswire', startMs), contentOf('ndjson', scored)];
}

function rescored(rows: readonly Row[], strength_score: number): Row[] {
  return rows.map((row) => ({ ...row, strength_score }));
}

const newRows = (count: number): Row[] => Array.from({ length: count }, () => newRow());

/** The database is put back and the appliance started; @returns the run, at rest */
async function afterPutBack(copy: string): Promise<Serving> {
  putBack(installation, 'detections', copy);
  return afterCatchingUp();
}

async function afterCatchingUp(): Promise<Serving> {
  const serving = await installation.serve();
  await serving.logged('that it catches up', ({ msg }) => msg === OLDER);
  await serving.logged('that it has caught up', ({ msg }) => msg === CAUGHT_UP);
  await atRest(installation, serving);
  return serving;
}

/** What was must be: in the database, and for a client that read all of it before. */
async function assertSame(serving: Serving, before: ReturnType<typeof contentOfDatabase>): Promise<void> {
  const known = new Map(client.known);
  await client.follow(serving.url);
  assertSameShown(client.known, known, 'the stream brings nothing that the client does not know');
  assertSameShown(await client.walk(serving.url), known, 'the period');
  assert.deepEqual(logged(serving.log, RAISED), []);
  assertSameContent(contentOfDatabase(installation), before);
  installation.cli(['verify']);
}

test(
  'window files: versions, windows and records come out as they were, and every cursor holds',
  PATIENT,
  async () => {
    let serving = await installation.serve();
    const rows = newRows(5);
    await drop(serving, [windowOf(rows)]);
    await client.follow(serving.url);
    const early = new Client(installation.key);
    await early.follow(serving.url);
    const copy = copyDatabase(installation, 'detections');
    await drop(serving, [
      windowOf(rescored(rows.slice(0, 3), 70)),
      windowOf([...rescored(rows.slice(1), 80), ...newRows(4)]),
      windowOf([]),
      ['newswire.20200101T0000Z.ndjson', 'broken\n'],
      ['nonsense.txt', 'nothing'],
      windowOf(rescored(rows, 90)),
    ]);
    await client.follow(serving.url);
    await serving.stop();
    const before = contentOfDatabase(installation);

    serving = await afterPutBack(copy);
    await assertSame(serving, before);
    assert.equal(client.repeated, 7 + 4 + 5, 'what was done again is read again');
    await early.follow(serving.url);
    assert.deepEqual(shown(early.known), shown(client.known), 'a client that was away misses nothing');
    assert.equal(early.repeated, 0);
    // It goes on from there, and a second start has nothing to do.
    await drop(serving, [windowOf(rescored(rows, 95))]);
    await client.follow(serving.url);
    assert.equal(client.known.get(idOf(rows[1] ?? {}))?.version, 5);
    await serving.stop();
    const again = await installation.serve();
    await atRest(installation, again);
    await again.stop();
    assert.deepEqual(logged(again.log, OLDER), []);
  },
);

test('a copy of a running appliance, its log with it, is as good', PATIENT, async () => {
  const running = await installation.serve();
  const rows = newRows(5);
  await drop(running, [windowOf(rows)]);
  const copy = copyDatabase(installation, 'detections');
  assert.ok(existsSync(join(copy, 'detections.db-wal')));
  await drop(running, [windowOf(rescored(rows, 70)), windowOf(rescored(rows, 80))]);
  await client.follow(running.url);
  await running.kill();
  const before = contentOfDatabase(installation);
  const serving = await afterPutBack(copy);
  await assertSame(serving, before);
  await serving.stop();
});

test('a database that was deleted comes out of the archive as it was', PATIENT, async () => {
  const first = await installation.serve();
  const rows = newRows(5);
  await drop(first, [windowOf(rows), windowOf(rescored(rows, 70)), windowOf(rescored(rows.slice(2), 80))]);
  await client.follow(first.url);
  await first.stop();
  const before = contentOfDatabase(installation);
  const serving = await afterPutBack(join(installation.data, 'nothing'));
  await assertSame(serving, before);
  await serving.stop();
});

/** Rows for several transactions; mostly of a subscription that the client does not read, since they are many. */
const BACKFILL_ROWS = 45_000;
const BACKFILL = 'newswire.backfill-history.csv.gz';

function historyRows(): Row[] {
  client = new Client(createKey(installation.cli, 'agency', '7001'));
  return Array.from({ length: BACKFILL_ROWS }, () => newRow({ subscription_id: 7002 }));
}

/** Drops a backfill, and windows that score some of its rows while it is applied; @returns those rows */
async function interleave(serving: Serving): Promise<Row[]> {
  const shared = newRows(4);
  const history = historyRows();
  for (const [index, row] of shared.entries()) history[index * 14_999] = { ...row, strength_score: 1 };
  putFile(installation.drop, BACKFILL, contentOf('csv.gz', history));
  const isBegun = () => journalOf(installation).some(({ part }) => part !== undefined);
  while (!isBegun()) await sleep(5);
  for (const score of [50, 60]) {
    const [name, content] = windowOf(rescored(shared, score));
    putFile(installation.drop, name, content);
    await serving.logged('that the window was applied', ({ file }) => file === name);
  }
  await atRest(installation, serving);
  return shared;
}

test('a backfill between whose parts windows scored the same detections', PATIENT, async () => {
  let serving = await installation.serve();
  await drop(serving, [windowOf(newRows(3))]);
  const copy = copyDatabase(installation, 'detections');
  const shared = await interleave(serving);
  await client.follow(serving.url);
  await serving.stop();
  const kinds = journalOf(installation).flatMap((line) =>
    ['began', 'part', 'applied'].filter((kind) => line[kind] !== undefined),
  );
  const parts = kinds.slice(kinds.indexOf('part'), kinds.lastIndexOf('part'));
  assert.ok(parts.includes('applied'), `a window came between: ${kinds}`);
  const versions = shared.map((row) => client.known.get(idOf(row))?.version);
  assert.ok(new Set(versions).size > 1, `the order counts: ${versions}`);
  const before = contentOfDatabase(installation);
  serving = await afterPutBack(copy);
  await assertSame(serving, before);
  await serving.stop();
});

test('a copy from the middle of a backfill', PATIENT, async () => {
  let serving = await installation.serve();
  putFile(installation.drop, BACKFILL, contentOf('csv.gz', historyRows()));
  while (
    !existsSync(join(installation.data, 'journal')) ||
    journalOf(installation).filter(({ part }) => part).length < 2
  )
    await sleep(5);
  await serving.stop();
  const copy = copyDatabase(installation, 'detections');
  serving = await installation.serve();
  const rows = newRows(3);
  await drop(serving, [windowOf(rows), windowOf(rescored(rows, 70))]);
  await client.follow(serving.url);
  await serving.stop();
  const before = contentOfDatabase(installation);
  serving = await afterPutBack(copy);
  await assertSame(serving, before);
  await serving.stop();
});

test('replays, and windows that were reset', PATIENT, async () => {
  let serving = await installation.serve();
  const print = newRows(4).map((row) => ({
    ...row,
    article_print: true,
    article_url: `https://example.org/${String(row.article_id)}`,
  }));
  await drop(serving, [windowOf(print), windowOf(newRows(2))]);
  const startMs = nextWindowMs();
  const name = fileName('newswire', startMs);
  installation.cli(['account', 'set', 'agency', '--print-metadata', 'on']);
  await drop(serving, [windowOf(newRows(1))]);
  const copy = copyDatabase(installation, 'detections');
  // A file that fails, the mended one that is held, and the operator's word.
  await drop(serving, [
    [name, 'broken\n'],
    [name, contentOf('ndjson', rescored(print.slice(0, 2), 33))],
    windowOf(rescored(print.slice(1), 44)),
  ]);
  installation.cli(['ingest', 'replay']);
  installation.cli(['window', 'reset', 'newswire', formatWindowStart(startMs)]);
  await drop(serving, [windowOf(rescored(print, 55))]);
  await client.follow(serving.url);
  await serving.stop();
  const kinds = journalOf(installation).flatMap((line) => Object.keys(line).slice(0, 1));
  assert.ok(kinds.includes('replayed') && kinds.includes('unapplied'), kinds.join());
  const before = contentOfDatabase(installation);
  assert.equal(before.windows?.length, 6);
  serving = await afterPutBack(copy);
  await assertSame(serving, before);
  // What commands look for is there again.
  assert.match(installation.cli(['ingest', 'explain', name]).stdout, /applied/);
  await serving.stop();
});

test('what rows leave open is filled in as it was then', PATIENT, async () => {
  let serving = await installation.serve();
  await drop(serving, [windowOf(newRows(1))]);
  const copy = copyDatabase(installation, 'detections');
  const rows = newRows(3);
  await drop(serving, [windowOf(rows)]);
  await client.follow(serving.url);
  const exportedAt = client.known.get(idOf(rows[0] ?? {}))?.exported_at;
  await serving.stop();
  const before = contentOfDatabase(installation);
  // The second in which the file was read must be over.
  while (formatMs(Date.now()) <= (exportedAt ?? '')) await sleep(50);
  serving = await afterPutBack(copy);
  await assertSame(serving, before);
  await serving.stop();
});

test('killed again and again while it catches up, it goes on where it was', {
  timeout: 300_000,
}, async () => {
  let serving = await installation.serve();
  const rows = newRows(30);
  await drop(serving, [windowOf(rows)]);
  const copy = copyDatabase(installation, 'detections');
  await interleave(serving);
  for (let score = 1; score <= 12; score += 1) await drop(serving, [windowOf(rescored(rows, score))]);
  await client.follow(serving.url);
  await serving.stop();
  const before = contentOfDatabase(installation);
  putBack(installation, 'detections', copy);
  let interrupted = 0;
  for (let killMs = 150; killMs <= 1500; killMs += 75) {
    const starting = installation.begin();
    await sleep(killMs);
    await starting.kill();
    if (logged(starting.log, OLDER).length > logged(starting.log, CAUGHT_UP).length) interrupted += 1;
  }
  assert.ok(interrupted > 0, 'it was killed while it caught up');
  serving = await installation.serve();
  await atRest(installation, serving);
  await assertSame(serving, before);
  await serving.stop();
});

test('an older access.db: revoked keys stay revoked, and what it lacks is told', PATIENT, async () => {
  const revoked = createKey(installation.cli, 'agency', '7001');
  const keys: { id: string }[] = JSON.parse(installation.cli(['key', 'list', '--json']).stdout);
  const victim = keys.find(({ id }) => revoked.includes(id))?.id ?? '';
  let serving = await installation.serve();
  const copy = copyDatabase(installation, 'access');
  const statusOf = async (key: string) =>
    (await fetch(`${serving.url}/v1/me`, { headers: { authorization: `Bearer ${key}` } })).status;
  assert.equal(await statusOf(revoked), 200);
  installation.cli(['key', 'revoke', victim]);
  installation.cli(['subscription', 'add', '7003', '--account', 'agency']);
  assert.equal(await statusOf(revoked), 401);
  await serving.stop();
  putBack(installation, 'access', copy);
  serving = await installation.serve();
  assert.equal(await statusOf(revoked), 401);
  assert.equal(await statusOf(installation.key), 200);
  const lines = serving.log.filter(({ msg }) => msg.startsWith('access.db is older than the journal'));
  assert.deepEqual(
    lines.map(({ level, keys, changes }) => ({ level, keys, changes })),
    [
      { level: 'warn', keys: [victim], changes: undefined },
      { level: 'warn', keys: undefined, changes: ['subscription 7003 added, with text,image'] },
    ],
  );
  await serving.stop();
  const again = await installation.serve();
  assert.ok(!again.log.some(({ msg }) => msg.startsWith('access.db is older')), 'it is told once');
  await again.stop();
});

test(
  'an older access.db: a command that comes before the start catches up first, and says so',
  PATIENT,
  async () => {
    const revoked = createKey(installation.cli, 'agency', '7001');
    const [, victim = ''] = /_live_([a-z2-7]{12})_/.exec(revoked) ?? [];
    await (await installation.serve()).stop();
    const copy = copyDatabase(installation, 'access');
    installation.cli(['key', 'revoke', victim]);
    installation.cli(['subscription', 'add', '7003', '--account', 'agency']);
    putBack(installation, 'access', copy);
    const { stderr } = installation.cli(['account', 'set', 'agency', '--print-metadata', 'on']);
    assert.match(stderr, new RegExp(`keys are revoked again: ${victim}\n`));
    assert.match(stderr, /make it again: subscription 7003 added/);
    const keys: { id: string; status: string }[] = JSON.parse(
      installation.cli(['key', 'list', '--json']).stdout,
    );
    assert.equal(keys.find(({ id }) => id === victim)?.status, 'revoked');
    const serving = await installation.serve();
    const answer = await fetch(`${serving.url}/v1/me`, { headers: { authorization: `Bearer ${revoked}` } });
    assert.equal(answer.status, 401);
    await serving.stop();
  },
);

test('rows of a subscription that was removed do not come back with an older database', PATIENT, async () => {
  let serving = await installation.serve();
  await drop(serving, [windowOf([...newRows(2), newRow({ subscription_id: 7002 })])]);
  const copy = copyDatabase(installation, 'detections');
  installation.cli(['subscription', 'remove', '7002', '--yes']);
  await serving.stop();
  const count = () => contentOfDatabase(installation).detections?.length;
  assert.equal(count(), 2);
  putBack(installation, 'detections', copy);
  assert.equal(count(), 3);
  serving = await installation.serve();
  await atRest(installation, serving);
  await serving.stop();
  assert.equal(count(), 2);
});
