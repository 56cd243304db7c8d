/**
 * The least that can serve a page of the change stream from a database: node:http and one statement, without keys,
 * checks, limits, cursors and log. `node bare-server.ts DATABASE ORDINAL` prints its address; a path is the place after
 * which a page begins.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { openDatabase } from '../../src/store/database.ts';
import { placesOf } from '../../src/store/stream-place.ts';

const PAGE = `
  SELECT CAST(group_concat(body, ',') AS BLOB) AS body, max(place) AS last
  FROM (SELECT place, body FROM stream_row WHERE place > ? AND place < ? ORDER BY place LIMIT 1000)`;

const [database = '', ordinal = ''] = process.argv.slice(2);
const { first, end } = placesOf(Number(ordinal));
const page = openDatabase(database, 'read').prepare<unknown[], { body: Buffer | null; last: number | null }>(
  PAGE,
);
const server = createServer(({ url = '/' }, response) => {
  const { body, last } = page.get(Math.max(first, Number(url.slice(1))), end) ?? { body: null, last: null };
  const pieces = [Buffer.from('['), body ?? Buffer.alloc(0), Buffer.from(`] ${last ?? 0}`)];
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': length });
  response.cork();
  for (const piece of pieces) response.write(piece);
  response.end();
  response.uncork();
});
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`);
});
