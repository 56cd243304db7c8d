/**
 * Reads a copy, while a pull may be updating it: in either format, or the lines of any other client. Nothing is written.
 */
import { createReadStream, existsSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { Refused } from '../refused.ts';
import { type Database, openInspector } from '../store/database.ts';
import { type Detection, readDetection } from './answers.ts';
import { placeOf } from './lines.ts';

export interface CopyRows {
  /** The client's cursor in the change stream; null if the file does not contain it. */
  readonly cursor: string | null;
  /** Which streams it is of, as `select` of {@link Copy} noted; null where the file does not say. */
  readonly selection: string | null;
  /** Every row as it is now, so all that lies before the cursor; of lines, one detection can come several times. */
  rows(): AsyncIterable<Detection>;
  close(): void;
}

/** Rows read in one go: no read transaction stays open meanwhile, which would let the log of a following pull grow. */
const BATCH_ROWS = 1000;

const SELECT_ROWS = 'SELECT id, body FROM detections WHERE id > ? ORDER BY id LIMIT ?';

/** @throws Refused `failed` if it is not a copy, or one that has not reached the change stream yet */
export function openCopyRows(path: string, format: 'sqlite' | 'ndjson'): CopyRows {
  if (!existsSync(path))
    throw new Refused('failed', `there is no copy ${path}. Make it first with: wirewatch pull --full`);
  const copy = format === 'sqlite' ? databaseRows(path) : lineRows(path);
  if (copy.cursor !== null || (format === 'ndjson' && !existsSync(`${path}.place`))) return copy;
  copy.close();
  throw new Refused(
    'failed',
    `the copy ${path} is not complete yet. Run the same command without --compare first.`,
  );
}

function databaseRows(path: string): CopyRows {
  const db = openInspector(path);
  try {
    // The cursor first: rows that are newer than it do no harm.
    const cursor =
      db.prepare<[], { cursor: string | null }>('SELECT cursor FROM state').get()?.cursor ?? null;
    const selection =
      db.prepare<[], { streams: string }>('SELECT streams FROM selection').get()?.streams ?? null;
    return { cursor, selection, rows: () => databaseRowsOf(db), close: () => db.close() };
  } catch (error) {
    db.close();
    throw new Refused(
      'failed',
      `${path} was not made by pull. To compare the copy of another client, give it as NDJSON, one detection per line: --format ndjson`,
      { cause: error },
    );
  }
}

async function* databaseRowsOf(db: Database): AsyncIterable<Detection> {
  const select = db.prepare<[string, number], { id: string; body: string }>(SELECT_ROWS);
  for (let after = ''; ; ) {
    const rows = select.all(after, BATCH_ROWS);
    for (const { body } of rows) yield readDetection(body);
    if (rows.length < BATCH_ROWS) return;
    after = rows.at(-1)?.id ?? '';
  }
}

function lineRows(path: string): CopyRows {
  const place = existsSync(`${path}.place`) ? placeOf(readFileSync(`${path}.place`, 'utf8'), path) : null;
  return {
    cursor: place?.cursor ?? null,
    selection: place?.selection ?? null,
    rows: () => linesOf(path, place?.bytes),
    close() {},
  };
}

/** @param bytes that belong to the copy; undefined: the complete file */
async function* linesOf(path: string, bytes: number | undefined): AsyncIterable<Detection> {
  if (bytes === 0) return;
  const input = createReadStream(path, bytes === undefined ? {} : { end: bytes - 1 });
  let number = 0;
  for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
    number += 1;
    if (line.trim() !== '') yield readDetection(line, `${path}, line ${number}`);
  }
}
