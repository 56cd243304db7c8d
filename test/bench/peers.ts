/**
 * Pages against other programs that serve the same rows on this machine. They do less (no keys, no cursors, no
 * windows), so the comparison shows the cost of these features, and where this program is slower.
 *
 * A bare server reads the same database. With `--peers`, nginx sends the bytes of a page from a file: it must be
 * installed, and the benchmark starts and stops it.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { freePort } from '../support/free-port.ts';
import { startNginx as runNginx } from '../support/nginx.ts';
import { until } from '../support/until.ts';
import { type Bench, type Figure, inTurn, median, SUBSCRIPTIONS } from './common.ts';
import { dropped, exportOf, prepareAccess } from './ingest.ts';
import { authorization, type Load, runLoad, walkOf, walkPlaces } from './load.ts';
import { startAppliance, startServer, stop } from './program.ts';

const REQUESTS = 400;
const PAGE_ROWS = 1000;

interface Peer extends Omit<Load, 'requests'> {
  readonly name: string;
}

/** What the other programs serve: the rows of a database, or the bytes of a page. */
type Served = Readonly<{ folder: string; database: string; page: Buffer; stops: AsyncDisposableStack }>;

/** @param starts of the other programs */
export async function peers(
  bench: Bench,
  ...starts: readonly ((served: Served) => Promise<Peer>)[]
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
  for (const start of starts) others.push(await start(served));
  const run = (peer: Peer) => runLoad({ ...peer, requests: REQUESTS });
  const ours = { name: 'this program', url, path, headers };
  const [now = 0, ...rates] = (await inTurn([ours, ...others], bench, run)).map(median);
  return others.map(({ name }, at) => {
    return { what: `page, against ${name}`, unit: 'pages/s', before: rates[at] ?? 0, now };
  });
}

const PAGE = `
  SELECT CAST(group_concat(body, ',') AS BLOB) AS body, max(place) AS last
  FROM (SELECT place, body FROM stream_row WHERE place > ? AND place < ? ORDER BY place LIMIT ${PAGE_ROWS})`;
/** The ordinal of the first stream of a new database. */
const FIRST = '1';

export async function startBare({ database, stops }: Served): Promise<Peer> {
  const { url } = stops.use(await startServer('thin-server.ts', database, FIRST, PAGE));
  return { name: 'a bare server', url, path: walkPlaces };
}

export async function startNginx({ folder, page, stops }: Served): Promise<Peer> {
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
  const path = () => '/page.json';
  return { name: 'nginx, the same bytes from a file', url: `http://127.0.0.1:${port}`, path };
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
