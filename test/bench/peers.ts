/**
 * `--peers`: other programs serve the same rows on this machine. They do less (no keys, no cursors, no windows), so the
 * comparison shows the cost of these features, and where this program is slower.
 *
 * nginx sends the bytes of a page from a file. PostgreSQL stores the rows, and a thin Node server queries it, once row
 * by row and once for the page as one text, as PostgREST does. The benchmark starts and stops them: `nginx`, PostgreSQL
 * and the package `pg` (`npm install --no-save pg`) must be installed.
 */

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, globSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, createServer as createSocket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openDatabase } from '../../src/store/database.ts';
import {
  authorization,
  type Bench,
  CONNECTIONS,
  type Figure,
  lastNumber,
  median,
  ordinalIn,
  SUBSCRIPTIONS,
} from './common.ts';
import { type Load, runLoad } from './load.ts';
import { walkOf } from './pages.ts';

const REQUESTS = 400;
const PAGE_ROWS = 1000;

interface Peer {
  readonly name: string;
  readonly url: string;
  readonly path: Load['path'];
  readonly headers?: Readonly<Record<string, string>>;
}

export async function peers(bench: Bench, url: string): Promise<Figure[]> {
  const own = `&subscription_id=${SUBSCRIPTIONS[0]}`;
  const headers = authorization(bench);
  const walk = walkOf(PAGE_ROWS)(own);
  const page = await fetch(`${url}${walk(0, null)}`, { headers });
  const nginx = await startNginx(bench.folder, Buffer.from(await page.arrayBuffer()));
  try {
    const postgres = await startPostgres(bench);
    try {
      const ours: Peer = { name: 'this program', url, path: walk, headers };
      return await compared(bench, ours, [nginx, ...postgres.peers]);
    } finally {
      await postgres.stop();
    }
  } finally {
    await nginx.stop();
  }
}

/** Measures all in turn, so that noise affects all. The first round warms up. */
async function compared(bench: Bench, ours: Peer, others: readonly Peer[]): Promise<Figure[]> {
  const rates = new Map<Peer, number[]>([ours, ...others].map((peer) => [peer, []]));
  for (let round = 0; round <= bench.rounds; round += 1)
    for (const [{ url, path, headers }, list] of rates) {
      const load = { url, path, connections: CONNECTIONS, requests: REQUESTS };
      const { requests_per_second } = await runLoad(headers === undefined ? load : { ...load, headers });
      if (round > 0) list.push(requests_per_second);
    }
  const now = median(rates.get(ours) ?? []);
  return others.map((peer) => ({
    what: `page, against ${peer.name}`,
    unit: 'pages/s',
    before: median(rates.get(peer) ?? []),
    now,
  }));
}

async function startNginx(folder: string, page: Buffer): Promise<Peer & { stop: () => Promise<void> }> {
  const home = join(folder, 'nginx');
  mkdirSync(home);
  writeFileSync(join(home, 'page.json'), page);
  const port = await freePort();
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (kind) => `${kind}_temp_path ${home};`,
  );
  writeFileSync(
    join(home, 'nginx.conf'),
    `daemon off; master_process off; pid ${home}/pid; error_log ${home}/error.log; events {}
     http { access_log off; sendfile on; tcp_nopush on; ${temporary.join(' ')}
       server { listen 127.0.0.1:${port}; root ${home}; default_type application/json; keepalive_requests 1000000; } }`,
  );
  const child = spawn('nginx', ['-p', home, '-c', join(home, 'nginx.conf'), '-e', join(home, 'error.log')], {
    stdio: 'ignore',
  });
  await listening(port, child);
  return {
    name: 'nginx, the same bytes from a file',
    url: `http://127.0.0.1:${port}`,
    path: () => '/page.json',
    stop: () => ended(child, 'SIGTERM'),
  };
}

const POSTGRES_TABLE = `CREATE TABLE stream_row (place bigint PRIMARY KEY, position bigint NOT NULL, body text NOT NULL)`;
const ROWS = `SELECT place, body FROM stream_row WHERE place > $1 AND place < $2 ORDER BY place LIMIT ${PAGE_ROWS}`;
const ONE_TEXT = `SELECT string_agg(body, ',' ORDER BY place) AS body, max(place) AS last FROM (${ROWS}) AS page`;

interface Postgres {
  readonly peers: readonly Peer[];
  stop(): Promise<void>;
}

async function startPostgres(bench: Bench): Promise<Postgres> {
  const [bin] = globSync('/usr/lib/postgresql/*/bin').concat(
    existsSync('/usr/bin/initdb') ? ['/usr/bin'] : [],
  );
  if (bin === undefined) throw new Error('PostgreSQL is not installed: its initdb was not found');
  const home = join(bench.folder, 'postgres');
  mkdirSync(home, { mode: 0o700 });
  const account = unprivileged();
  if (account.uid !== undefined) chownSync(home, account.uid, account.gid ?? 0);
  execFileSync('chmod', ['o+x', bench.folder]);
  const options = { ...account, cwd: '/' };
  execFileSync(join(bin, 'initdb'), ['-D', home, '-A', 'trust', '-U', 'bench', '-E', 'UTF8', '--no-sync'], {
    ...options,
    stdio: 'ignore',
  });
  const port = await freePort();
  const settings = [
    `port=${port}`,
    'listen_addresses=127.0.0.1',
    `unix_socket_directories=${home}`,
    'shared_buffers=512MB',
  ];
  const child = spawn(
    join(bin, 'postgres'),
    ['-D', home, ...settings.flatMap((setting) => ['-c', setting])],
    {
      ...options,
      stdio: 'ignore',
    },
  );
  await listening(port, child);
  const pg = await driver();
  const pool = new pg.Pool({
    host: '127.0.0.1',
    port,
    user: 'bench',
    database: 'postgres',
    max: CONNECTIONS,
  });
  await pool.query(POSTGRES_TABLE);
  await fill(pool, join(bench.data, 'detections.db'));
  const stream = ordinalIn(join(bench.data, 'detections.db'), SUBSCRIPTIONS[0] ?? 0);
  const [low, high] = [stream * 2 ** 34, (stream + 1) * 2 ** 34];
  const rowByRow = await served(async (after) => {
    const { rows } = await pool.query({ name: 'rows', text: ROWS, values: [Math.max(low, after), high] });
    return [rows.map(({ body }) => body).join(','), rows.at(-1)?.place ?? '0'];
  });
  const oneText = await served(async (after) => {
    const { rows } = await pool.query({ name: 'text', text: ONE_TEXT, values: [Math.max(low, after), high] });
    return [rows[0]?.body ?? '', rows[0]?.last ?? '0'];
  });
  return {
    peers: [
      { name: 'PostgreSQL and a thin Node server, row by row', url: rowByRow.url, path: walkPlaces },
      { name: 'PostgreSQL and a thin Node server, one text', url: oneText.url, path: walkPlaces },
    ],
    async stop() {
      rowByRow.close();
      oneText.close();
      await pool.end();
      await ended(child, 'SIGINT');
    },
  };
}

interface Pool {
  query(query: string | { name: string; text: string; values: readonly unknown[] }): Promise<{
    rows: { body: string; place?: string; last?: string }[];
  }>;
  end(): Promise<void>;
}

async function driver(): Promise<{ Pool: new (options: object) => Pool }> {
  const name = 'pg';
  try {
    return (await import(name)).default;
  } catch (error) {
    throw new Error('the package pg is not installed: npm install --no-save pg', { cause: error });
  }
}

async function fill(pool: Pool, database: string): Promise<void> {
  const db = openDatabase(database, 'read');
  const select = db.prepare<unknown[], { rows: string; last: number | null }>(
    `SELECT json_group_array(json_object('place', place, 'position', position, 'body', body)) AS rows, max(place) AS last
     FROM (SELECT place, position, body FROM stream_row WHERE place > ? ORDER BY place LIMIT 5000)`,
  );
  const text =
    'INSERT INTO stream_row SELECT place, position, body FROM json_to_recordset($1::json) AS row (place bigint, position bigint, body text)';
  for (let page = select.get(0); page !== undefined && page.last !== null; page = select.get(page.last))
    await pool.query({ name: 'fill', text, values: [page.rows] });
  db.close();
  await pool.query('VACUUM ANALYZE stream_row');
}

/** A server that queries the page after a place, and sends it. */
async function served(
  ask: (after: number) => Promise<[body: string, last: string]>,
): Promise<{ url: string; close: () => void }> {
  const send = async (path: string, response: ServerResponse) => {
    const [body, last] = await ask(Number(path.slice(1)));
    const answer = Buffer.from(`[${body}] ${last}`);
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': answer.length });
    response.end(answer);
  };
  const server = createServer((request, response) => void send(request.url ?? '/0', response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

function walkPlaces(_: number, answer: Buffer | null): string {
  return `/${lastNumber(answer)}`;
}

/** PostgreSQL does not run as root. */
function unprivileged(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const [uid, gid] = ['-u', '-g'].map((option) => Number(execFileSync('id', [option, 'nobody']).toString()));
  return { uid: uid ?? 65534, gid: gid ?? 65534 };
}

async function freePort(): Promise<number> {
  const socket = createSocket();
  socket.listen(0, '127.0.0.1');
  await once(socket, 'listening');
  const { port } = socket.address() as AddressInfo;
  socket.close();
  return port;
}

async function listening(port: number, child: ChildProcess): Promise<void> {
  for (let tries = 0; tries < 500; tries += 1) {
    if (child.exitCode !== null) throw new Error(`${child.spawnfile} ended with ${child.exitCode}`);
    if (await accepts(port)) return;
    await sleep(20);
  }
  throw new Error(`${child.spawnfile} does not listen`);
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null) return;
  const exited = once(child, 'exit');
  child.kill(signal);
  await exited;
}
