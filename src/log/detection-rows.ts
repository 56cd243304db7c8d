/**
 * Writes detections and their versions to `detections.db`, both for ingest and for applying the log. A stream gets the next
 * ordinal with its first version, and its sequence numbers have no gaps.
 */
import { streamParts } from '../detection/content-type.ts';
import { streamOfId } from '../detection/id.ts';
import { FILTER_COLUMNS, renderDetection, renderStreamRow } from '../detection/match.ts';
import { getOrMake } from '../get-or-make.ts';
import { type Database, writing } from '../store/database.ts';
import { DatabaseDamage } from '../store/database-errors.ts';
import { requireChecksum, rowChecksum, type StoredText } from '../store/row-checksum.ts';
import { placeOf, placesOf } from '../store/stream-place.ts';
import { type DetectionState, removedLine, type StoredState } from './row-lines.ts';

export type StoredDetection = Pick<DetectionState, 'exported_at_given' | 'url_withheld'> &
  Readonly<{ version: number; body: string; position: number }>;

type Head = { readonly ordinal: number; sequence: number; position: number };

/** A version that is not in the stream yet. */
type Pending = Readonly<{ place: number; position: number; version: number; state: StoredState }>;

/** Where a removed stream ended; of another one only its ordinal: counting its versions gives the rest. */
export const STREAM_LINE = `
  json_object('put', 'stream', 'row', json_object('ordinal', ordinal, 'subscription_id', subscription_id,
    'content_type', content_type, 'sequence', sequence * removed, 'position', position * removed, 'removed', removed))`;

function prepareAll(db: Database) {
  return {
    insertDetection: db.prepare(`
      INSERT INTO detection (id, place, first_detected_at, exported_at_given, url_withheld)
      VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (id) DO NOTHING`),
    updateDetection: db.prepare(`
      UPDATE detection
      SET place = ?, first_detected_at = ?, exported_at_given = ?, url_withheld = ?
      WHERE id = ?`),
    rescoreDetection: db.prepare<unknown[], { place: number }>(`
      UPDATE detection SET first_detected_at = ?, exported_at_given = ?, url_withheld = ? WHERE id = ? RETURNING place`),
    upsertRescored: db.prepare(`
      INSERT INTO rescored (place, body, checksum) VALUES (?, ?, ?)
      ON CONFLICT (place) DO UPDATE SET body = excluded.body, checksum = excluded.checksum`),
    deleteRescored: db.prepare(`
      DELETE FROM rescored WHERE place = (SELECT place FROM detection WHERE id = ?)`),
    // The text comes in two parts; the second may be bytes.
    insertStreamRow: db.prepare(`
      INSERT INTO stream_row (place, position, version, ${FILTER_COLUMNS}, checksum, body)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? || CAST(? AS TEXT))`),
    selectDetection: db.prepare<unknown[], StoredDetection & StoredText>(`
      SELECT version, coalesce(rescored.body, row.body) AS body, exported_at_given, url_withheld,
        row.place AS place, position, coalesce(rescored.checksum, row.checksum) AS checksum
      FROM detection JOIN stream_row AS row ON row.place = detection.place
        LEFT JOIN rescored ON rescored.place = detection.place
      WHERE id = ?`),
    selectStream: db.prepare<unknown[], Head>(`
      SELECT ordinal, sequence, position FROM stream WHERE subscription_id = ? AND content_type = ? AND removed = 0`),
    insertStream: db.prepare<unknown[], Head>(`
      INSERT INTO stream (ordinal, subscription_id, content_type, sequence, position)
      VALUES ((SELECT coalesce(max(ordinal), 0) + 1 FROM stream), ?, ?, 0, 0)
      RETURNING ordinal, sequence, position`),
    updateStream: db.prepare('UPDATE stream SET sequence = ?, position = ? WHERE ordinal = ?'),
    endStreams: db.prepare<unknown[], { line: string }>(`
      UPDATE stream SET removed = 1 WHERE subscription_id = ? AND removed = 0
      RETURNING ${STREAM_LINE} AS line`),
  };
}

function columnsOf({ first_detected_at, exported_at_given, url_withheld }: StoredState) {
  return [first_detected_at, exported_at_given, url_withheld];
}

/** Versions are inserted in batches, after their detections: with one table at a time, both take a fifth less. */
const PENDING_MAX = 500;

export type DetectionRows = ReturnType<typeof detectionRows>;

/**
 * Parameters are bound by position, not by name: only here does the difference matter.
 * @param hasTexts false: only the checksums of texts are stored, in a database made for a comparison
 */
export function detectionRows(db: Database, hasTexts = true) {
  const sql = prepareAll(db);
  /** The streams that the transaction adds to, by the first part of their detections' ids. */
  const heads = new Map<string, Head>();
  let pending: Pending[] = [];

  /** Inserts the pending versions: call it before the bytes of their texts are overwritten. */
  function flush(): void {
    for (const { place, position, version, state } of pending) {
      if (state.rendered.length === 0)
        throw new Error(`the remembered state of ${state.id} was released before it was stored`);
      const head = renderStreamRow(state.id, version, '');
      const checksum = rowChecksum(place, head, state.rendered);
      const text = hasTexts ? [head, state.rendered] : ['', ''];
      sql.insertStreamRow.run(place, position, version, ...state.filters, checksum, ...text);
    }
    pending = [];
  }

  /** Writes the ends of the streams: the last step of a transaction. */
  function finish(): void {
    flush();
    for (const { ordinal, sequence, position } of heads.values())
      sql.updateStream.run(sequence, position, ordinal);
    heads.clear();
  }

  function headOf(id: string): Head {
    const beginning = id.slice(0, id.indexOf('.', 2));
    return getOrMake(heads, beginning, () => {
      const stream = streamOfId(id);
      const { subscription_id, content_type } = streamParts(stream);
      const head =
        sql.selectStream.get(subscription_id, content_type) ??
        sql.insertStream.get(subscription_id, content_type);
      if (head === undefined) throw new Error(`the stream ${stream} was not created`);
      return head;
    });
  }

  function add(head: Head, row: Pending): void {
    head.sequence += 1;
    head.position = row.position;
    pending.push(row);
    if (pending.length === PENDING_MAX) flush();
  }

  return {
    ...{ flush, finish },
    /**
     * Adds a new detection, and its first version to the stream.
     * @param position greater than all before it
     * @returns false if the detection exists: then nothing was changed
     */
    create(state: StoredState, version: number, position: number): boolean {
      const head = headOf(state.id);
      const place = placeOf(head.ordinal, head.sequence + 1);
      if (sql.insertDetection.run(state.id, place, ...columnsOf(state)).changes === 0) return false;
      add(head, { place, state, version, position });
      return true;
    },
    /** @returns undefined if there is no such detection; @throws DatabaseDamage if its text is not the one that was stored */
    find(id: string): StoredDetection | undefined {
      flush();
      const found = sql.selectDetection.get(id);
      if (found === undefined) return undefined;
      requireChecksum(found);
      if (!found.body.startsWith(`{"id":"${id}","version":${found.version},`))
        throw new DatabaseDamage(`the text of ${id} is not that of its version ${found.version}`);
      return found;
    },
    change(state: StoredState, version: number, position: number): void {
      const head = headOf(state.id);
      const place = placeOf(head.ordinal, head.sequence + 1);
      sql.deleteRescored.run(state.id);
      sql.updateDetection.run(place, ...columnsOf(state), state.id);
      add(head, { place, state, version, position });
    },
    /** Replaces the text of a detection within its version; @returns false if there is no such detection */
    rescore(state: DetectionState, version: number): boolean {
      const known = sql.rescoreDetection.get(...columnsOf(state), state.id);
      if (known === undefined) return false;
      const text = renderDetection(state.id, version, state.rendered);
      sql.upsertRescored.run(known.place, hasTexts ? text : '', rowChecksum(known.place, text));
      return true;
    },
    /**
     * Marks the streams of a subscription as removed; their rows are deleted later. New detections start new streams.
     * @returns what the log says of it: a line for each (effects.ts), and that of the removal
     */
    end(subscription: number): string {
      finish();
      const lines = sql.endStreams.all(subscription).map(({ line }) => `${line}\n`);
      return lines.join('') + removedLine(subscription);
    },
    forget(): void {
      heads.clear();
      pending = [];
    },
  };
}

const SELECT_ORDINALS = `
  SELECT ordinal FROM stream
  WHERE removed = 1 AND (:subscription IS NULL OR subscription_id = :subscription) ORDER BY ordinal`;

/** The ordinals of removed streams, of one subscription or of all: their rows are being deleted, or are gone. */
export const endedStreams = (db: Database, subscription: number | null = null): number[] =>
  db.prepare<unknown[], number>(SELECT_ORDINALS).pluck().all({ subscription });

/** Rows that one transaction deletes: at most half a second of work. */
const DELETED_MAX = 10_000;

export const DELETE_DETECTIONS = `
  DELETE FROM detection WHERE id IN (SELECT id FROM detection WHERE place >> 34 = :ordinal LIMIT :limit)`;

export const DELETE_RESCORED = `
  DELETE FROM rescored
  WHERE place IN (SELECT place FROM rescored WHERE place >= :first AND place < :end ORDER BY place LIMIT :limit)`;

export const DELETE_STREAM_ROWS = `
  DELETE FROM stream_row
  WHERE place IN (SELECT place FROM stream_row WHERE place >= :first AND place < :end ORDER BY place LIMIT :limit)`;

/** Deletes the rows of a removed stream, in transactions or within the open one. It yields how many, after each step. */
export function* deleteStream(db: Database, ordinal: number): Generator<number, undefined> {
  const values = { ordinal, ...placesOf(ordinal), limit: DELETED_MAX };
  for (const sql of [DELETE_DETECTIONS, DELETE_RESCORED, DELETE_STREAM_ROWS])
    for (let rows = DELETED_MAX; rows === DELETED_MAX; ) {
      rows = writing(db, () => db.prepare(sql).run(values).changes);
      yield rows;
    }
}
