/**
 * Applies entries of the log to `detections.db`. The rows become equal to those of ingest in every column, because
 * nothing is read, checked or decided a second time.
 */
import type { Database } from '../store/database.ts';
import { LogDamage } from '../store/log-errors.ts';
import { setLogMark } from '../store/log-mark.ts';
import { placesOf } from '../store/stream-place.ts';
import { DetectionRows, endedStreams } from './detection-rows.ts';
import { effectApplier } from './effects.ts';
import type { Mark } from './format.ts';
import type { EntryPart } from './frame.ts';
import { type DetectionState, readLine } from './row-lines.ts';

/** The tables that are logged by effects.ts; detections have lines of their own (row-lines.ts). */
export const LOGGED_TABLES = [
  'delivery',
  'export_window',
  'export_expectation',
  'window_look',
  'ingest_file',
  'version_epoch',
  'copy_mode',
] as const;

/** The log has rows of this table with the removal of a stream, and in a snapshot. Ordinals are never used again. */
export const STREAM_TABLE = 'stream';

/** Small entries share a transaction, since they change the same pages. */
const TRANSACTION_LINES = 5_000;
const DELETE_ROWS = [
  'DELETE FROM stream_row WHERE place >= :first AND place < :end',
  'DELETE FROM rescored WHERE place >= :first AND place < :end',
  'DELETE FROM detection WHERE place >> 34 = :ordinal',
];

export class LogApplier {
  readonly #db: Database;
  readonly #rows: DetectionRows;
  readonly #applyEffect: ReturnType<typeof effectApplier>;
  /** Rows of exports whose outcome is still to come. */
  #waiting: DetectionState[] = [];
  /** The mark of the last complete entry in the open transaction. */
  #mark: Mark | null = null;
  #isWithinEntry = false;
  #lines = 0;

  /** @param hasTexts see {@link DetectionRows} */
  constructor(db: Database, hasTexts = true) {
    this.#db = db;
    this.#rows = new DetectionRows(db, hasTexts);
    this.#applyEffect = effectApplier(db, [...LOGGED_TABLES, STREAM_TABLE]);
  }

  /** Applies a part of an entry, in one transaction with the entry's other parts, and with other entries. */
  apply(part: EntryPart): void {
    if (!this.#db.inTransaction) this.#db.exec('BEGIN IMMEDIATE');
    this.#isWithinEntry = true;
    for (const line of part.lines()) this.#applyLine(readLine(line));
    if (part.commit !== null) this.#finish(part.commit);
  }

  /** Commits the entries so far. @throws LogDamage within an entry, of which parts are applied: then roll back */
  commit(): void {
    if (this.#isWithinEntry) throw new LogDamage('the log ends within an entry');
    if (this.#mark === null) return;
    setLogMark(this.#db, this.#mark);
    this.#db.exec('COMMIT');
    this.#mark = null;
    this.#lines = 0;
  }

  /** Nothing may be applied after it. */
  rollback(): void {
    if (this.#db.inTransaction) this.#db.exec('ROLLBACK');
  }

  #finish(mark: Mark): void {
    if (this.#waiting.length > 0) throw new LogDamage(`entry ${mark.entry} contains rows without an outcome`);
    this.#rows.finish();
    this.#mark = mark;
    this.#isWithinEntry = false;
    if (this.#lines >= TRANSACTION_LINES) this.commit();
  }

  #applyLine({ line, state }: ReturnType<typeof readLine>): void {
    this.#lines += 1;
    const [position, version] = [Number(line.position), Number(line.version)];
    if (state !== null) {
      if (line.row !== undefined) this.#waiting.push(state);
      else if (line.changed !== undefined) {
        if (!this.#rows.create(state, version, position)) this.#rows.change(state, version, position);
      } else if (!this.#rows.rescore(state, version))
        throw new LogDamage(`the log rescores the unknown detection ${state.id}`);
    } else if (line.created !== undefined) {
      for (const [index, created] of this.#taken(Number(line.created)).entries())
        if (!this.#rows.create(created, version, position + index))
          throw new LogDamage(`the log creates detection ${created.id} twice`);
    } else if (line.passed !== undefined) this.#taken(Number(line.passed));
    else if (line.removed !== undefined) {
      const subscription = Number(line.removed);
      this.#rows.end(subscription);
      for (const ordinal of endedStreams(this.#db, subscription)) this.#deleteRows(ordinal);
    } else if (!this.#applyEffect(line)) throw new LogDamage('a line of the log has unknown content');
  }

  #deleteRows(ordinal: number): void {
    for (const sql of DELETE_ROWS) this.#db.prepare(sql).run({ ordinal, ...placesOf(ordinal) });
  }

  #taken(rows: number): DetectionState[] {
    if (rows > this.#waiting.length) throw new LogDamage('a line refers to rows that do not exist');
    return this.#waiting.splice(0, rows);
  }
}
