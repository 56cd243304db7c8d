/**
 * An older database is put back and it is not proven that versions come out as clients know them: they are raised by
 * 1,000, once, and no client ever takes newer content for older.
 */
import assert from 'node:assert/strict';
import { appendFileSync, copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { appendRestored } from '../../src/store/journal.ts';
import { formatMs, HOUR_MS } from '../../src/time.ts';
import {
  createInstallation,
  createKey,
  type Installation,
  type LogLine,
  putFile,
  type Serving,
} from '../support/appliance.ts';
import { contentOf, fileName, idOf, newRow, nextWindowMs, type Row } from '../support/export-files.ts';
import {
  atRest,
  Client,
  copyDatabase,
  journalOf,
  logged,
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

async function drop(serving: Serving, name: string, content: Buffer): Promise<LogLine> {
  putFile(installation.drop, name, content);
  const line = await serving.logged('what became of it', ({ file }) => file === name);
  await atRest(installation, serving);
  return line;
}

/** Drops a file of a new window in which these rows have a score. */
function dropWindow(serving: Serving, rows: readonly Row[], strength_score: number): Promise<LogLine> {
  const startMs = nextWindowMs();
  const scored = rows.map((row) => ({ ...row, strength_score, last_scored_at: formatMs(startMs) }));
  return drop(serving, fileName('newswire', startMs), contentOf('ndjson', scored));
}

/** What happened before the disaster. */
interface Past {
  /** The database as of the first window. */
  readonly copy: string;
  /** In all three windows: version 3. */
  readonly rows: readonly Row[];
  /** In the first and the second: version 2. */
  readonly second: Row;
  /** In the first window alone: version 1. */
  readonly first: Row;
  /** In the third alone: version 1. */
  readonly third: Row;
  /** Where the second and the third file lie. */
  readonly files: readonly string[];
}

/** Three windows, a copy after the first, and a client that has read them all. @param between after the second */
async function makePast(between: () => void = () => {}): Promise<Past> {
  const serving = await installation.serve();
  const [first, second, third, ...rows] = Array.from({ length: 6 }, () => newRow());
  assert.ok(first !== undefined && second !== undefined && third !== undefined);
  await dropWindow(serving, [first, second, ...rows], 50);
  const copy = copyDatabase(installation, 'detections');
  const two = await dropWindow(serving, [second, ...rows], 60);
  between();
  const three = await dropWindow(serving, [third, ...rows], 70);
  await client.follow(serving.url);
  await serving.stop();
  assert.deepEqual(versionsOf({ first, second, third, rows }), [1, 2, 1, 3]);
  const files = [two, three].map(({ destination }) => join(installation.drop, String(destination)));
  return { copy, rows, first, second, third, files };
}

function versionsOf({ first, second, third, rows }: Pick<Past, 'first' | 'second' | 'third' | 'rows'>) {
  return [first, second, third, ...rows.slice(0, 1)].map((row) => client.known.get(idOf(row))?.version);
}

/** Starts, and reads on; @returns the run, with the reasons for raises that it gave */
async function begin(
  settings: Record<string, string> = {},
): Promise<{ serving: Serving; reasons: unknown[] }> {
  const serving = await installation.serve(settings);
  await atRest(installation, serving);
  await client.follow(serving.url);
  return {
    serving,
    reasons: logged(serving.log, RAISED).map(({ level, reason }) => (level === 'warn' ? reason : level)),
  };
}

/** The next change of every detection is raised where it was not yet, and a raise happens once. */
async function assertRaisedOnce(serving: Serving, past: Past, next: readonly number[]): Promise<void> {
  const { first, second, third, rows } = past;
  await dropWindow(serving, [first, second, third, ...rows], 90);
  await client.follow(serving.url);
  assert.deepEqual(versionsOf(past), next);
  assert.deepEqual(shown(await client.walk(serving.url)), shown(client.known));
  await serving.stop();
  const again = await begin();
  assert.deepEqual(again.reasons, [], 'once');
  await dropWindow(again.serving, [first, second, third, ...rows], 91);
  await client.follow(again.serving.url);
  assert.deepEqual(
    versionsOf(past),
    next.map((version) => version + 1),
  );
  // A detection that is first detected after the raise cannot have been known before.
  const later = formatMs(Date.now() + HOUR_MS);
  const young = newRow({ first_detected_at: later, last_scored_at: later });
  const old = newRow();
  await drop(again.serving, 'newswire.backfill-later.ndjson', contentOf('ndjson', [young, old]));
  await client.follow(again.serving.url);
  assert.equal(client.known.get(idOf(young))?.version, 1);
  assert.equal(client.known.get(idOf(young))?.event, 'created');
  assert.equal(client.known.get(idOf(old))?.version, 1001);
  assert.equal(client.known.get(idOf(old))?.event, 'updated');
  await again.serving.stop();
  assert.equal(journalOf(installation).filter(({ raised }) => raised !== undefined).length, 1);
}

/** The older database is put back, and everything since is read again under a raise. */
async function assertRaised(
  past: Past,
  reason: string,
  { settings = {}, versions = [1, 1002, 1001, 1003] }: Expected = {},
): Promise<void> {
  putBack(installation, 'detections', past.copy);
  const { serving, reasons } = await begin(settings);
  assert.deepEqual(reasons, [reason]);
  assert.deepEqual(versionsOf(past), versions);
  installation.cli(['verify']);
  await assertRaisedOnce(
    serving,
    past,
    versions.map((version) => (version === 1 ? 1002 : version + 1)),
  );
}

interface Expected {
  readonly settings?: Record<string, string>;
  readonly versions?: readonly number[];
}

test('the journal was deleted', PATIENT, async () => {
  const past = await makePast();
  rmSync(join(installation.data, 'journal'));
  await assertRaised(past, 'the journal is missing');
});

for (const isChangedBefore of [false, true]) {
  const when = isChangedBefore ? ', and a command came before the start' : '';
  test(`the database is gone, and its journal with it${when}`, PATIENT, async () => {
    const past = await makePast();
    for (const name of ['detections.db', 'detections.db-wal', 'detections.db-shm', 'journal'])
      rmSync(join(installation.data, name), { force: true });
    if (isChangedBefore) installation.cli(['subscription', 'add', '7003', '--account', 'agency']);
    const { serving, reasons } = await begin();
    assert.deepEqual(reasons, ['the journal is missing']);
    await client.follow(serving.url);
    assert.ok(versionsOf(past).every((version) => (version ?? 0) > 1000));
    assert.deepEqual(shown(await client.walk(serving.url)), shown(client.known));
    await serving.stop();
    const again = await begin();
    assert.deepEqual(again.reasons, [], 'once');
    await again.serving.stop();
  });
}

test('access.db is that of another folder: it is said once, and nothing is raised', PATIENT, async () => {
  await makePast();
  const other = createInstallation({}, true);
  try {
    await (await other.serve()).stop();
    other.cli(['account', 'set', 'agency', '--print-metadata', 'on']);
    putBack(installation, 'access', other.data);
  } finally {
    other.remove();
  }
  const said = 'access.db was made beside another journal: what was changed here since is not known';
  for (const times of [1, 0]) {
    const serving = await installation.serve();
    await atRest(installation, serving);
    assert.equal(logged(serving.log, said).length, times);
    assert.deepEqual(logged(serving.log, RAISED), []);
    await serving.stop();
    installation.cli(['account', 'add', `another-${times}`, '--name', 'Another']);
  }
});

test('the journal is that of another folder', PATIENT, async () => {
  const past = await makePast();
  const other = createInstallation(SETTINGS, true);
  try {
    const serving = await other.serve();
    putFile(other.drop, fileName('newswire', nextWindowMs()), contentOf('ndjson', [newRow()]));
    await atRest(other, serving);
    await serving.stop();
    copyFileSync(join(other.data, 'journal'), join(installation.data, 'journal'));
  } finally {
    other.remove();
  }
  await assertRaised(past, 'the journal is another one than the database knows');
});

test('the journal was shortened to before the older database', PATIENT, async () => {
  const past = await makePast();
  const path = join(installation.data, 'journal');
  const text = readFileSync(path, 'utf8');
  writeFileSync(path, text.slice(0, text.indexOf('{"applied":1')));
  await assertRaised(past, 'the journal is shorter than the database knows it');
});

test('the journal was emptied', PATIENT, async () => {
  const past = await makePast();
  writeFileSync(join(installation.data, 'journal'), '');
  await assertRaised(past, 'the journal is empty');
});

test('the journal lacks lines in between', PATIENT, async () => {
  const past = await makePast();
  const path = join(installation.data, 'journal');
  const lines = readFileSync(path, 'utf8').split('\n');
  writeFileSync(path, lines.filter((line) => !line.includes('{"applied":2')).join('\n'));
  // The file of the line that is gone is found last: it changes nothing of what the third one brought.
  await assertRaised(past, 'the journal lacks lines', { versions: [1, 1002, 1001, 1002] });
});

test('the journal was shortened under a database that stayed', PATIENT, async () => {
  const past = await makePast();
  const path = join(installation.data, 'journal');
  const text = readFileSync(path, 'utf8');
  writeFileSync(path, text.slice(0, text.indexOf('{"applied":3')));
  const { serving, reasons } = await begin();
  assert.deepEqual(reasons, ['the journal is shorter than the database knows it']);
  assert.deepEqual(versionsOf(past), [1, 2, 1, 3], 'nothing is read again');
  await assertRaisedOnce(serving, past, [1002, 1003, 1002, 1004]);
});

test('a restore said that it is not proven', PATIENT, async () => {
  const past = await makePast();
  appendRestored(join(installation.data, 'journal'), 'the journal was lost', Date.now());
  await assertRaised(past, 'the journal was lost');
});

test('a file is no longer in the archive', PATIENT, async () => {
  const past = await makePast();
  const [two = '', three = ''] = past.files;
  rmSync(two);
  putBack(installation, 'detections', past.copy);
  const { serving, reasons } = await begin();
  const name = two.split('/').at(-1);
  assert.deepEqual(reasons, [`${name}: it is no longer in the archive`]);
  assert.deepEqual(
    logged(serving.log, 'a file that the journal names cannot be read again').map(({ reason }) => reason),
    [`${name}: it is no longer in the archive`],
  );
  // The third file alone makes 1,002 of the first version; what only the second had comes with its next change.
  assert.deepEqual(versionsOf(past), [1, 2, 1001, 1003].with(3, 1002));
  assert.ok(readFileSync(three).length > 0);
  await dropWindow(serving, [past.first, past.second, past.third, ...past.rows], 90);
  await client.follow(serving.url);
  assert.deepEqual(versionsOf(past), [1002, 1002, 1002, 1003]);
  await serving.stop();
});

test('a file in the archive was changed', PATIENT, async () => {
  const past = await makePast();
  const [two = ''] = past.files;
  appendFileSync(two, '\n');
  putBack(installation, 'detections', past.copy);
  const { serving, reasons } = await begin();
  const name = two.split('/').at(-1);
  assert.deepEqual(reasons, [`${name}: its content is not what was applied`]);
  // It is in no record, so it is read as another file, after the rest.
  const unrecorded = 'files of the archive that are in no record are read again';
  assert.equal((await serving.logged(unrecorded, ({ msg }) => msg === unrecorded)).files, 1);
  const line = await serving.logged('that it was applied', ({ file }) => file === name);
  assert.deepEqual([line.msg, line.number, line.updated], ['file applied', 5, 1]);
  assert.deepEqual(versionsOf(past), [1, 1002, 1001, 1002]);
  await assertRaisedOnce(serving, past, [1002, 1003, 1002, 1003]);
});

test('a subscription was added since', PATIENT, async () => {
  const past = await makePast(() => installation.cli(['subscription', 'add', '7003', '--account', 'agency']));
  await assertRaised(past, 'a subscription or a licence was changed since');
});

test('a licence was changed since', PATIENT, async () => {
  const past = await makePast();
  installation.cli(['account', 'set', 'agency', '--print-metadata', 'on']);
  await assertRaised(past, 'a subscription or a licence was changed since');
});

test('settings were changed since', PATIENT, async () => {
  const past = await makePast();
  const earliest = { WIREWATCH_INGEST_EARLIEST_TIME: '2001-01-01T00:00:00Z' };
  await assertRaised(past, 'the settings, the secret or the program are others since', {
    settings: earliest,
  });
});

test('a file comes out otherwise than the journal says it had', PATIENT, async () => {
  const past = await makePast();
  const path = join(installation.data, 'journal');
  const lines = readFileSync(path, 'utf8').split('\n');
  const index = lines.findIndex((line) => line.includes('{"applied":2'));
  writeFileSync(
    path,
    lines.with(index, lines[index]?.replace('"updated":4', '"updated":5') ?? '').join('\n'),
  );
  await assertRaised(past, 'a file came out otherwise than it had before');
});

test('a change that decides nothing about rows proves nothing wrong', PATIENT, async () => {
  const past = await makePast(() => {
    installation.cli(['account', 'set', 'agency', '--name', 'Another']);
    installation.cli(['subscription', 'set', '7001', '--time-zone', 'Europe/Berlin']);
    createKey(installation.cli, 'agency', '7001');
  });
  putBack(installation, 'detections', past.copy);
  const { serving, reasons } = await begin({ WIREWATCH_INGEST_REQUIRE_TRAILER: 'true' });
  assert.deepEqual(reasons, []);
  assert.deepEqual(versionsOf(past), [1, 2, 1, 3]);
  await serving.stop();
});

test('a database from before a raise is put back: versions are raised once more', PATIENT, async () => {
  const past = await makePast();
  const path = join(installation.data, 'journal');
  appendRestored(path, 'the journal was lost', Date.now());
  putBack(installation, 'detections', past.copy);
  const first = await begin();
  await dropWindow(first.serving, past.rows, 80);
  await client.follow(first.serving.url);
  await first.serving.stop();
  assert.deepEqual(versionsOf(past), [1, 1002, 1001, 1004]);
  putBack(installation, 'detections', past.copy);
  const { serving, reasons } = await begin();
  assert.deepEqual(reasons, ['versions were raised since']);
  assert.deepEqual(versionsOf(past), [1, 2002, 2001, 2004]);
  await dropWindow(serving, [past.first, past.second, past.third, ...past.rows], 90);
  await client.follow(serving.url);
  assert.deepEqual(versionsOf(past), [2002, 2003, 2002, 2005]);
  await serving.stop();
});

test('killed again and again meanwhile, it raises versions once', { timeout: 300_000 }, async () => {
  const past = await makePast();
  rmSync(join(installation.data, 'journal'));
  putBack(installation, 'detections', past.copy);
  for (let killMs = 200; killMs <= 900; killMs += 50) {
    const starting = installation.begin();
    await sleep(killMs);
    await starting.kill();
  }
  const { serving } = await begin();
  assert.deepEqual(versionsOf(past), [1, 1002, 1001, 1003]);
  await assertRaisedOnce(serving, past, [1002, 1003, 1002, 1004]);
});
