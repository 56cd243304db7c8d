/**
 * How an appliance starts, logs and stops: signals, a data folder or port already in use, clients that read slowly or
 * not at all (contract: Endpoints, Errors).
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { DAY_MS } from '../../src/time.ts';
import { sharedAppliance } from '../support/appliance.ts';
import { programCommand } from '../support/command.ts';
import { fileName, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { inFolder, type LogLine, type RunningProgram, runProgram } from '../support/program.ts';
import { parseResponses } from '../support/raw-http.ts';
import { until } from '../support/until.ts';

const CHANGES = `/v1/detections/changes?since=${new Date(Date.now() - DAY_MS).toISOString()}`;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** A full page of rows, each so long that the page does not fit into the buffers of a connection. */
const LARGE_ROWS = 1000;
const LARGE_PAGE = `${CHANGES}&limit=${LARGE_ROWS}`;

/** Filled, then stopped: each test starts the program on its folder as needed. */
const appliance = await sharedAppliance({ WIREWATCH_INGEST_QUIET_MS: '0' });
const text = 'x'.repeat(4000);
const members = {
  article_headline: text,
  source_language: text,
  article_publisher_id: 1,
  article_publisher_name: text,
  article_url: `https://long.example/${text}`,
};
const rows = Array.from({ length: LARGE_ROWS }, () => newRow(members));
const filled = await appliance.dropped(fileName('newswire', nextWindowMs(), 'ndjson'), ndjson(rows));
assert.equal(filled.msg, 'file applied');
await appliance.serving().stop();
let url: string;

const serve = () => runProgram(['serve', '--data', appliance.data, '--port', '0']);

/** Runs the program during `use`; then it must exit with code 0. */
async function serving(use: (run: RunningProgram) => Promise<void>): Promise<void> {
  const run = serve();
  try {
    url = await run.url();
    await use(run);
    assert.equal(await run.stop(), 0);
  } finally {
    await run.kill();
  }
}

/** Stops the program while a client is reading. */
async function stopping(use: (run: RunningProgram, reader: Reader) => Promise<void>): Promise<void> {
  const run = serve();
  try {
    url = await run.url();
    const reader = await stalledReader(request(LARGE_PAGE));
    run.kill('SIGTERM');
    await run.logged('the stop', ({ msg }) => msg === 'stopping');
    await use(run, reader);
  } finally {
    await run.kill();
  }
}

function request(target: string, headers = ''): string {
  return `GET ${target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${appliance.key}\r\n${headers}\r\n`;
}

interface Reader {
  readonly socket: Socket;
  readonly rest: () => Promise<Buffer>;
}

/** A client that has read the start of a response and stops reading. */
async function stalledReader(text: string): Promise<Reader> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  const chunks: Buffer[] = [];
  const ended = new Promise<void>((resolve, reject) => {
    socket.on('close', () => resolve());
    socket.on('error', reject);
  });
  socket.write(text);
  await new Promise<void>((resolve) => {
    socket.once('data', (chunk) => {
      chunks.push(chunk);
      socket.pause();
      resolve();
    });
  });
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

function requestLines(run: RunningProgram): LogLine[] {
  return run.log().filter(({ msg }) => msg === 'request');
}

test('a stop completes a response in progress, accepts nothing new, and is exit code 0', async () => {
  await stopping(async (run, reader) => {
    // The port closes shortly after the line is written.
    const isRefused = () =>
      fetch(`${url}/nowhere`).then(
        (answer) => answer.arrayBuffer().then(() => false),
        () => true,
      );
    await until('the port is closed', isRefused);
    const [answer, ...more] = parseResponses(await reader.rest(), ['GET']);
    assert.equal(answer?.status, 200);
    assert.equal(JSON.parse(answer?.body ?? '').data.length, LARGE_ROWS);
    assert.deepEqual(more, []);
    assert.equal(await run.ended, 0);
    assert.equal(run.log().at(-1)?.msg, 'stopped');
    assert.equal(run.stdout(), '');
  });
});

test('a second signal ends it at once', async () => {
  await stopping(async (run, { socket }) => {
    socket.on('error', () => {});
    run.kill('SIGTERM');
    assert.equal(await run.ended, 1);
    socket.destroy();
  });
  await serving(async () => {});
});

test('a client that never reads gets one response prepared at a time', async () => {
  await serving(async (run) => {
    const asked = 3;
    const reader = await stalledReader(
      request(LARGE_PAGE).repeat(asked - 1) + request(LARGE_PAGE, 'Connection: close\r\n'),
    );
    // A later request is also answered.
    const response = await fetch(`${url}/nowhere`);
    const id = response.headers.get('x-request-id');
    await run.until('the later request', () => requestLines(run).find((line) => line.request_id === id));
    assert.equal(requestLines(run).length, 2);
    const answers = parseResponses(await reader.rest(), Array(asked).fill('GET'));
    assert.deepEqual(
      answers.map(({ status, body }) => [status, JSON.parse(body).data.length]),
      Array.from({ length: asked }, () => [200, LARGE_ROWS]),
    );
  });
});

test('a client that sends a hundred or more requests before the first response is disconnected', async () => {
  await serving(async (run) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    socket.on('error', () => {});
    // All arrive together: the page waits for its turn, and so do those behind it.
    socket.write(request(LARGE_PAGE) + request('/v1/detections/x').repeat(150));
    socket.resume();
    await closed;
    assert.equal((await fetch(`${url}/nowhere`)).status, 404);
    const paths = () => requestLines(run).map(({ path }) => path);
    await run.until('the last line', () => paths().includes('/nowhere'));
    assert.ok(
      !paths().includes('/v1/detections/x'),
      'requests of a disconnected client must not be processed',
    );
  });
});

test('every request is one line of JSON with its id, key, status, rows and duration, and no secret', async () => {
  await serving(async (run) => {
    const { key } = appliance;
    const [, , keyId = '', secret = ''] = key.split('_');
    const authorization = `Bearer ${key}`;
    const page = await fetch(`${url}${CHANGES}&limit=2`, { headers: { authorization } });
    const { next_cursor: cursor } = JSON.parse(await page.text());
    const bearer = { headers: { authorization } };
    const calls: [path: string, init: RequestInit, status: number][] = [
      [`/v1/detections/changes?cursor=${cursor}&limit=7`, bearer, 200],
      [`/v1/detections/${key}`, bearer, 400],
      [`/${key}?access_token=${key}`, bearer, 404],
      [CHANGES, { headers: { authorization: `${authorization}x` } }, 401],
      [CHANGES, { method: 'POST', ...bearer, body: key }, 405],
    ];
    const expected = [];
    for (const [path, init, status] of calls) {
      const response = await fetch(`${url}${path}`, init);
      await response.arrayBuffer();
      assert.equal(response.status, status, path);
      const request_id = response.headers.get('x-request-id') ?? '';
      assert.match(request_id, UUID);
      expected.push([request_id, init.method ?? 'GET', status < 401 ? keyId : undefined, status]);
    }
    const lines = await run.until('a line for each', () => {
      const found = requestLines(run).slice(1);
      return found.length === expected.length ? found : undefined;
    });
    assert.deepEqual(
      lines.map((line) => [line.request_id, line.method, line.key_id, line.status]),
      expected,
    );
    assert.equal(lines[0]?.rows, 7);
    assert.ok(lines.every(({ level, duration_ms }) => level === 'info' && Number(duration_ms) >= 0));
    assert.ok(run.log().every(({ level }) => level !== 'not a log line'));
    const installation = readFileSync(join(appliance.data, 'secret'));
    const secrets = [secret, cursor, 'access_token'];
    for (const encoding of ['hex', 'base64', 'base64url'] as const)
      secrets.push(installation.toString(encoding));
    for (const text of secrets) assert.ok(!run.stderr().includes(text), text);
  });
});

test('a start on an empty folder creates its files, accessible to the owner only', () =>
  inFolder(async (folder) => {
    const data = join(folder, 'new', 'data');
    const run = runProgram(['serve', '--data', data, '--port', '0']);
    const address = await run.url();
    await run.logged('a warning', ({ msg }) => /base_url is not set/.test(msg));
    const response = await fetch(`${address}${CHANGES}`, { headers: { authorization: 'Bearer x' } });
    assert.equal(response.status, 401);
    run.kill('SIGINT');
    assert.equal(await run.ended, 0);
    const found = readdirSync(data).sort();
    for (const name of ['access.db', 'detections.db', 'drop', 'lock', 'secret', 'usage']) {
      assert.ok(found.includes(name), `${name} is not among ${found.join(', ')}`);
    }
    assert.equal(statSync(data).mode & 0o777, 0o700);
    assert.equal(statSync(join(data, 'secret')).mode & 0o777, 0o600);
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
