/**
 * A client's own copy of the detections: rows and cursor in one transaction, so that a crash never separates them.
 *
 * Other programs can read `detections` and `state`; `walk` is the progress of an interrupted full copy, and `selection`
 * names the streams of the copy.
 */
import { Refused } from '../refused.ts';
import { type Database, writing } from '../store/database.ts';
import { type Schema, UnknownSchema } from '../store/schema.ts';
import { openWriter } from '../store/writer.ts';
import type { Detection } from './answers.ts';

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
  INSERT INTO detections (id, version, body) VALUES (:id, :version, :body)
  ON CONFLICT (id) DO UPDATE SET version = excluded.version, body = excluded.body
  WHERE excluded.version > detections.version`;

const COUNT_DETECTIONS = 'SELECT count(*) AS count FROM detections';
const SELECT_CURSOR = 'SELECT cursor FROM state';
const SET_CURSOR = 'UPDATE state SET cursor = ?';
const SELECT_WALK = 'SELECT progress FROM walk';
const DELETE_WALK = 'DELETE FROM walk';
const INSERT_WALK = 'INSERT INTO walk (progress) VALUES (?)';
const SELECT_SELECTION = 'SELECT streams FROM selection';
const DELETE_SELECTION = 'DELETE FROM selection';
const INSERT_SELECTION = 'INSERT INTO selection (streams) VALUES (?)';

/** The position of a procedure, stored with the rows that it has read: one of the two. */
export type Place = { readonly cursor: string } | { readonly walk: string };

/** A page that was read and stored. */
export interface PageRead {
  /** What is being read, in words. */
  readonly what: string;
  readonly rows: number;
  /** Of {@link Copy.store}. */
  readonly stored: number;
}

export type OnPage = (page: PageRead) => void;

/** The file that detections are copied into. */
export interface Copy {
  /** The cursor of the change stream; null before it has begun. */
  readonly cursor: () => string | null;
  /** The progress of an interrupted full copy; null if there is none. */
  readonly walk: () => string | null;
  /** The streams of the copy, as stored by `select`; null if nothing was. */
  readonly selection: () => string | null;
  readonly select: (streams: string) => void;
  /**
   * Stores the rows of a page together with the position after them, or neither.
   *
   * @returns how many of the rows were new to the copy, or newer than what it had
   */
  readonly store: (rows: readonly Detection[], place: Place) => number;
  /** How many detections it has; null where that is not known. */
  readonly count: () => number | null;
  readonly close: () => void;
}

export function openCopy(path: string): Copy {
  const db = openOwn(path);
  const upsert = db.prepare(UPSERT_DETECTION);
  return {
    cursor: () => db.prepare<unknown[], { cursor: string | null }>(SELECT_CURSOR).get()?.cursor ?? null,
    walk: () => db.prepare<unknown[], { progress: string }>(SELECT_WALK).get()?.progress ?? null,
    selection: () => db.prepare<unknown[], { streams: string }>(SELECT_SELECTION).get()?.streams ?? null,
    select: (streams) =>
      writing(db, () => {
        db.prepare(DELETE_SELECTION).run();
        db.prepare(INSERT_SELECTION).run(streams);
      }),
    store: (rows, place) =>
      writing(db, () => {
        let stored = 0;
        for (const row of rows)
          stored += upsert.run({ id: row.id, version: row.version, body: bodyOf(row) }).changes;
        notePlace(db, place);
        return stored;
      }),
    count: () => db.prepare<unknown[], { count: number }>(COUNT_DETECTIONS).get()?.count ?? 0,
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

/** A detection as the period and id endpoints return it: `event` belongs to the stream, not to the detection. */
export function bodyOf(row: Detection): string {
  const { event: _, ...detection }: Detection & { event?: unknown } = row;
  return JSON.stringify(detection);
}

function notePlace(db: Database, place: Place): void {
  db.prepare(DELETE_WALK).run();
  if ('walk' in place) db.prepare(INSERT_WALK).run(place.walk);
  else db.prepare(SET_CURSOR).run(place.cursor);
}
