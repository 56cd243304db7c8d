/**
 * The least that can serve a page of the change stream: node:http and one query, without keys, checks, limits, cursors
 * and log. `node thin-server.ts SOURCE ORDINAL QUERY` prints its address; the source is an SQLite file, or the port of
 * a PostgreSQL, and a path is the place after which a page begins.
 */
import { createServer } from 'node:http';
import { openDatabase } from '../../src/store/database.ts';
import { placesOf } from '../../src/store/stream-place.ts';
import { listen } from '../support/free-port.ts';
import { connectPool } from './peers.ts';

const [source = '', ordinal = '', query = ''] = process.argv.slice(2);
const { first, end } = placesOf(Number(ordinal));

function ofSqlite() {
  const page = openDatabase(source, 'read').prepare<unknown[], { body: Buffer | null; last: number }>(query);
  return (place: number) => page.get(place, end);
}

async function ofPostgres() {
  const pool = await connectPool(Number(source));
  return async (place: number) => {
    const { rows } = await pool.query({ name: 'page', text: query, values: [place, end] });
    const body = Buffer.from(rows.map((row) => row.body).join());
    return { body, last: rows.at(-1)?.place ?? rows[0]?.last };
  };
}

const read = /^\d+$/.test(source) ? await ofPostgres() : ofSqlite();
const server = createServer(async ({ url = '/' }, response) => {
  const page = await read(Math.max(first, Number(url.slice(1))));
  const pieces = [Buffer.from('['), page?.body ?? Buffer.alloc(0), Buffer.from(`] ${page?.last ?? 0}`)];
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': length });
  response.cork();
  for (const piece of pieces) response.write(piece);
  response.end();
  response.uncork();
});
process.stdout.write(`http://127.0.0.1:${await listen(server)}\n`);
