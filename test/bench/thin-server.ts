/**
 * The least that can serve a page of the change stream from PostgreSQL: node:http and one query, without keys, checks,
 * limits, cursors and log. `node thin-server.ts PORT ORDINAL` prints its address; a path is the place after which a page
 * begins.
 */
import { createServer } from 'node:http';
import { placesOf } from '../../src/store/stream-place.ts';
import { listen } from '../support/free-port.ts';
import { connectPool } from './peers.ts';

const PAGE = 'SELECT place, body FROM stream_row WHERE place > $1 AND place < $2 ORDER BY place LIMIT 1000';

const [port = '', ordinal = ''] = process.argv.slice(2);
const { first, end } = placesOf(Number(ordinal));
const pool = await connectPool(Number(port));
const server = createServer(async ({ url = '/' }, response) => {
  const values = [Math.max(first, Number(url.slice(1))), end];
  const { rows } = await pool.query({ name: 'page', text: PAGE, values });
  const page = Buffer.from(`[${rows.map(({ body }) => body).join()}] ${rows.at(-1)?.place ?? 0}`);
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': page.length }).end(page);
});
process.stdout.write(`http://127.0.0.1:${await listen(server)}\n`);
