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
import { type DetectionState, type RowLine, readRowLine } from './row-lines.ts';
import { epochTimes } from './version-epoch.ts';

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

/**
 * The log has only the rows of removed streams of this table: with the removal, and in a snapshot, which has no other
 * row of them. Their ordinals are never used again.
 */
export const ENDED_TABLE = 'stream';

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
  #epochs: number | null = null;
  /** The mark of the last complete entry in the open transaction. */
  #mark: Mark | null = null;
  #isWithinEntry = false;
  #lines = 0;

  /** @param hasTexts see {@link DetectionRows} */
  constructor(db: Database, hasTexts = true) {
    this.#db = db;
    this.#rows = new DetectionRows(db, hasTexts);
    this.#applyEffect = effectApplier(db, [...LOGGED_TABLES, ENDED_TABLE]);
  }

  /** Applies a part of an entry, in one transaction with the entry's other parts, and with other entries. */
  apply(part: EntryPart): void {
    if (!this.#db.inTransaction) this.#db.exec('BEGIN IMMEDIATE');
    this.#isWithinEntry = true;
    for (const line of part.lines) this.#applyLine(readRowLine(line));
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

  rollback(): void {
    this.#waiting = [];
    this.#epochs = null;
    this.#mark = null;
    this.#isWithinEntry = false;
    this.#lines = 0;
    this.#rows.forget();
    if (this.#db.inTransaction) this.#db.exec('ROLLBACK');
  }

  #finish(mark: Mark): void {
    if (this.#waiting.length > 0) throw new LogDamage(`entry ${mark.entry} contains rows without an outcome`);
    this.#rows.finish();
    this.#epochs = null;
    this.#mark = mark;
    this.#isWithinEntry = false;
    if (this.#lines >= TRANSACTION_LINES) this.commit();
  }

  #applyLine(line: RowLine): void {
    this.#lines += 1;
    switch (line.kind) {
      case 'row':
        this.#waiting.push(line.state);
        break;
      case 'created':
        for (const [index, state] of this.#taken(line.rows).entries()) {
          if (!this.#rows.create(state, line.version, this.#epochsNow(), line.position + index))
            throw new LogDamage(`the log creates detection ${state.id} twice`);
        }
        break;
      case 'passed':
        this.#taken(line.rows);
        break;
      case 'changed': {
        const { state, version, position } = line;
        if (!this.#rows.create(state, version, this.#epochsNow(), position))
          this.#rows.change(state, version, this.#epochsNow(), position);
        break;
      }
      case 'rescored':
        if (!this.#rows.rescore(line.state, line.version))
          throw new LogDamage(`the log rescores the unknown detection ${line.state.id}`);
        break;
      case 'removed':
        this.#rows.end(line.subscription);
        for (const ordinal of endedStreams(this.#db, line.subscription)) this.#deleteRows(ordinal);
        break;
      case 'other':
        if (!this.#applyEffect(line.line)) throw new LogDamage('a line of the log has unknown content');
        // In a snapshot, an epoch comes before the rows that it applies to.
        if (line.line.put === 'version_epoch') this.#epochs = null;
    }
  }

  #deleteRows(ordinal: number): void {
    for (const sql of DELETE_ROWS) this.#db.prepare(sql).run({ ordinal, ...placesOf(ordinal) });
  }

  #taken(rows: number): DetectionState[] {
    if (rows > this.#waiting.length) throw new LogDamage('a line refers to rows that do not exist');
    return this.#waiting.splice(0, rows);
  }

  /** How many version epochs there are at this point. */
  #epochsNow(): number {
    this.#epochs ??= epochTimes(this.#db).length;
    return this.#epochs;
  }
}
