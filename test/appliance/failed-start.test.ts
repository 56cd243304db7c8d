/** A failed start cleans up: threads end, files and ports are closed, and the locks are released last. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { after, beforeEach, describe, test } from 'node:test';
import pino from 'pino';
import { startAppliance } from '../../src/appliance.ts';
import { loadConfig } from '../../src/config/load.ts';
import { bootIngestThread } from '../../src/ingest/threads/ingest-client.ts';
import { Refused, type RefusedCode } from '../../src/refused.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { takeLock } from '../../src/store/locks.ts';
import { freePort, listen } from '../support/free-port.ts';
import { openFilesBelow } from '../support/open-files.ts';
import { testFolder } from '../support/test-folder.ts';

const taken = createServer();
const takenPort = `${await listen(taken)}`;
after(() => taken.close());
let folder: string;
beforeEach(() => {
  folder = testFolder();
});

/** Starts with these settings, which must be refused. @returns the message */
async function failedStart(env: NodeJS.ProcessEnv, code: RefusedCode): Promise<string> {
  const data = join(folder, 'data');
  const given = { flags: {}, env: { WIREWATCH_SERVER_PORT: '0', ...env }, file: undefined };
  const config = loadConfig({ ...given, dataFolder: data });
  const ingestThread = bootIngestThread();
  let isRunning = true;
  ingestThread.once('exit', () => {
    isRunning = false;
  });
  const start = startAppliance({ config, kind: 'appliance', log: pino({ level: 'silent' }), ingestThread });
  const refusal = await start.catch((error: unknown) => error);
  assert.ok(refusal instanceof Refused, String(refusal));
  assert.equal(refusal.code, code);
  assert.equal(isRunning, false, 'the ingest thread is running');
  const { lock, serveLock } = dataFolder(data);
  for (const path of [lock, serveLock]) {
    const release = takeLock(path, 0);
    assert.ok(release, `${path} is held`);
    release();
  }
  assert.deepEqual(openFilesBelow(data), []);
  return refusal.message;
}

describe('a start fails', { skip: process.platform !== 'linux' && 'open files are read from /proc' }, () => {
  test('on a port in use', async () => {
    const message = await failedStart({ WIREWATCH_SERVER_PORT: takenPort }, 'failed');
    assert.match(message, /another program is using this address/);
  });

  test('on an administration port in use; the other port is released', async () => {
    const port = String(await freePort());
    const env = { WIREWATCH_SERVER_PORT: port, WIREWATCH_ADMIN_PORT: takenPort };
    assert.match(await failedStart(env, 'failed'), /administration cannot listen/);
    const again = createServer().listen(Number(port), '127.0.0.1');
    await once(again, 'listening');
    again.close();
  });

  test('on a missing certificate', async () => {
    const path = join(folder, 'gone.pem');
    const env = { WIREWATCH_SERVER_TLS_CERTIFICATE: path, WIREWATCH_SERVER_TLS_KEY: path };
    assert.match(await failedStart(env, 'configuration'), /gone\.pem: no such file or folder/);
  });

  test('on a drop folder that is a file, found by the ingest thread', async () => {
    const drop = join(folder, 'drop');
    writeFileSync(drop, '');
    const message = await failedStart({ WIREWATCH_INGEST_DROP: drop }, 'configuration');
    assert.match(message, /cannot use the drop folder/);
  });

  test('before the ingest thread gets its settings', async () => {
    const data = dataFolder(join(folder, 'data'));
    await failedStart({ WIREWATCH_SERVER_PORT: takenPort }, 'failed');
    rmSync(data.secret);
    assert.match(await failedStart({}, 'configuration'), /secret .* is missing/);
  });
});
