/** The content of a data folder, independent of the database schema, for comparison with recorded logs. */

import { join } from 'node:path';
import { LOGGED_TABLES } from '../../src/log/apply-log.ts';
import { readOneDetection } from '../../src/query/detection-text.ts';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { readStream, STREAMS } from './streams.ts';

const BASE_URL = Buffer.from('https://api.example');

export interface Recorded {
  /** Every version in the order of the change stream, each with its position, as served. */
  readonly changes: readonly { readonly position: number; readonly text: string }[];
  /** The current state of every detection, as served. */
  readonly detections: readonly string[];
  /** Rows of the tables that the log names. */
  readonly tables: Readonly<Record<string, readonly unknown[]>>;
}

/** @param data must not be in use by a writer */
export function recordOf(data: string): Recorded {
  using db = openDatabase(join(data, 'detections.db'), 'read');
  const changes = changesOf(db);
  const ids = [...new Set(changes.map(({ text }) => String(JSON.parse(text).id)))].sort();
  const one = { streams: STREAMS, projection: null, baseUrl: BASE_URL };
  return {
    changes,
    detections: ids.map((id) => readOneDetection(db, { id, ...one }) ?? ''),
    tables: Object.fromEntries(LOGGED_TABLES.map((table) => [table, rowsOf(db, table)])),
  };
}

function changesOf(db: Database): Recorded['changes'] {
  const positions = db.prepare<[], number>('SELECT position FROM stream_row ORDER BY position').pluck().all();
  const rows: unknown[] = JSON.parse(`[${readStream(db)}]`);
  return rows.map((row, at) => ({ position: positions[at] ?? 0, text: JSON.stringify(row) }));
}

/** All rows of a table, sorted, with blobs in hexadecimal. */
function rowsOf(db: Database, table: string): unknown[] {
  const rows = db.prepare<[], Record<string, unknown>>(`SELECT * FROM ${table}`).all();
  const texts = rows.map((row) =>
    JSON.stringify(row, (_, value) =>
      value?.type === 'Buffer' ? Buffer.from(value.data).toString('hex') : value,
    ),
  );
  return texts.sort().map((text) => JSON.parse(text));
}
