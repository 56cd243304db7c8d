/**
 * Applies batches of rows to the detections and the stream, within a transaction that the caller holds.
 *
 * Most rows are new, so a row is first inserted, and merged only when it turns out to be known: one lookup less
 * for nearly every row.
 */
import {
  type JudgedColumns,
  judgedColumns,
  readMatch,
  renderDetection,
  renderedMatchOf,
  renderMatch,
  renderStreamRow,
} from '../detection/match.ts';
import { type Known, merge, type Scoring } from '../detection/merge.ts';
import { firstVersion, raisedVersion } from '../detection/raise.ts';
import type { Database, Statement } from '../store/database.ts';
import { parseSeconds } from '../time.ts';
import { type RowBatch, scoringOf } from './row-batch.ts';

const INSERT_DETECTION = `
  INSERT INTO detection (id, stream, version, first_detected_at, exported_at_given, url_withheld,
    publisher_id, domain, band, score, print, source_id, article_id, body, raises)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (id) DO NOTHING`;

const SELECT_DETECTION =
  'SELECT version, exported_at_given, url_withheld, body, raises FROM detection WHERE id = ?';

const UPDATE_DETECTION = `
  UPDATE detection
  SET version = ?, first_detected_at = ?, exported_at_given = ?, url_withheld = ?,
    publisher_id = ?, domain = ?, band = ?, score = ?, print = ?, source_id = ?, body = ?, raises = ?
  WHERE id = ?`;

const INSERT_STREAM_ROW = `
  INSERT INTO stream_row (position, stream, sequence, publisher_id, domain, band, score, print, source_id, article_id, body)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

const SELECT_HEAD = 'SELECT sequence, position FROM stream_head WHERE stream = ?';

const UPSERT_HEAD = `
  INSERT INTO stream_head (stream, sequence, position) VALUES (?, ?, ?)
  ON CONFLICT (stream) DO UPDATE SET sequence = excluded.sequence, position = excluded.position`;

/** Rows of a subscription that was removed are gone, but not what tells of their transaction. */
const SELECT_LAST_POSITION = `
  SELECT max(
    coalesce((SELECT max(position) FROM stream_row), 0),
    coalesce((SELECT last_position FROM delivery ORDER BY first_position DESC LIMIT 1), 0)
  ) AS position`;

const INSERT_DELIVERY = 'INSERT INTO delivery (first_position, last_position) VALUES (?, ?)';

export interface ApplyCounts {
  created: number;
  updated: number;
  rescored: number;
  unchanged: number;
}

/** What a transaction added to the stream; positions are 0 when it added nothing. */
export interface Added {
  readonly first_position: number;
  readonly last_position: number;
}

interface Head {
  sequence: number;
  position: number;
}

interface Stored {
  readonly version: number;
  readonly exported_at_given: string | null;
  readonly url_withheld: string | null;
  readonly body: string;
  /** How many raises are in the version. */
  readonly raises: number;
}

/**
 * One transaction's worth of applying: {@link apply} any number of batches, then {@link finish} before the commit.
 *
 * Positions only grow, over restarts and over a clock that is set back: each is the one after the last, or the
 * time in microseconds, whichever is greater.
 */
export class Applier {
  readonly counts: ApplyCounts = { created: 0, updated: 0, rescored: 0, unchanged: 0 };
  readonly #statements: ApplyStatements;
  readonly #heads = new Map<number, Head>();
  readonly #licensed: ReadonlySet<number>;
  readonly #raises: readonly number[];
  #position: number;
  #firstPosition = 0;

  /**
   * @param lastPosition the highest position that may have been given out, by any witness
   * @param licensed subscriptions whose account may see the addresses of print articles
   * @param raisesMs when versions were raised, epoch milliseconds
   */
  constructor(
    statements: ApplyStatements,
    lastPosition: number,
    nowMs: number,
    licensed: ReadonlySet<number>,
    raisesMs: readonly number[],
  ) {
    this.#statements = statements;
    this.#position = Math.max(lastPosition, nowMs * 1000 - 1);
    this.#licensed = licensed;
    this.#raises = raisesMs;
  }

  apply(batch: RowBatch): void {
    for (const [row, id] of batch.ids.entries()) {
      const stream = batch.streams[row] ?? 0;
      const rendered = batch.rendered[row] ?? '';
      const firstDetectedAt = batch.first_detected_at[row] ?? 0;
      const judged = judgedOf(batch, row);
      const version = firstVersion(firstDetectedAt, this.#raises);
      const inserted = this.#statements.insertDetection.run(
        id,
        stream,
        version,
        firstDetectedAt,
        batch.exported_at_given[row],
        batch.urls_withheld[row],
        judged.publisher_id,
        judged.domain,
        judged.band,
        judged.score,
        judged.print,
        judged.source_id,
        judged.article_id,
        renderDetection(id, version, rendered),
        this.#raises.length,
      );
      if (inserted.changes === 1) {
        this.counts.created += 1;
        this.#addToStream(stream, judged, renderStreamRow(id, version, rendered));
      } else {
        this.#merge(id, stream, scoringOf(batch, row));
      }
    }
  }

  /** Writes where the streams stand; nothing is applied after it. */
  finish(): Added {
    for (const [stream, head] of this.#heads)
      this.#statements.upsertHead.run(stream, head.sequence, head.position);
    if (this.#firstPosition === 0) return { first_position: 0, last_position: 0 };
    this.#statements.insertDelivery.run(this.#firstPosition, this.#position);
    return { first_position: this.#firstPosition, last_position: this.#position };
  }

  #merge(id: string, stream: number, scoring: Scoring): void {
    const stored = this.#statements.selectDetection.get(id);
    if (stored === undefined) throw new Error(`detection ${id} is neither new nor known`);
    const outcome = merge(toKnown(stored), scoring, this.#licensed.has(scoring.match.subscription_id));
    this.counts[outcome.kind] += 1;
    if (outcome.kind === 'unchanged') return;
    const { known } = outcome;
    const isUpdated = outcome.kind === 'updated';
    const raises = isUpdated ? this.#raises.length : stored.raises;
    const version = isUpdated ? raisedVersion(known.version, raises - stored.raises) : known.version;
    const judged = judgedColumns(known.match);
    const rendered = renderMatch({
      ...known.match,
      article: { ...known.match.article, url: known.url_shown },
    });
    this.#statements.updateDetection.run(
      version,
      parseSeconds(known.match.first_detected_at),
      known.exported_at_given,
      known.url_shown === known.match.article.url ? null : known.match.article.url,
      judged.publisher_id,
      judged.domain,
      judged.band,
      judged.score,
      judged.print,
      judged.source_id,
      renderDetection(id, version, rendered),
      raises,
      id,
    );
    if (isUpdated) this.#addToStream(stream, judged, renderStreamRow(id, version, rendered));
  }

  #addToStream(stream: number, judged: JudgedColumns, body: string): void {
    const head = this.#head(stream);
    this.#position += 1;
    head.sequence += 1;
    head.position = this.#position;
    if (this.#firstPosition === 0) this.#firstPosition = this.#position;
    this.#statements.insertStreamRow.run(
      this.#position,
      stream,
      head.sequence,
      judged.publisher_id,
      judged.domain,
      judged.band,
      judged.score,
      judged.print,
      judged.source_id,
      judged.article_id,
      body,
    );
  }

  #head(stream: number): Head {
    let head = this.#heads.get(stream);
    if (head === undefined) {
      head = this.#statements.selectHead.get(stream) ?? { sequence: 0, position: 0 };
      this.#heads.set(stream, head);
    }
    return head;
  }
}

export interface ApplyStatements {
  readonly insertDetection: Statement;
  readonly selectDetection: Statement<Stored>;
  readonly updateDetection: Statement;
  readonly insertStreamRow: Statement;
  readonly selectHead: Statement<Head>;
  readonly upsertHead: Statement;
  readonly insertDelivery: Statement;
}

/** Parameters are bound by place here, not by name: this is the one spot where that difference is felt. */
export function prepareApply(db: Database): ApplyStatements {
  return {
    insertDetection: db.prepare(INSERT_DETECTION),
    selectDetection: db.prepare<unknown[], Stored>(SELECT_DETECTION),
    updateDetection: db.prepare(UPDATE_DETECTION),
    insertStreamRow: db.prepare(INSERT_STREAM_ROW),
    selectHead: db.prepare<unknown[], Head>(SELECT_HEAD),
    upsertHead: db.prepare(UPSERT_HEAD),
    insertDelivery: db.prepare(INSERT_DELIVERY),
  };
}

/** The highest position that the database knows to have been given out; 0 when none was. */
export function lastPosition(db: Database): number {
  return db.prepare<unknown[], { position: number }>(SELECT_LAST_POSITION).get()?.position ?? 0;
}

/** What is known of a detection; null when it was never seen. */
export function findKnown(db: Database, id: string): Known | null {
  const stored = db.prepare<unknown[], Stored>(SELECT_DETECTION).get(id);
  return stored === undefined ? null : toKnown(stored);
}

function toKnown(stored: Stored): Known {
  const match = readMatch(renderedMatchOf(stored.body));
  const urlShown = match.article.url;
  match.article.url = stored.url_withheld ?? urlShown;
  return { match, exported_at_given: stored.exported_at_given, version: stored.version, url_shown: urlShown };
}

function judgedOf(batch: RowBatch, row: number): JudgedColumns {
  return {
    publisher_id: batch.publisher_ids[row] ?? null,
    domain: batch.domains[row] ?? null,
    band: batch.bands[row] ?? 0,
    score: batch.scores[row] ?? 0,
    print: batch.prints[row] ?? 0,
    source_id: batch.source_ids[row] ?? null,
    article_id: batch.article_ids[row] ?? 0,
  };
}
