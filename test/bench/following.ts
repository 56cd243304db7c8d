/**
 * The cost of following the stream: the delay until a waiting client gets a change, a thousand waiting clients,
 * compressed pages, and light requests beside them.
 */

import { renameSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { WAITS_PER_KEY_MAX } from '../../src/http/waiting.ts';
import { openDatabase } from '../../src/store/database.ts';
import { authorization, type Bench, CONNECTIONS, type Figure, median, SUBSCRIPTIONS } from './common.ts';
import { createKey } from './ingest.ts';
import { runLoad } from './load.ts';
import { command, type Started, startAppliance } from './program.ts';

const CHANGES = '/v1/detections/changes';
const DROPS = 40;
const KEYS = 20;
const WAITING = KEYS * WAITS_PER_KEY_MAX;
const IDLE_MS = 10_000;
const PAGES = 200;
const PAGE_REQUESTS = 400;

/** @param before an appliance on the same data; it is replaced by one that allows two thousand connections */
export async function following(bench: Bench, before: Started): Promise<Figure[]> {
  await before.stop();
  const keys = Array.from({ length: KEYS }, () => createKey(bench.data, SUBSCRIPTIONS));
  const settings = {
    WIREWATCH_SERVER_MAX_CONNECTIONS: `${2 * WAITING}`,
    WIREWATCH_SERVER_MAX_CONNECTIONS_PER_ADDRESS: `${2 * WAITING}`,
  };
  const fresh = await startAppliance(bench.data, undefined, settings);
  try {
    const packed = await compressed(bench, fresh);
    return [await soon(bench, fresh), ...(await crowd(bench, fresh, keys)), ...packed];
  } finally {
    await fresh.stop();
  }
}

/** Adds one new detection, in its own window. */
async function drop(bench: Bench, turn: number): Promise<void> {
  const out = join(bench.folder, 'following');
  const startMs = Math.floor(Date.now() / 600_000) * 600_000 - (turn + 2) * 600_000;
  const start = new Date(startMs).toISOString();
  const rows = ['--rows', '1', '--windows', '1', '--export', 'newswire', '--seed', `follow ${turn}`];
  command('generate', '--out', out, '--start', start, ...rows, '--subscriptions', `${SUBSCRIPTIONS[0]}`);
  const name = `newswire.${start.replaceAll(/[-:]|:00\.000/g, '').slice(0, 13)}Z.ndjson.gz`;
  renameSync(join(out, name), join(bench.data, 'drop', name));
}

async function head(bench: Bench, url: string): Promise<string> {
  const since = new Date().toISOString();
  const answer = await fetch(`${url}${CHANGES}?since=${since}`, { headers: authorization(bench) });
  const { next_cursor }: { next_cursor: string } = JSON.parse(await answer.text());
  return next_cursor;
}

/** The median time from a commit, by its delivery time in the database, to the response of a waiting request. */
async function soon(bench: Bench, { url }: Started): Promise<Figure> {
  const received: number[] = [];
  let cursor = await head(bench, url);
  for (let turn = 0; turn < DROPS; turn += 1) {
    const answer = fetch(`${url}${CHANGES}?cursor=${cursor}`, {
      headers: { ...authorization(bench), prefer: 'wait=60' },
    });
    await sleep(50);
    await drop(bench, turn);
    const page: { next_cursor: string; data: unknown[] } = JSON.parse(await (await answer).text());
    if (page.data.length > 0) received.push(Date.now());
    cursor = page.next_cursor;
  }
  // The last delivery time is written when ingest is idle.
  await sleep(1000);
  const db = openDatabase(join(bench.data, 'detections.db'), 'read');
  const recent =
    'SELECT delivered_at FROM delivery WHERE delivered_at IS NOT NULL ORDER BY delivered_at DESC LIMIT ?';
  const delivered = db.prepare<unknown[], number>(recent).pluck().all(received.length).reverse();
  db.close();
  const waits = delivered.map((at, turn) => (received[turn] ?? 0) - at);
  return {
    what: `from a commit to the answer of a client that waits, median of ${waits.length}`,
    unit: 'ms',
    before: null,
    now: median(waits),
    isCost: true,
  };
}

/** A thousand waiting requests: memory, processor time, and the time until all have received the same change. */
async function crowd(bench: Bench, appliance: Started, keys: readonly string[]): Promise<Figure[]> {
  const { hostname, port } = new URL(appliance.url);
  const cursor = await head(bench, appliance.url);
  const before = appliance.megabytes() ?? 0;
  const requests = keys.map(
    (key) =>
      `GET ${CHANGES}?cursor=${cursor} HTTP/1.1\r\nHost: ${hostname}\r\nPrefer: wait=60\r\nAuthorization: Bearer ${key}\r\n\r\n`,
  );
  const times: number[] = [];
  const sockets: Socket[] = [];
  for (let at = 0; at < WAITING; at += 1) {
    const socket = connect(Number(port), hostname, () => socket.write(requests[at % KEYS] ?? ''));
    socket.once('data', () => times.push(performance.now())).on('error', () => {});
    sockets.push(socket);
    if (at % 200 === 199) await sleep(50);
  }
  await sleep(2000);
  const waiting = appliance.megabytes() ?? 0;
  const cpuBefore = appliance.cpuMs() ?? 0;
  await sleep(IDLE_MS);
  const cpu = (appliance.cpuMs() ?? 0) - cpuBefore;
  await drop(bench, DROPS + 1);
  for (let turn = 0; times.length < WAITING && turn < 600; turn += 1) await sleep(50);
  for (const socket of sockets) socket.destroy();
  times.sort((a, b) => a - b);
  return [
    {
      what: `memory of ${WAITING} clients that wait`,
      unit: 'MB',
      before: null,
      now: waiting - before,
      isCost: true,
    },
    {
      what: `processor time of the appliance while ${WAITING} wait for 10 s`,
      unit: 'ms',
      before: null,
      now: cpu,
      isCost: true,
    },
    {
      what: `from the first to the last of ${times.length} that have the same change`,
      unit: 'ms',
      before: null,
      now: (times.at(-1) ?? 0) - (times[0] ?? 0),
      isCost: true,
    },
  ];
}

/** Pages of 1,000 rows as gzip, zstd and plain, and light requests beside eight clients that read such pages. */
async function compressed(bench: Bench, { url }: Started): Promise<Figure[]> {
  const headers = authorization(bench);
  const paths = await pagesOf(bench, url);
  let turn = 0;
  const path = () => {
    turn += 1;
    return paths[turn % paths.length] ?? '';
  };
  const walk = (encoding: string, requests = PAGE_REQUESTS) =>
    runLoad({
      url,
      connections: CONNECTIONS,
      requests,
      headers: { ...headers, 'accept-encoding': encoding },
      path,
    });
  const plain: number[] = [];
  const gzip: number[] = [];
  const zstd: number[] = [];
  for (let round = 0; round < bench.rounds; round += 1) {
    plain.push((await walk('identity')).requests_per_second);
    gzip.push((await walk('gzip')).requests_per_second);
    zstd.push((await walk('zstd')).requests_per_second);
  }
  const one = await fetch(`${url}${paths[0]}`, { headers: { ...headers, 'accept-encoding': 'gzip' } });
  const bytes = Number(one.headers.get('content-length'));
  await one.arrayBuffer();
  const lightBeside = async (encoding: string) => {
    let isOver = false;
    const walking = (async () => {
      while (!isOver) await walk(encoding, CONNECTIONS * 4);
    })();
    const light = {
      connections: 1,
      requests: 1500,
      headers,
      mayRest: true,
      path: () => '/v1/detections/t.1.1.1',
    };
    const { durations_ms } = await runLoad({ url, status: 404, ...light });
    isOver = true;
    await walking;
    return durations_ms[Math.floor(durations_ms.length * 0.99)] ?? 0;
  };
  const besidePlain = await lightBeside('identity');
  const besideGzip = await lightBeside('gzip');
  const rate = 'pages/s';
  return [
    {
      what: 'page of 1,000 rows as gzip, against plain',
      unit: rate,
      before: median(plain),
      now: median(gzip),
    },
    {
      what: 'page of 1,000 rows as zstd, against plain',
      unit: rate,
      before: median(plain),
      now: median(zstd),
    },
    { what: 'bytes of such a page as gzip', unit: 'KB', before: null, now: bytes / 1000, isCost: true },
    {
      what: 'light request, 99 of 100, beside eight clients that walk with gzip, against plain',
      unit: 'ms',
      before: besidePlain,
      now: besideGzip,
      isCost: true,
    },
  ];
}

/** The requests that read one stream to its end. */
async function pagesOf(bench: Bench, url: string): Promise<string[]> {
  const scope = `limit=1000&subscription_id=${SUBSCRIPTIONS[0]}`;
  const paths = [`${CHANGES}?${scope}&since=${new Date(Date.now() - 3_600_000).toISOString()}`];
  for (let page = { has_more: true, next_cursor: '' }; page.has_more && paths.length < PAGES; ) {
    const answer = await fetch(`${url}${paths.at(-1)}`, { headers: authorization(bench) });
    page = JSON.parse(await answer.text());
    if (page.has_more) paths.push(`${CHANGES}?${scope}&cursor=${page.next_cursor}`);
  }
  return paths;
}
