/**
 * Detections and their versions in `detections.db`: the statements by which both ingest and the applying of the log
 * write them, so that one makes what the other made.
 *
 * The number of a version within its stream has no gaps: it is one more than that of the version before it.
 */
import { CONTENT_TYPES, streamNumber } from '../detection/content-type.ts';
import { streamOfId } from '../detection/id.ts';
import { renderDetection, renderStreamRow } from '../detection/match.ts';
import type { Database, Statement } from '../store/database.ts';
import type { DetectionState } from './row-lines.ts';

const INSERT_DETECTION = `
  INSERT INTO detection (id, stream, version, first_detected_at, exported_at_given, url_withheld,
    publisher_id, domain, band, score, print, source_id, article_id, body, epochs)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (id) DO NOTHING`;

const UPDATE_DETECTION = `
  UPDATE detection
  SET version = ?, first_detected_at = ?, exported_at_given = ?, url_withheld = ?,
    publisher_id = ?, domain = ?, band = ?, score = ?, print = ?, source_id = ?, body = ?, epochs = ?
  WHERE id = ?`;

const INSERT_STREAM_ROW = `
  INSERT INTO stream_row (position, stream, sequence, publisher_id, domain, band, score, print, source_id, article_id, body)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

const SELECT_HEAD = 'SELECT sequence, position FROM stream_head WHERE stream = ?';
const UPSERT_HEAD = `
  INSERT INTO stream_head (stream, sequence, position) VALUES (?, ?, ?)
  ON CONFLICT (stream) DO UPDATE SET sequence = excluded.sequence, position = excluded.position`;
const DELETE_HEAD = 'DELETE FROM stream_head WHERE stream = ?';

interface Head {
  sequence: number;
  position: number;
}

export class DetectionRows {
  readonly #textOf: (text: string) => string;
  readonly #insertDetection: Statement;
  readonly #updateDetection: Statement;
  readonly #insertStreamRow: Statement;
  readonly #selectHead: Statement<Head>;
  readonly #upsertHead: Statement;
  readonly #deleteHead: Statement;
  /** Of the streams that the transaction adds to. */
  readonly #heads = new Map<number, Head>();

  /**
   * Parameters are bound by place here, not by name: this is the one spot where that difference is felt.
   *
   * @param textOf what is stored of a text: all of it, but for a database that is only compared with
   */
  constructor(db: Database, textOf: (text: string) => string = (text) => text) {
    this.#textOf = textOf;
    this.#insertDetection = db.prepare(INSERT_DETECTION);
    this.#updateDetection = db.prepare(UPDATE_DETECTION);
    this.#insertStreamRow = db.prepare(INSERT_STREAM_ROW);
    this.#selectHead = db.prepare<unknown[], Head>(SELECT_HEAD);
    this.#upsertHead = db.prepare(UPSERT_HEAD);
    this.#deleteHead = db.prepare(DELETE_HEAD);
  }

  /** @param epochs how many version epochs are in the version; @returns false where the detection is known */
  insert(state: DetectionState, version: number, epochs: number): boolean {
    const { judged } = state;
    const { changes } = this.#insertDetection.run(
      state.id,
      streamOfId(state.id),
      version,
      state.first_detected_at,
      state.exported_at_given,
      state.url_withheld,
      judged.publisher_id,
      judged.domain,
      judged.band,
      judged.score,
      judged.print,
      judged.source_id,
      judged.article_id,
      this.#textOf(renderDetection(state.id, version, state.rendered)),
      epochs,
    );
    return changes === 1;
  }

  update(state: DetectionState, version: number, epochs: number): void {
    const { judged } = state;
    this.#updateDetection.run(
      version,
      state.first_detected_at,
      state.exported_at_given,
      state.url_withheld,
      judged.publisher_id,
      judged.domain,
      judged.band,
      judged.score,
      judged.print,
      judged.source_id,
      this.#textOf(renderDetection(state.id, version, state.rendered)),
      epochs,
      state.id,
    );
  }

  /** Adds a version to its stream. @param position greater than all before it */
  add(state: DetectionState, version: number, position: number): void {
    const { judged } = state;
    const stream = streamOfId(state.id);
    const head = this.#head(stream);
    head.sequence += 1;
    head.position = position;
    this.#insertStreamRow.run(
      position,
      stream,
      head.sequence,
      judged.publisher_id,
      judged.domain,
      judged.band,
      judged.score,
      judged.print,
      judged.source_id,
      judged.article_id,
      this.#textOf(renderStreamRow(state.id, version, state.rendered)),
    );
  }

  /** Ends the streams of a subscription: what follows begins anew. Their rows are deleted apart. */
  end(subscription: number): void {
    for (const stream of streamsOf(subscription)) {
      this.#heads.delete(stream);
      this.#deleteHead.run(stream);
    }
  }

  /** Writes where the streams end: the last step of a transaction. */
  finish(): void {
    for (const [stream, head] of this.#heads) this.#upsertHead.run(stream, head.sequence, head.position);
    this.#heads.clear();
  }

  /** Of a transaction that is rolled back. */
  forget(): void {
    this.#heads.clear();
  }

  #head(stream: number): Head {
    let head = this.#heads.get(stream);
    if (head === undefined) {
      head = this.#selectHead.get(stream) ?? { sequence: 0, position: 0 };
      this.#heads.set(stream, head);
    }
    return head;
  }
}

export function streamsOf(subscription: number): number[] {
  return CONTENT_TYPES.map((contentType) => streamNumber(subscription, contentType));
}
