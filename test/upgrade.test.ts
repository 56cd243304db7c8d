/** An update of the program: what an older version left is brought up to date, what a newer one wrote is not touched. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { Refused } from '../src/refused.ts';
import { ACCESS_MIGRATIONS } from '../src/store/access-schema.ts';
import { DETECTIONS_MIGRATIONS } from '../src/store/detections-schema.ts';
import { bringUpToDate, migrate } from '../src/store/migrate.ts';
import { openWriter } from '../src/store/writer.ts';
import { createInstallation, type Installation, putFile, type Serving } from './support/appliance.ts';
import { programCommand } from './support/command.ts';
import { contentOf, fileName, newRow, nextWindowMs, type Row } from './support/export-files.ts';
import { asFirstVersionLeftIt, toSchema1 } from './support/first-version.ts';
import { atRest, Client, journalOf, shown } from './support/put-back.ts';

const SETTINGS = { WIREWATCH_INGEST_QUIET_MS: '0', WIREWATCH_SERVER_BASE_URL: 'https://api.example' };
const DATABASES = [
  ['detections.db', DETECTIONS_MIGRATIONS],
  ['access.db', ACCESS_MIGRATIONS],
] as const;

let installation: Installation;
beforeEach(() => {
  installation = createInstallation(SETTINGS);
});
afterEach(() => installation.remove());

async function drop(serving: Serving, rows: readonly Row[]): Promise<void> {
  putFile(installation.drop, fileName('newswire', nextWindowMs()), contentOf('ndjson', rows));
  await atRest(installation, serving);
}

function schemaOf(path: string): number {
  const db = new Database(path, { readonly: true });
  try {
    assert.equal(db.pragma('integrity_check', { simple: true }), 'ok');
    return Number(db.pragma('user_version', { simple: true }));
  } finally {
    db.close();
  }
}

/** Everything in the data folder, but for SQLite's index of a log and an empty log, which hold nothing. */
function filesIn(data: string): Map<string, string> {
  const names = readdirSync(data, { recursive: true, encoding: 'utf8' }).sort();
  return new Map(
    names
      .filter((name) => statSync(join(data, name)).isFile() && !/-shm$|^lock/.test(name))
      .filter((name) => !(name.endsWith('-wal') && statSync(join(data, name)).size === 0))
      .map((name) => [name, readFileSync(join(data, name)).toString('base64')]),
  );
}

/** A data folder with two windows in it, as the first version left it. */
async function firstVersion(client: Client): Promise<Row[]> {
  const rows = [newRow(), newRow()];
  const serving = await installation.serve();
  await drop(serving, rows);
  await drop(serving, [newRow(), newRow()]);
  await client.follow(serving.url);
  await serving.stop();
  asFirstVersionLeftIt(installation.data);
  return rows;
}

test('what the first version left is copied, brought up to date, and goes on as if nothing had been', async () => {
  const client = new Client(installation.key);
  const rows = await firstVersion(client);
  const before = shown(client.known);
  const serving = await installation.serve();
  await drop(serving, [newRow()]);
  await drop(
    serving,
    rows.map((row) => ({ ...row, strength_score: 99, last_scored_at: newRow().last_scored_at })),
  );
  await client.follow(serving.url);
  assert.equal(await serving.stop(), 0);
  for (const [name] of DATABASES) {
    const copy = join(installation.data, `${name}.schema-1`);
    const line = serving.log.find(({ msg, database }) => msg === 'migrated' && database === name);
    assert.deepEqual([line?.level, line?.from, line?.to, line?.copy], ['info', 1, 2, copy]);
    assert.equal(schemaOf(copy), 1);
    assert.equal(schemaOf(join(installation.data, name)), 2);
  }
  assert.deepEqual(
    serving.log.filter(({ level, msg }) => level !== 'info' && msg !== 'alert opened'),
    [],
    'an update is no disaster',
  );
  const versions = [...client.known.values()].map(({ version }) => version).sort();
  assert.deepEqual(versions, [1, 1, 1, 2, 2]);
  for (const [id, detection] of before) {
    if (client.known.get(id)?.version === 1) assert.deepEqual(shown(client.known).get(id), detection);
  }
  const numbers = journalOf(installation).flatMap(({ applied }) => (applied === undefined ? [] : [applied]));
  assert.deepEqual(numbers, [1, 2, 3, 4], 'the journal goes on');

  const again = await installation.serve();
  await again.stop();
  assert.ok(!again.log.some(({ msg }) => msg === 'migrated'));
});

test('a crash of the first version between a commit and its line in the journal is made good', async () => {
  await firstVersion(new Client(installation.key));
  const journal = join(installation.data, 'journal');
  const lines = readFileSync(journal, 'utf8').trimEnd().split('\n');
  writeFileSync(journal, `${lines.slice(0, -1).join('\n')}\n`);
  const db = new Database(join(installation.data, 'detections.db'));
  db.prepare('UPDATE ingest_file SET settled = 0 WHERE number = 2').run();
  db.close();
  const serving = await installation.serve();
  await drop(serving, [newRow()]);
  await serving.stop();
  const numbers = journalOf(installation).flatMap(({ applied }) => (applied === undefined ? [] : [applied]));
  assert.deepEqual(numbers, [1, 2, 3]);
  assert.ok(!serving.log.some(({ msg }) => /raised|older/.test(msg)));
});

test('a command that comes first brings access.db up to date, and says so', async () => {
  await firstVersion(new Client(installation.key));
  const { stderr, stdout } = installation.cli(['account', 'list', '--json']);
  assert.match(stderr, /^access\.db was brought from schema 1 to 2; how it was: .*access\.db\.schema-1\n$/);
  assert.equal(JSON.parse(stdout)[0].id, 'agency');
});

/** Runs beside others. */
function listAccounts(): Promise<{ code: number; stdout: string; stderr: string }> {
  const { command, args, options } = programCommand(
    ['account', 'list', '--json', '--data', installation.data],
    {},
  );
  return new Promise((resolve) => {
    execFile(command, args, options, (error, stdout, stderr) => {
      resolve({
        code: error === null ? 0 : Number(error.code),
        stdout: String(stdout),
        stderr: String(stderr),
      });
    });
  });
}

test('several commands at once bring access.db up to date once', async () => {
  await firstVersion(new Client(installation.key));
  const ends = await Promise.all(Array.from({ length: 6 }, () => listAccounts()));
  for (const end of ends) {
    assert.equal(end.code, 0, end.stderr);
    assert.equal(JSON.parse(end.stdout)[0].id, 'agency');
  }
  assert.equal(ends.filter(({ stderr }) => stderr.startsWith('access.db was brought')).length, 1);
  assert.equal(schemaOf(join(installation.data, 'access.db.schema-1')), 1);
  assert.ok(!existsSync(join(installation.data, 'access.db.schema-1.tmp')));
});

test('an update that waited for another process finds it done', async () => {
  await firstVersion(new Client(installation.key));
  const path = join(installation.data, 'access.db');
  const faster = new Database(path);
  faster.exec('BEGIN IMMEDIATE');
  const waiting = listAccounts();
  await sleep(500);
  bringUpToDate(faster, path, ACCESS_MIGRATIONS);
  faster.exec('COMMIT');
  faster.close();
  const { code, stderr } = await waiting;
  assert.deepEqual([code, stderr], [0, '']);
  assert.ok(!existsSync(`${path}.schema-1`), 'the copy is of the one that changes it');
});

for (const [name, migrations] of DATABASES) {
  test(`a newer ${name} is refused, with nothing touched`, async () => {
    const serving = await installation.serve();
    await drop(serving, [newRow()]);
    await serving.stop();
    // The other one is older: it must not be brought up to date before this one is refused.
    for (const [other, { ...steps }] of DATABASES) {
      if (other !== name) toSchema1(join(installation.data, other), steps);
    }
    const path = join(installation.data, name);
    const db = new Database(path);
    db.pragma('journal_mode = WAL');
    db.pragma(`user_version = ${migrations.steps.length + 1}`);
    db.exec('CREATE TABLE of_tomorrow (x)');
    // With a log that still holds what is new, as after a power cut.
    const copies = ['', '-wal'].map((end) => [end, readFileSync(`${path}${end}`)] as const);
    db.close();
    for (const [end, content] of copies) writeFileSync(`${path}${end}`, content);
    rmSync(`${path}-shm`, { force: true });
    const before = filesIn(installation.data);
    const { status, stderr } = installation.cli(['serve', '--port', '0'], { anyStatus: true });
    assert.equal(status, 78);
    const after = filesIn(installation.data);
    assert.deepEqual([...after.keys()], [...before.keys()]);
    for (const [file, content] of before) assert.ok(after.get(file) === content, `${file} was touched`);
    assert.match(
      stderr,
      /has schema 3, this program knows 2\. It was written by a newer version: start that one\. Nothing was changed\./,
    );
  });
}

test('a full disk while a schema is brought up to date leaves the database as it was', async () => {
  await firstVersion(new Client(installation.key));
  for (const [name, migrations] of DATABASES) {
    const path = join(installation.data, name);
    const older = { ...migrations, steps: migrations.steps.slice(0, 1) };
    const db = openWriter(path, older);
    // SQLite answers with SQLITE_FULL when a database may not grow any more.
    db.pragma(`max_page_count = ${Number(db.pragma('page_count', { simple: true }))}`);
    assert.throws(
      () => migrate(db, path, migrations),
      (error) =>
        error instanceof Refused &&
        error.code === 'failed' &&
        /there is no room to bring/.test(error.message),
    );
    db.close();
    assert.equal(schemaOf(path), 1);
  }
  const serving = await installation.serve();
  await drop(serving, [newRow()]);
  await serving.stop();
});

test('a crash at any moment of an update leaves a database that the next start goes on with', {
  timeout: 180_000,
}, async () => {
  const client = new Client(installation.key);
  await firstVersion(client);
  const draft = join(installation.data, 'detections.db.schema-1.tmp');
  writeFileSync(draft, 'half a copy');
  writeFileSync(join(installation.data, 'access.db.schema-1'), 'a copy of an earlier attempt');
  for (let killMs = 120; killMs <= 600; killMs += 60) {
    const starting = installation.begin();
    await sleep(killMs);
    await starting.kill();
    for (const [name] of DATABASES) assert.ok([1, 2].includes(schemaOf(join(installation.data, name))));
  }
  const serving = await installation.serve();
  await drop(serving, [newRow()]);
  await client.follow(serving.url);
  await serving.stop();
  assert.equal(client.known.size, 5);
  assert.ok(!existsSync(draft));
  for (const [name] of DATABASES) assert.equal(schemaOf(join(installation.data, `${name}.schema-1`)), 1);
});
