/** A standby beside a writer, as programs: it serves what the writer has, takes over, and the old writer follows it. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { createInstallation, createKey, putFile, type Serving } from '../support/appliance.ts';
import { assertFailed, runToEnd } from '../support/command.ts';
import { openConsole } from '../support/console-client.ts';
import { reading } from '../support/database-content.ts';
import { fileName, idOf, ndjson, newRow, newRows, nextWindowMs } from '../support/export-files.ts';
import { freePort } from '../support/free-port.ts';
import { readerOf } from '../support/lab.ts';
import { changesOf, copyOf, createMachinePair } from '../support/machine-pair.ts';
import { until } from '../support/until.ts';

const pair = createMachinePair({}, { WIREWATCH_ADMIN_PORT: `${await freePort()}` });
const { work, place, settings, one, other, drop } = pair;
let standby: Serving;

after(pair.remove);
const writer = await one.serve();
drop();
await until('the copy', async () => copyOf(one)?.entries_behind === 0 && (await rowsOf(writer)) !== '');

/** The bytes of the change stream, as a client reads them. */
async function rowsOf(machine: Serving): Promise<string> {
  const response = await changesOf(machine, one.key);
  if (response.status !== 200) return `status ${response.status}`;
  const { data } = (await response.json()) as { data: unknown[] };
  return data.length === 0 ? '' : JSON.stringify(data);
}

/** Drops a file, which this machine reads. */
async function dropped(machine: Serving): Promise<void> {
  const before = await rowsOf(machine);
  pair.drop();
  await until('a new row', async () => (await rowsOf(machine)) !== before);
}

const sameRows = (machine: Serving, as: Serving) =>
  until('the same rows', async () => (await rowsOf(machine)) === (await rowsOf(as)));

const roleOf = async ({ get }: Serving): Promise<string> =>
  ((await (await get('/v1/health')).json()) as { role: string }).role;

test('a standby without what the copy has is refused, and creates nothing', () => {
  rmSync(other.data, { recursive: true });
  const refused = other.cli(['serve', '--port', '0'], { anyStatus: true });
  assertFailed(refused, 78, /Run this first: wirewatch restore/);
  assert.equal(existsSync(join(other.data, 'access.db')), false);
});

test('a standby begins with a restore of the copy, which changes nothing, and serves the same rows', async () => {
  const { stdout } = other.cli(['restore', place]);
  assert.match(stdout, /This machine is a standby/);
  // Also before its first start, without the configuration that says what it is.
  assert.match(runToEnd(['ingest', 'pause', '--data', other.data]).stderr, /standby: it follows the copy/);
  standby = await other.serve();
  assert.equal(await roleOf(standby), 'standby');
  assert.equal(await roleOf(writer), 'writer');
  assert.equal(await rowsOf(standby), await rowsOf(writer));
});

test('it follows: rows, accounts, keys', async () => {
  await dropped(writer);
  one.cli(['account', 'add', 'second', '--name', 'Second']);
  await sameRows(standby, writer);
  const accounts = () => other.cli(['account', 'list', '--json']).stdout;
  await until('the account', () => accounts().includes('"second"'));
});

test('what is removed leaves its files, too', async () => {
  const rows = newRows(200, { subscription_id: 7002 });
  const [row = newRow()] = rows;
  putFile(join(work, 'drop'), fileName('newswire', nextWindowMs()), ndjson(rows));
  const { data } = other;
  const files = ['detections.db', 'detections.db-wal'].map((name) => join(data, name));
  const hasRow = () => files.some((path) => existsSync(path) && readFileSync(path).includes(idOf(row)));
  await until('the row', hasRow);
  one.cli(['subscription', 'remove', '7002', '--yes']);
  await until('nothing of it', () => !hasRow());
  const freePages = () =>
    reading(join(data, 'detections.db'), (db) => db.pragma('freelist_count', { simple: true }));
  await until('a file without free pages', () => freePages() === 0);
});

test('behind a compaction it makes its database anew, and follows', async () => {
  await standby.stop();
  await dropped(writer);
  one.cli(['compact']);
  await until('the copy', async () => copyOf(one)?.entries_behind === 0);
  standby = await other.serve();
  await sameRows(standby, writer);
  assert.equal(await roleOf(standby), 'standby');
  await until('it follows', async () => copyOf(other)?.entries_behind === 0);
  // Nothing is wrong with its disk.
  assert.ok(!standby.log.some(({ alert }) => alert === 'database damaged'));
});

test('what changes something is refused there, with where to do it; so it is while it is stopped', async () => {
  const add = ['account', 'add', 'third', '--name', 'Third'];
  const running = other.cli(add, { anyStatus: true });
  assertFailed(running, 1, /follows .*copy\. Run the command on the writer/);
  await standby.stop();
  // Also without the configuration that says what it is.
  for (const stopped of [other.cli(add, { anyStatus: true }), runToEnd([...add, '--data', other.data])])
    assertFailed(stopped, 1, /standby: it follows (the copy|\/)/);
  standby = await other.serve();
  await sameRows(standby, writer);
});

test('its console can be opened and left, shows what it is, and changes nothing', async () => {
  const console = await openConsole(other);
  const { role } = await console.get<{ role: string }>('overview');
  assert.equal(role, 'standby');
  assert.match((await console.operate('account add', { id: 'third', name: 'Third' })).text, /follows/);
  assert.equal((await console.post('session/end')).status, 200);
  assert.equal((await console.ask('overview')).status, 401);
});

test('promoted while the writer stands still, it ingests; the writer then finds its place taken, and answers 503', async () => {
  writer.kill('SIGSTOP');
  try {
    const { stdout } = other.cli(['promote']);
    assert.match(stdout, /This machine is the writer now/);
    assert.equal(await roleOf(standby), 'writer');
    await dropped(standby);
    other.cli(['account', 'add', 'third', '--name', 'Third']);
  } finally {
    writer.kill('SIGCONT');
  }
  await until('the takeover', async () => (await roleOf(writer)) === 'superseded');
  assert.equal(await rowsOf(writer), 'status 503');
  const made = createKey(other.cli, 'agency', '7001');
  // No client that has a new key is told that it is wrong.
  const { status } = await readerOf(writer.url, made).get('/v1/schema/detection');
  assert.equal(status, 503);
  assert.equal((await writer.get('/v1/health')).status, 503);
  assert.equal(one.cli(['account', 'add', 'late', '--name', 'Late'], { anyStatus: true }).status, 1);
  assert.match(one.cli(['alert', 'list']).stdout, /another machine took over/);
  const asked = `  ${userInfo().username}  promote  operation asked for: kind "promote"\n`;
  assert.ok(other.cli(['audit']).stdout.includes(asked));
});

test('it stays the writer after a restart, and the old one starts only as its standby', async () => {
  await writer.stop();
  assertFailed(one.cli(['serve', '--port', '0'], { anyStatus: true }), 78, /another machine took over/);
  await standby.stop();
  const back = await other.serve();
  assert.equal(await roleOf(back), 'writer');
  const follower = createInstallation({ ...settings, WIREWATCH_COPY_STANDBY: 'true' });
  follower.cli(['restore', place, '--replace']);
  const following = await follower.serve();
  assert.equal(await roleOf(following), 'standby');
  await dropped(back);
  await sameRows(following, back);
  assert.equal(follower.cli(['verify']).status, 0);
  follower.remove();
});
