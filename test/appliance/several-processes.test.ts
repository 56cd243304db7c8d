/** Several processes on one installation: each does its work, or reports what it waits for. */
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { dataFolder } from '../../src/store/folder.ts';
import { isLocked, keepInPlace, takeLock } from '../../src/store/locks.ts';
import { createInstallation, type Installation, ingestRows } from '../support/appliance.ts';
import { assertFailed, runBeside } from '../support/command.ts';
import { restoreFrom } from '../support/copy-at.ts';
import { runProgram } from '../support/program.ts';
import { until } from '../support/until.ts';

const SETTINGS = { WIREWATCH_INGEST_QUIET_MS: '0' };

let installation: Installation;
beforeEach(() => {
  installation = createInstallation(SETTINGS);
});
afterEach(() => installation.remove());

const folderOf = () => dataFolder(installation.data);
const run = (...args: string[]) => runProgram([...args, '--data', installation.data], SETTINGS);

test('a command that ingests waits for a starting appliance, which then serves it', async () => {
  await ingestRows(installation);
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
  await using _ = await installation.serve();
  assert.equal(await replay.ended, 0, replay.stderr());
});

test('an appliance that starts while a command ingests waits for its end', async () => {
  await ingestRows(installation);
  const { lock } = folderOf();
  const release = takeLock(lock);
  await using starting = installation.begin();
  await starting.logged('waiting', ({ msg }) => msg.startsWith('another command is using'));
  release?.();
  await starting.url();
  const second = await runBeside(['serve', '--port', '0', '--data', installation.data], SETTINGS);
  assertFailed(second, 1, /another process is already using the data folder/);
});

test('a restore does not wait for a running command, and none starts during it', async () => {
  await ingestRows(installation);
  const copy = join(dirname(installation.data), 'copy');
  assert.equal(await run('backup', copy).ended, 0);
  const restored = (onProgress: () => void = () => {}) =>
    restoreFrom(copy, installation.data, { onProgress });
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
  const second = await runBeside(['pull', ...args, '--into', into]);
  assertFailed(second, 1, /another pull is at work on .*copy\.ndjson/);
  assert.ok(!existsSync(into));
  release?.();
});
