/**
 * A client's own copy of the detections: rows and position in one transaction, so that a crash never separates them.
 *
 * Other programs can read `detections` and `state`.
 */
import { Value } from '@sinclair/typebox/value';
import { Refused } from '../refused.ts';
import { type Database, openInspector, writing } from '../store/database.ts';
import { type Schema, UnknownSchema } from '../store/schema.ts';
import { openWriter } from '../store/writer.ts';
import { Detection, parseJson } from './api.ts';

const SQL = `
CREATE TABLE detections (id TEXT PRIMARY KEY, version INTEGER NOT NULL, body TEXT NOT NULL) STRICT;

-- One row: where the change stream goes on; null until it has begun.
CREATE TABLE state (cursor TEXT) STRICT;
INSERT INTO state (cursor) VALUES (NULL);

-- One row while a full copy is under way, as JSON.
CREATE TABLE walk (progress TEXT NOT NULL) STRICT;

-- One row once the copy is begun, as JSON: the streams it is of.
CREATE TABLE selection (streams TEXT NOT NULL) STRICT;
`;

/** SQLite's number for a copy. */
export const APPLICATION_ID = 0x77770014;

const SCHEMA: Schema = { application_id: APPLICATION_ID, sql: SQL };

/** Delivery is at least once and in no order across procedures: the higher version stays. */
const UPSERT_DETECTION = `
  INSERT INTO detections (id, version, body) VALUES (?, ?, ?)
  ON CONFLICT (id) DO UPDATE SET version = excluded.version, body = excluded.body
  WHERE excluded.version > detections.version`;
const COUNT_DETECTIONS = 'SELECT count(*) FROM detections';
const SELECT_ROWS = 'SELECT id, body FROM detections WHERE id > ? ORDER BY id LIMIT ?';
const SELECT_NOTES = `SELECT (SELECT cursor FROM state) AS cursor, (SELECT progress FROM walk) AS walk,
  (SELECT streams FROM selection) AS selection`;
const SET_CURSOR = 'UPDATE state SET cursor = ?';
const DELETE_WALK = 'DELETE FROM walk';
const INSERT_WALK = 'INSERT INTO walk (progress) VALUES (?)';
const DELETE_SELECTION = 'DELETE FROM selection';
const INSERT_SELECTION = 'INSERT INTO selection (streams) VALUES (?)';

/** Rows read in one go: no read transaction stays open meanwhile, which would let the log of a following pull grow. */
const BATCH_ROWS = 1000;

/** What a copy keeps beside its rows. */
export interface Notes {
  /** The cursor of the change stream; null before it has begun. */
  readonly cursor: string | null;
  /** The progress of an interrupted full copy; null if there is none. */
  readonly walk: string | null;
  /** The streams of the copy; null if they were never noted. */
  readonly selection: string | null;
}

/** The file that detections are copied into. */
export interface Copy {
  notes(): Notes;
  /**
   * Stores the rows of a page together with the notes that change with it, or neither.
   *
   * @returns how many of the rows were new to the copy, or newer than what it had
   */
  store(rows: readonly Detection[], changes: Partial<Notes>): number;
  /** How many detections it has; null where that is not known. */
  count(): number | null;
  /** Every row as it is now, so all that lies before the cursor; of lines, one detection can come several times. */
  rows(): AsyncIterable<Detection>;
  close(): void;
}

/** A page that was read and stored: what it is of, in words; its rows; of {@link Copy.store}. */
export type OnPage = (page: { what: string; rows: number; stored: number }) => void;

/** @param isRead whether it is only read, maybe while a pull updates it; @throws Refused `failed` for another file */
export function openCopy(path: string, isRead = false): Copy {
  const db = isRead ? openInspector(path) : openOwn(path);
  try {
    notesOf(db);
  } catch (error) {
    db.close();
    const detail = `${path} was not made by pull. To compare the copy of another client, give it as NDJSON, one detection per line: --format ndjson`;
    throw new Refused('failed', detail, { cause: error });
  }
  return {
    notes: () => notesOf(db),
    store: (rows, changes) => writing(db, () => store(db, rows, changes)),
    count: () => db.prepare<[], number>(COUNT_DETECTIONS).pluck().get() ?? 0,
    rows: () => rowsOf(db),
    close: () => db.close(),
  };
}

function openOwn(path: string): Database {
  try {
    return openWriter(path, SCHEMA);
  } catch (error) {
    if (!(error instanceof UnknownSchema)) throw error;
    throw new Refused('failed', `${error.message} To start a new copy, name another file with --into.`);
  }
}

function notesOf(db: Database): Notes {
  return db.prepare<[], Notes>(SELECT_NOTES).get() ?? { cursor: null, walk: null, selection: null };
}

function store(
  db: Database,
  rows: readonly Detection[],
  { cursor, walk, selection }: Partial<Notes>,
): number {
  const upsert = db.prepare(UPSERT_DETECTION);
  const changes = rows.map((row) => upsert.run(row.id, row.version, bodyOf(row)).changes);
  if (cursor !== undefined) db.prepare(SET_CURSOR).run(cursor);
  if (walk !== undefined) db.prepare(DELETE_WALK).run();
  if (typeof walk === 'string') db.prepare(INSERT_WALK).run(walk);
  if (selection !== undefined) {
    db.prepare(DELETE_SELECTION).run();
    db.prepare(INSERT_SELECTION).run(selection);
  }
  return changes.reduce((sum, one) => sum + one, 0);
}

async function* rowsOf(db: Database): AsyncIterable<Detection> {
  const select = db.prepare<[string, number], { id: string; body: string }>(SELECT_ROWS);
  for (let after = ''; ; ) {
    const rows = select.all(after, BATCH_ROWS);
    for (const { body } of rows) yield readDetection(body);
    if (rows.length < BATCH_ROWS) return;
    after = rows.at(-1)?.id ?? '';
  }
}

/** A detection as the period and id endpoints return it: `event` belongs to the stream, not to the detection. */
export function bodyOf({ event: _, ...detection }: Detection): string {
  return JSON.stringify(detection);
}

/** @param place its place in the copy, for the message; @throws Refused `failed` for what is no detection */
export function readDetection(text: string, place = 'the copy'): Detection {
  const row = parseJson(text);
  if (Value.Check(Detection, row)) return row;
  throw new Refused(
    'failed',
    `${place}: expected a detection as the service returns it, with id and version`,
  );
}
