/**
 * The limits that the appliance is held against, each a bare node:http server on the same database: run as
 * `node bare-server.ts KIND DATABASE`, prints its port.
 */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Database, openReader } from '../../src/store/database.ts';

const PAGE_ROWS = 1000;

const GROUPED = `
  SELECT CAST(group_concat(body, ',') AS BLOB) AS body, max(position) AS last
  FROM (SELECT position, body FROM stream_row WHERE stream = ? AND position > ? ORDER BY position LIMIT ${PAGE_ROWS})`;

const GROUPED_ALL = `
  SELECT CAST(group_concat(body, ',') AS BLOB) AS body, max(position) AS last
  FROM (SELECT position, body FROM stream_row WHERE position > ? ORDER BY position LIMIT ${PAGE_ROWS})`;

const ROWS = `SELECT position, body FROM stream_row WHERE stream = ? AND position > ? ORDER BY position LIMIT ${PAGE_ROWS}`;

const PERIOD = `
  SELECT CAST(group_concat(body, ',') AS BLOB) AS body
  FROM (SELECT body FROM detection WHERE stream = ? AND first_detected_at >= ? AND first_detected_at < ?
    ORDER BY first_detected_at DESC, id LIMIT ${PAGE_ROWS})`;

/** The streams are merged by the database, as lazily as it can. */
const PERIOD_ALL = `
  SELECT CAST(group_concat(body, ',') AS BLOB) AS body
  FROM (${[7001, 7002, 7003, 7004]
    .flatMap((subscription) => [subscription * 2, subscription * 2 + 1])
    .map(
      (stream) => `SELECT body, first_detected_at, id FROM detection
        WHERE stream = ${stream} AND first_detected_at >= @from AND first_detected_at < @to`,
    )
    .join(' UNION ALL ')} ORDER BY first_detected_at DESC, id LIMIT 200)`;

type Answer = (response: ServerResponse, stream: number, after: number, from: number, to: number) => void;

function answerOf(kind: string, db: Database | null): Answer {
  switch (kind) {
    case 'fixed': {
      const body = Buffer.alloc(100, 'x');
      return (response) => send(response, [body]);
    }
    case 'grouped': {
      const statement = prepared<{ body: Buffer; last: number }>(db, GROUPED);
      return (response, stream, after) => {
        const page = statement.get(stream, after);
        send(response, [
          Buffer.from('['),
          page?.body ?? Buffer.alloc(0),
          Buffer.from(`] ${page?.last ?? 0}`),
        ]);
      };
    }
    case 'grouped-all': {
      const statement = prepared<{ body: Buffer; last: number }>(db, GROUPED_ALL);
      return (response, _stream, after) => {
        const page = statement.get(after);
        send(response, [
          Buffer.from('['),
          page?.body ?? Buffer.alloc(0),
          Buffer.from(`] ${page?.last ?? 0}`),
        ]);
      };
    }
    case 'period': {
      const statement = prepared<{ body: Buffer }>(db, PERIOD);
      return (response, stream, _after, from, to) => {
        const page = statement.get(stream, from, to);
        send(response, [Buffer.from('['), page?.body ?? Buffer.alloc(0), Buffer.from(']')]);
      };
    }
    case 'period-all': {
      const statement = prepared<{ body: Buffer }>(db, PERIOD_ALL);
      return (response, _stream, _after, from, to) => {
        const page = statement.get({ from, to });
        send(response, [Buffer.from('['), page?.body ?? Buffer.alloc(0), Buffer.from(']')]);
      };
    }
    case 'row-by-row': {
      const statement = prepared<{ position: number; body: string }>(db, ROWS);
      return (response, stream, after) => {
        const rows = statement.all(stream, after);
        const data = rows.map((row): unknown => JSON.parse(row.body));
        send(response, [Buffer.from(`${JSON.stringify(data)} ${rows.at(-1)?.position ?? 0}`)]);
      };
    }
    default:
      throw new Error(`no such server: ${kind}`);
  }
}

function prepared<Row>(db: Database | null, sql: string) {
  if (db === null) throw new Error('this server needs a database');
  return db.prepare<unknown[], Row>(sql);
}

function send(response: ServerResponse, pieces: Buffer[]): void {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': length });
  response.cork();
  for (const piece of pieces) response.write(piece);
  response.end();
  response.uncork();
}

const [kind = '', database] = process.argv.slice(2);
const answer = answerOf(kind, database === undefined ? null : openReader(database));
const server = createServer((request, response) => {
  const [stream = 0, after = 0, from = 0, to = 0] = (request.url ?? '/').slice(1).split('/').map(Number);
  answer(response, stream, after, from, to);
});
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`${port}\n`);
});
