/** Several processes on one installation: each does its work, or reports what it waits for. */

import assert from 'node:assert/strict';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { restore } from '../../src/copy/restore.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { isLocked, keepInPlace, takeLock } from '../../src/store/locks.ts';
import { createInstallation, type Installation, putFile } from '../support/appliance.ts';
import { sourceAt } from '../support/copy-at.ts';
import { fileName, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { isOpen } from '../support/open-files.ts';
import { runProgram } from '../support/program.ts';
import { until } from '../support/until.ts';

const SETTINGS = { WIREWATCH_INGEST_QUIET_MS: '0' };

/** Blank lines: they take a quarter of a second to read, and contain no rows. */
const BLANK = gzipSync(Buffer.alloc(10_000_000, '\n'), { level: 1 });

let installation: Installation;
beforeEach(() => {
  installation = createInstallation(SETTINGS);
});
afterEach(() => installation.remove());

const folderOf = () => dataFolder(installation.data);
const run = (...args: string[]) => runProgram([...args, '--data', installation.data], SETTINGS);

async function applied(): Promise<void> {
  const serving = await installation.serve();
  putFile(installation.drop, fileName('newswire', nextWindowMs()), ndjson([newRow()]));
  await serving.logged('the file', ({ msg }) => msg === 'file applied');
  assert.equal(await serving.stop(), 0);
}

test('a command that ingests waits for a starting appliance, which then serves it', async () => {
  await applied();
  const { lock, serveLock, stateLock } = folderOf();
  const release = takeLock(serveLock);
  const replay = run('ingest', 'replay');
  await until('the command has begun', () => {
    const releaseState = takeLock(stateLock, 0);
    releaseState?.();
    return releaseState === null;
  });
  assert.ok(!isLocked(lock), 'the command must leave the lock to the appliance');
  release?.();
  const serving = await installation.serve();
  assert.equal(await replay.ended, 0, replay.stderr());
  await serving.stop();
});

test('an appliance that starts while a command ingests waits for its end', async () => {
  await applied();
  const { lock } = folderOf();
  const release = takeLock(lock);
  const starting = installation.begin();
  await starting.logged('waiting', ({ msg }) => msg.startsWith('another command is using'));
  release?.();
  await starting.url();
  const second = run('serve', '--port', '0');
  assert.equal(await second.ended, 1);
  assert.match(second.stderr(), /another process is already using the data folder/);
  assert.equal(await starting.stop(), 0);
});

test('files removed before they are read are no error', { skip: process.platform !== 'linux' }, async () => {
  const serving = await installation.serve();
  installation.cli(['ingest', 'pause']);
  const long = fileName('newswire', nextWindowMs(), 'ndjson.gz');
  putFile(installation.drop, long, BLANK);
  const names = Array.from({ length: 6 }, () => fileName('newswire', nextWindowMs()));
  for (const name of names) putFile(installation.drop, name, ndjson([newRow()]));
  installation.cli(['ingest', 'resume']);
  await until('the first is being read, and the others are next', () =>
    isOpen(join(installation.drop, long)),
  );
  for (const name of names) rmSync(join(installation.drop, name), { force: true });
  const last = fileName('newswire', nextWindowMs());
  putFile(installation.drop, last, ndjson([newRow()]));
  await serving.logged('the last', ({ msg, file }) => msg === 'file applied' && file === last);
  assert.deepEqual(
    serving.log.filter(({ level }) => level === 'error'),
    [],
  );
  await serving.stop();
});

test('a restore does not wait for a running command, and none starts during it', async () => {
  await applied();
  const copy = join(dirname(installation.data), 'copy');
  assert.equal(await run('backup', copy).ended, 0);
  const restored = async (onProgress: () => void = () => {}) => {
    const { data, drop } = installation;
    const how = { replace: true, untilMs: null, now: Date.now };
    return restore({ source: await sourceAt(copy), data, drop, ...how, onProgress });
  };
  const release = keepInPlace(folderOf());
  await assert.rejects(restored(), /another command, such as a backup, is using .*Nothing was changed/);
  release();
  const add = ['account', 'add', 'late', '--name', 'Late'];
  const said: string[] = [];
  const meanwhile = () => {
    if (said.length === 0) said.push(installation.cli(add, { anyStatus: true }).stderr);
  };
  assert.ok(!('earlier' in (await restored(meanwhile))));
  assert.match(said.join(), /^wirewatch: a restore into .* is running/);
  assert.equal(installation.cli(add).status, 0);
});

test('pull leaves a copy alone while another pull writes it', async () => {
  const folder = dirname(installation.data);
  const into = join(folder, 'copy.ndjson');
  writeFileSync(join(folder, 'key'), installation.key);
  const release = takeLock(`${into}.lock`);
  const args = ['--base-url', 'http://127.0.0.1:1', '--key-file', join(folder, 'key'), '--format', 'ndjson'];
  const second = runProgram(['pull', ...args, '--into', into]);
  assert.equal(await second.ended, 1);
  assert.match(second.stderr(), /another pull is at work on .*copy\.ndjson/);
  assert.ok(!existsSync(into));
  release?.();
});
