/**
 * The appliance's baselines: bare node:http servers on the same database. `node bare-server.ts KIND DATABASE` starts
 * one and prints its port. Paths are /ORDINAL/AFTER/FROM/TO.
 */

import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { detectionTables } from '../../src/query/detection-text.ts';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { placesOf } from '../../src/store/stream-place.ts';

const PAGE_ROWS = 1000;

/** The rows of a stream are adjacent: after a place, and before the end of the stream's places. */
const OF_ONE = `FROM stream_row WHERE place > ? AND place < ? ORDER BY place LIMIT ${PAGE_ROWS}`;
/** The first four streams of a new database. */
const ORDINALS = [1, 2, 3, 4];

const GROUPED = `
  SELECT CAST(group_concat(body, ',') AS BLOB) AS body, max(place) AS last FROM (SELECT place, body ${OF_ONE})`;

const ROWS = `SELECT place, body ${OF_ONE}`;

const GROUPED_ALL = `
  SELECT CAST(group_concat(body, ',') AS BLOB) AS body, max(row.position) AS last
  FROM (${ORDINALS.map((ordinal) => `SELECT place, position FROM stream_row WHERE place >> 34 = ${ordinal} AND position > @after`).join(' UNION ALL ')}
    ORDER BY position LIMIT ${PAGE_ROWS}) AS page CROSS JOIN stream_row AS row ON row.place = page.place`;

const KEYS = 'SELECT place, id, first_detected_at FROM detection';
const TIME = 'first_detected_at >= @from AND first_detected_at < @to';

/** Without the member `event`; the length of what precedes it depends on id and version. */
const BEFORE_EVENT = `length(page.id) + length(row.version) + ${'{"id":"","version":,'.length}`;
const STREAM_ROW = 'CAST(row.body AS BLOB)';
const DETECTION = `iif(rescored.body IS NULL, substr(${STREAM_ROW}, 1, ${BEFORE_EVENT})
  || substr(${STREAM_ROW}, ${BEFORE_EVENT} + ${'"event":"created",'.length + 1}), rescored.body)`;

const PERIOD = `
  SELECT CAST(group_concat(${DETECTION}, ',') AS BLOB) AS body
  FROM (${KEYS} WHERE place >> 34 = @stream AND ${TIME} ORDER BY first_detected_at DESC, id LIMIT ${PAGE_ROWS})
    AS ${detectionTables('page')}`;

/** SQLite merges the streams lazily. */
const PERIOD_ALL = `
  SELECT CAST(group_concat(${DETECTION}, ',') AS BLOB) AS body
  FROM (${ORDINALS.map((ordinal) => `${KEYS} WHERE place >> 34 = ${ordinal} AND ${TIME}`).join(' UNION ALL ')}
    ORDER BY first_detected_at DESC, id LIMIT 200) AS ${detectionTables('page')}`;

interface Asked {
  readonly stream: number;
  readonly after: number;
  readonly from: number;
  readonly to: number;
}

type Answer = (response: ServerResponse, asked: Asked) => void;

function answerOf(kind: string, db: Database | null): Answer {
  switch (kind) {
    case 'fixed': {
      const body = Buffer.alloc(100, 'x');
      return (response) => send(response, [body]);
    }
    case 'grouped': {
      const statement = prepared<{ body: Buffer; last: number }>(db, GROUPED);
      return (response, { stream, after }) => {
        const { first, end } = placesOf(stream);
        const page = statement.get(Math.max(after, first), end);
        send(response, [
          Buffer.from('['),
          page?.body ?? Buffer.alloc(0),
          Buffer.from(`] ${page?.last ?? 0}`),
        ]);
      };
    }
    case 'grouped-all': {
      const statement = prepared<{ body: Buffer; last: number }>(db, GROUPED_ALL);
      return (response, { after }) => {
        const page = statement.get({ after });
        send(response, [
          Buffer.from('['),
          page?.body ?? Buffer.alloc(0),
          Buffer.from(`] ${page?.last ?? 0}`),
        ]);
      };
    }
    case 'period': {
      const statement = prepared<{ body: Buffer }>(db, PERIOD);
      return (response, { stream, from, to }) => {
        const page = statement.get({ stream, from, to });
        send(response, [Buffer.from('['), page?.body ?? Buffer.alloc(0), Buffer.from(']')]);
      };
    }
    case 'period-all': {
      const statement = prepared<{ body: Buffer }>(db, PERIOD_ALL);
      return (response, { from, to }) => {
        const page = statement.get({ from, to });
        send(response, [Buffer.from('['), page?.body ?? Buffer.alloc(0), Buffer.from(']')]);
      };
    }
    case 'row-by-row': {
      const statement = prepared<{ place: number; body: string }>(db, ROWS);
      return (response, { stream, after }) => {
        const { first, end } = placesOf(stream);
        const rows = statement.all(Math.max(after, first), end);
        const data = rows.map((row): unknown => JSON.parse(row.body));
        send(response, [Buffer.from(`${JSON.stringify(data)} ${rows.at(-1)?.place ?? 0}`)]);
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
const answer = answerOf(kind, database === undefined ? null : openDatabase(database, 'read'));
const server = createServer((request, response) => {
  const [stream = 0, after = 0, from = 0, to = 0] = (request.url ?? '/').slice(1).split('/').map(Number);
  answer(response, { stream, after, from, to });
});
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`${port}\n`);
});
