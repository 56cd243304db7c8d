/**
 * An older database is put back under the appliance: it is led through what happened since, and comes out as it
 * was. Clients notice nothing but that they read again what they know.
 */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { formatMs } from '../src/time.ts';
import { createInstallation, type Installation, putFile, type Serving } from './support/appliance.ts';
import { contentOf, fileName, idOf, newRow, nextWindowMs, type Row } from './support/export-files.ts';
import {
  atRest,
  CAUGHT_UP,
  Client,
  contentOfDatabase,
  copyDatabase,
  logged,
  OLDER,
  putBack,
  RAISED,
  shown,
} from './support/put-back.ts';

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
  assert.deepEqual(client.known, known, 'the stream brings nothing that the client does not know');
  assert.deepEqual(shown(await client.walk(serving.url)), shown(known));
  assert.deepEqual(logged(serving.log, RAISED), []);
  assert.deepEqual(contentOfDatabase(installation), before);
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
