/**
 * A thin server of rows in PostgreSQL: node:http and one query, which another program would also send. `node
 * thin-server.ts PORT ORDINAL QUERY` prints its address; a path is the place after which a page begins.
 */
import { createServer, type ServerResponse } from 'node:http';
import { placesOf } from '../../src/store/stream-place.ts';
import { listen } from '../support/free-port.ts';
import { connectPool } from './peers.ts';

const [port = '', ordinal = '', text = ''] = process.argv.slice(2);
const { first, end } = placesOf(Number(ordinal));
const pool = await connectPool(Number(port));

async function send(path: string, response: ServerResponse): Promise<void> {
  const values = [Math.max(first, Number(path.slice(1))), end];
  const { rows } = await pool.query({ name: 'page', text, values });
  const last = rows.at(-1)?.place ?? rows[0]?.last ?? '0';
  const answer = Buffer.from(`[${rows.map(({ body }) => body).join(',')}] ${last}`);
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': answer.length });
  response.end(answer);
}

const server = createServer((request, response) => void send(request.url ?? '/0', response));
process.stdout.write(`http://127.0.0.1:${await listen(server)}\n`);
