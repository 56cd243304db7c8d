/**
 * Pages against other programs that serve the same rows on this machine. They do less (no keys, no cursors, no
 * windows), so the comparison shows the cost of these features, and where this program is slower.
 *
 * A bare server reads the same database. With `--peers`, nginx sends the bytes of a page from a file, and PostgreSQL
 * stores the rows: a thin Node server queries it, once row by row and once for the page as one text, as PostgREST does.
 * The benchmark starts and stops them: `nginx`, PostgreSQL and the package `pg` (`npm install --no-save pg`) must be
 * installed.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, globSync, mkdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { openDatabase } from '../../src/store/database.ts';
import { freePort } from '../support/free-port.ts';
import { startNginx as runNginx } from '../support/nginx.ts';
import { until } from '../support/until.ts';
import { type Bench, type Figure, inTurn, median, SUBSCRIPTIONS } from './common.ts';
import { dropped, exportOf, prepareAccess } from './ingest.ts';
import { authorization, CONNECTIONS, type Load, runLoad, walkOf, walkPlaces } from './load.ts';
import { startAppliance, startServer, stop } from './program.ts';

const REQUESTS = 400;
const PAGE_ROWS = 1000;

interface Peer extends Omit<Load, 'requests'> {
  readonly name: string;
}

/** What the other programs serve: the rows of a database, or the bytes of a page. */
interface Served {
  readonly folder: string;
  readonly database: string;
  readonly page: Buffer;
  readonly stops: AsyncDisposableStack;
}

/** @param starts of the other programs */
export async function peers(
  bench: Bench,
  ...starts: readonly ((served: Served) => Promise<Peer[]>)[]
): Promise<Figure[]> {
  await using stops = new AsyncDisposableStack();
  const data = join(bench.folder, 'data');
  const headers = authorization(prepareAccess(data));
  const { url } = stops.use(await startAppliance(data));
  await dropped(join(data, 'drop'), exportOf(bench));
  const path = walkOf(`&subscription_id=${SUBSCRIPTIONS[0]}`);
  const answer = await fetch(`${url}${path(0, null)}`, { headers });
  const page = Buffer.from(await answer.arrayBuffer());
  const served = { folder: bench.folder, database: join(data, 'detections.db'), page, stops };
  const others: Peer[] = [];
  for (const start of starts) others.push(...(await start(served)));
  const run = (peer: Peer) => runLoad({ ...peer, requests: REQUESTS });
  const ours = { name: 'this program', url, path, headers };
  const [now = 0, ...rates] = (await inTurn([ours, ...others], bench, run)).map(median);
  return others.map(({ name }, at) => {
    return { what: `page, against ${name}`, unit: 'pages/s', before: rates[at] ?? 0, now };
  });
}

async function startThin({ stops }: Served, name: string, ...args: readonly string[]): Promise<Peer> {
  const { url } = stops.use(await startServer('thin-server.ts', ...args));
  return { name, url, path: walkPlaces };
}

const OF_SQLITE = `
  SELECT CAST(group_concat(body, ',') AS BLOB) AS body, max(place) AS last
  FROM (SELECT place, body FROM stream_row WHERE place > ? AND place < ? ORDER BY place LIMIT ${PAGE_ROWS})`;
/** The ordinal of the first stream of a new database. */
const FIRST = '1';

export async function startBare(served: Served): Promise<Peer[]> {
  return [await startThin(served, 'a bare server', served.database, FIRST, OF_SQLITE)];
}

export async function startNginx({ folder, page, stops }: Served): Promise<Peer[]> {
  const home = join(folder, 'nginx');
  mkdirSync(home);
  writeFileSync(join(home, 'page.json'), page);
  const port = await freePort();
  const child = runNginx(
    home,
    `sendfile on; tcp_nopush on;
     server { listen 127.0.0.1:${port}; root ${home}; default_type application/json; keepalive_requests 1000000; }`,
  );
  stops.defer(() => stop(child, 'SIGTERM'));
  await listening(port, child);
  const url = `http://127.0.0.1:${port}`;
  return [{ name: 'nginx, the same bytes from a file', url, path: () => '/page.json' }];
}

const POSTGRES_TABLE = `CREATE TABLE stream_row (place bigint PRIMARY KEY, position bigint NOT NULL, body text NOT NULL)`;
const ROWS = `SELECT place, body FROM stream_row WHERE place > $1 AND place < $2 ORDER BY place LIMIT ${PAGE_ROWS}`;
const ONE_TEXT = `SELECT string_agg(body, ',' ORDER BY place) AS body, max(place) AS last FROM (${ROWS}) AS page`;

export async function startPostgres(served: Served): Promise<Peer[]> {
  const { folder, stops } = served;
  const onPath = existsSync('/usr/bin/initdb') ? ['/usr/bin'] : [];
  const [bin] = [...globSync('/usr/lib/postgresql/*/bin'), ...onPath];
  if (bin === undefined) throw new Error('PostgreSQL is not installed: its initdb was not found');
  const home = join(folder, 'postgres');
  mkdirSync(home, { mode: 0o700 });
  const account = unprivileged();
  if (account.uid !== undefined) chownSync(home, account.uid, account.gid ?? 0);
  execFileSync('chmod', ['o+x', folder]);
  const options = { ...account, cwd: '/', stdio: 'ignore' } as const;
  const init = ['-D', home, '-A', 'trust', '-U', 'bench', '-E', 'UTF8', '--no-sync'];
  execFileSync(join(bin, 'initdb'), init, options);
  const port = await freePort();
  const address = [`port=${port}`, 'listen_addresses=127.0.0.1', `unix_socket_directories=${home}`];
  const settings = [...address, 'shared_buffers=512MB'].flatMap((setting) => ['-c', setting]);
  const child = spawn(join(bin, 'postgres'), ['-D', home, ...settings], options);
  stops.defer(() => stop(child, 'SIGINT'));
  await listening(port, child);
  const pool = await connectPool(port);
  stops.defer(() => pool.end());
  const ordinal = await fill(pool, served.database);
  const thin = (name: string, query: string) =>
    startThin(served, `PostgreSQL and a thin Node server, ${name}`, `${port}`, `${ordinal}`, query);
  return [await thin('row by row', ROWS), await thin('one text', ONE_TEXT)];
}

interface Pool {
  query(query: string | { name: string; text: string; values: readonly unknown[] }): Promise<{
    rows: { body: string; place?: string; last?: string }[];
  }>;
  end(): Promise<void>;
}

/** @param port of the PostgreSQL that the benchmark has started @throws Error if the package `pg` is not installed */
export async function connectPool(port: number): Promise<Pool> {
  const name = 'pg';
  const driver = await import(name).catch((cause) => {
    throw new Error('the package pg is not installed: npm install --no-save pg', { cause });
  });
  const user = { user: 'bench', database: 'postgres' };
  return new driver.default.Pool({ host: '127.0.0.1', port, ...user, max: CONNECTIONS });
}

/** @returns the ordinal of the first subscription's text stream */
async function fill(pool: Pool, database: string): Promise<number> {
  await pool.query(POSTGRES_TABLE);
  using db = openDatabase(database, 'read');
  const select = db.prepare<unknown[], { rows: string; last: number | null }>(
    `SELECT json_group_array(json_object('place', place, 'position', position, 'body', body)) AS rows, max(place) AS last
     FROM (SELECT place, position, body FROM stream_row WHERE place > ? ORDER BY place LIMIT 5000)`,
  );
  const text =
    'INSERT INTO stream_row SELECT place, position, body FROM json_to_recordset($1::json) AS row (place bigint, position bigint, body text)';
  for (let page = select.get(0); page !== undefined && page.last !== null; page = select.get(page.last))
    await pool.query({ name: 'fill', text, values: [page.rows] });
  await pool.query('VACUUM ANALYZE stream_row');
  const ordinal = "SELECT ordinal FROM stream WHERE subscription_id = ? AND content_type = 'text'";
  return db.prepare<unknown[], number>(ordinal).pluck().get(SUBSCRIPTIONS[0]) ?? 0;
}

/** PostgreSQL does not run as root. */
function unprivileged(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const [uid, gid] = ['-u', '-g'].map((option) => Number(execFileSync('id', [option, 'nobody']).toString()));
  return { uid: uid ?? 65534, gid: gid ?? 65534 };
}

async function listening(port: number, child: ChildProcess): Promise<void> {
  await until(`${child.spawnfile} to listen`, async () => {
    if (child.exitCode !== null) throw new Error(`${child.spawnfile} ended with ${child.exitCode}`);
    const socket = connect(port, '127.0.0.1');
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    return isOpen;
  });
}
