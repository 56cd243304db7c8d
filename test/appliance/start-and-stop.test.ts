/**
 * How an appliance starts, logs and stops: signals, a data folder or port already in use, clients that read slowly or
 * not at all (contract: Endpoints, Errors).
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { after, test } from 'node:test';
import pino from 'pino';
import { startAppliance } from '../../src/appliance.ts';
import { loadConfig } from '../../src/config/load.ts';
import { bootIngestThread } from '../../src/ingest/threads/ingest-client.ts';
import type { RefusedCode } from '../../src/refused.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { takeLock } from '../../src/store/locks.ts';
import { DAY_MS } from '../../src/time.ts';
import { sharedAppliance } from '../support/appliance.ts';
import { programCommand } from '../support/command.ts';
import { fileName, ndjson, newRows, nextWindowMs } from '../support/export-files.ts';
import { freePort, listen } from '../support/free-port.ts';
import { openFilesBelow } from '../support/open-files.ts';
import { inFolder, type RunningProgram, runProgram } from '../support/program.ts';
import { bearer, parseResponses, rawRequest } from '../support/raw-http.ts';
import { testFolder } from '../support/test-folder.ts';
import { until } from '../support/until.ts';

const CHANGES = `/v1/detections/changes?since=${new Date(Date.now() - DAY_MS).toISOString()}`;
/** A full page of rows, each so long that the page does not fit into the buffers of a connection. */
const LARGE_ROWS = 1000;
const LARGE_PAGE = `${CHANGES}&limit=${LARGE_ROWS}`;

/** Filled, then stopped: each test starts the program on its folder as needed. */
const appliance = await sharedAppliance({ WIREWATCH_INGEST_QUIET_MS: '0' });
const text = 'x'.repeat(4000);
const members = {
  ...{ article_headline: text, source_language: text, article_url: `https://long.example/${text}` },
  ...{ article_publisher_id: 1, article_publisher_name: text },
};
const rows = newRows(LARGE_ROWS, members);
const filled = await appliance.dropped(fileName('newswire', nextWindowMs(), 'ndjson'), ndjson(rows));
assert.equal(filled.msg, 'file applied');
await appliance.serving().stop();
let url: string;

/** Runs the program during `use`. */
async function serving(use: (run: RunningProgram) => Promise<void>): Promise<void> {
  await using run = runProgram(['serve', '--data', appliance.data, '--port', '0']);
  url = await run.url();
  await use(run);
}

/** Ctrl-C must end the program with code 0. */
const interrupt = async (run: RunningProgram) => assert.equal(await run.kill('SIGINT'), 0);

/** Stops the program while a client is reading. */
const stopping = (use: (run: RunningProgram, reader: Reader) => Promise<void>): Promise<void> =>
  serving(async (run) => {
    const reader = await stalledReader();
    run.kill('SIGTERM');
    await run.logged('the stop', ({ msg }) => msg === 'stopping');
    await use(run, reader);
  });

const request = (target: string) => rawRequest(`GET ${target}`, bearer(appliance.key));

type Reader = Awaited<ReturnType<typeof stalledReader>>;

/** A client that has read the start of a large page and stops reading. */
async function stalledReader() {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  const ended = once(socket, 'close');
  socket.write(request(LARGE_PAGE));
  const chunks: Buffer[] = await once(socket, 'data');
  socket.pause();
  return {
    socket,
    rest: async () => {
      socket.on('data', (chunk) => chunks.push(chunk));
      socket.resume();
      await ended;
      return Buffer.concat(chunks);
    },
  };
}

test('a stop completes a response in progress, accepts nothing new, and is exit code 0', () =>
  stopping(async (run, reader) => {
    // The port closes shortly after the line is written.
    const isRefused = async (): Promise<boolean> => {
      const answer = await fetch(`${url}/nowhere`).catch(() => null);
      await answer?.arrayBuffer();
      return answer === null;
    };
    await until('the port is closed', isRefused);
    const [answer, ...more] = parseResponses(await reader.rest(), ['GET']);
    assert.equal(answer?.status, 200);
    assert.equal(JSON.parse(answer?.body ?? '').data.length, LARGE_ROWS);
    assert.deepEqual(more, []);
    assert.equal(await run.ended, 0);
    assert.equal(run.log().at(-1)?.msg, 'stopped');
    assert.equal(run.stdout(), '');
  }));

test('a second signal ends it at once', async () => {
  await stopping(async (run, { socket }) => {
    socket.on('error', () => {});
    run.kill('SIGTERM');
    assert.equal(await run.ended, 1);
    socket.destroy();
  });
  await serving(interrupt);
});

test('a client that sends a hundred or more requests before the first response is disconnected', () =>
  serving(async (run) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    socket.on('error', () => {});
    // All arrive together: the page waits for its turn, and so do those behind it.
    socket.write(request(LARGE_PAGE) + request('/v1/detections/x').repeat(150));
    socket.resume();
    await closed;
    assert.equal((await fetch(`${url}/nowhere`)).status, 404);
    const paths = () => run.log().flatMap(({ msg, path }) => (msg === 'request' ? path : []));
    await run.until('the last line', () => paths().includes('/nowhere'));
    // Requests of a disconnected client are not processed.
    assert.ok(!paths().includes('/v1/detections/x'));
    await interrupt(run);
  }));

test('a log pipe without a reader does not delay a stop', () =>
  inFolder(async (folder) => {
    const start = programCommand(['serve', '--data', join(folder, 'data'), '--port', '0']);
    const child = spawn(start.command, start.args, { ...start.options, stdio: ['ignore', 'ignore', 'pipe'] });
    const ended = once(child, 'exit');
    let stderr = '';
    child.stderr.on('data', (piece: Buffer) => {
      stderr += piece;
    });
    await until('it listens', () => stderr.includes('"msg":"listening"'));
    child.stderr.destroy();
    child.kill('SIGTERM');
    const [code] = await ended;
    assert.equal(code, 0);
  }));

/** Starts with these settings, which must be refused: threads end, files are closed, and the locks are released last. */
async function failedStart(data: string, env: NodeJS.ProcessEnv, code: RefusedCode, message: RegExp) {
  const given = { flags: {}, env: { WIREWATCH_SERVER_PORT: '0', ...env }, file: undefined };
  const config = loadConfig({ ...given, dataFolder: data });
  const ingestThread = bootIngestThread();
  let isRunning = true;
  ingestThread.once('exit', () => {
    isRunning = false;
  });
  const start = startAppliance({ config, kind: 'appliance', log: pino({ level: 'silent' }), ingestThread });
  await assert.rejects(start, { name: 'Refused', code, message });
  assert.equal(isRunning, false, 'the ingest thread is running');
  const { lock, serveLock } = dataFolder(data);
  for (const path of [lock, serveLock]) {
    const release = takeLock(path, 0);
    assert.ok(release, `${path} is held`);
    release();
  }
  assert.deepEqual(openFilesBelow(data), []);
}

const taken = createServer();
const WIREWATCH_SERVER_PORT = `${await listen(taken)}`;
after(() => taken.close());
const GONE = join(testFolder(), 'gone.pem');
const NO_PAIR = { WIREWATCH_SERVER_TLS_CERTIFICATE: GONE, WIREWATCH_SERVER_TLS_KEY: GONE };
const FAILED_STARTS: readonly [on: string, env: NodeJS.ProcessEnv, code: RefusedCode, message: RegExp][] = [
  ['a port in use', { WIREWATCH_SERVER_PORT }, 'failed', /another program is using this address/],
  ['a missing certificate', NO_PAIR, 'configuration', /gone\.pem: no such file or folder/],
  [
    'a drop folder that is a file, found by the ingest thread',
    { WIREWATCH_INGEST_DROP: import.meta.filename },
    'configuration',
    /cannot use the drop folder/,
  ],
];
for (const [on, ...failing] of FAILED_STARTS)
  test(`a start fails on ${on}`, () => failedStart(join(testFolder(), 'data'), ...failing));

test('a start fails on an administration port in use; the other port is released', async () => {
  const port = await freePort();
  const env = { WIREWATCH_SERVER_PORT: `${port}`, WIREWATCH_ADMIN_PORT: WIREWATCH_SERVER_PORT };
  await failedStart(join(testFolder(), 'data'), env, 'failed', /administration cannot listen/);
  const again = createServer().listen(port, '127.0.0.1');
  await once(again, 'listening');
  again.close();
});

test('a start fails before the ingest thread gets its settings', async () => {
  const data = join(testFolder(), 'data');
  await failedStart(data, { WIREWATCH_SERVER_PORT }, 'failed', /in use|using/);
  rmSync(dataFolder(data).secret);
  await failedStart(data, {}, 'configuration', /secret .* is missing/);
});
