/**
 * The least that can serve a page of the change stream: node:http and one query, without keys, checks, limits, cursors
 * and log. `node thin-server.ts DATABASE ORDINAL QUERY` prints its address; a path is the place after which a page begins.
 */
import { createServer } from 'node:http';
import { openDatabase } from '../../src/store/database.ts';
import { placesOf } from '../../src/store/stream-place.ts';
import { listen } from '../support/free-port.ts';

const [database = '', ordinal = '', query = ''] = process.argv.slice(2);
const { first, end } = placesOf(Number(ordinal));

const page = openDatabase(database, 'read').prepare<unknown[], { body: Buffer | null; last: number }>(query);
const server = createServer(({ url = '/' }, response) => {
  const { body, last } = page.get(Math.max(first, Number(url.slice(1))), end) ?? { body: null, last: 0 };
  const pieces = [Buffer.from('['), body ?? Buffer.alloc(0), Buffer.from(`] ${last}`)];
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': length });
  response.cork();
  for (const piece of pieces) response.write(piece);
  response.end();
  response.uncork();
});
process.stdout.write(`http://127.0.0.1:${await listen(server)}\n`);
