/**
 * The transactions that change detections, windows and files: durable in the log before they are committed to the database.
 *
 * Once its commit line is in the log, a transaction is decided; where transactions wait for the copy, once its entry is
 * there. Where the database refuses the commit all the same (a full disk), nothing else is written until the entry was
 * applied from the log.
 *
 * A change is delivered when its commit is visible. That time is taken after the commit, sent to the readers of this process
 * at once, and written by the next transaction; until then it counts as later than any time that is asked for.
 */
import { applyPending } from '../../log/apply-entries.ts';
import { LOGGED_TABLES } from '../../log/apply-log.ts';
import { DetectionRows } from '../../log/detection-rows.ts';
import { type Effects, noteEffects } from '../../log/effects.ts';
import type { Operation } from '../../log/format.ts';
import type { LogWriter } from '../../log/log-writer.ts';
import type { Decisions } from '../../log/recover.ts';
import { epochTimes, positionBeyond } from '../../log/version-epoch.ts';
import type { Database } from '../../store/database.ts';
import { setLogMark } from '../../store/log-mark.ts';
import type { Now } from '../../time.ts';
import { newestWindowEnd } from '../../windows/ledger.ts';
import { Applier, lastPosition } from './apply-rows.ts';

const STAMP_DELIVERY = 'UPDATE delivery SET delivered_at = :delivered_at WHERE delivered_at IS NULL';
const SELECT_DELIVERED = `
  SELECT coalesce((SELECT max(delivered_at) FROM delivery), 0) AS last,
    EXISTS (SELECT 1 FROM delivery WHERE delivered_at IS NULL) AS has_unstamped`;
const INSERT_EPOCH = `
  INSERT INTO version_epoch (number, at, reason, position, announced_after, orphans)
  VALUES (:number, :at, :reason, :position, :announced_after, :orphans)`;

/** What begins where the end of the log was lost: see log/version-epoch.ts. */
export interface Epoch {
  readonly reason: string;
  /** What becomes of archived files without a record. */
  readonly orphans: 'to read' | 'left';
  /** A position that is known to have been given out; 0: none but those in the database. */
  readonly position: number;
  /** The greatest number of an epoch that is known to have been used: the new one, and versions, are beyond it. */
  readonly number: number;
  /**
   * What changed after this position is announced again: the last one that clients certainly have seen as it is here.
   * Infinite: they have seen all.
   */
  readonly parted: number;
  /** Detections that are announced again besides: clients have seen later versions of them, which are gone. */
  readonly undone?: ReadonlySet<string>;
}

export interface StreamWriterOptions {
  readonly db: Database;
  readonly log: LogWriter;
  readonly folder: string;
  readonly now: Now;
  /** Left out: an entry is decided once it is in the log. */
  readonly decisions?: Pick<Decisions, 'decide'>;
  /** Called at once for each transaction that became visible. */
  readonly onDelivered: (firstPosition: number, deliveredAtMs: number) => void;
}

export class StreamWriter {
  readonly #options: StreamWriterOptions;
  readonly #rows: DetectionRows;
  readonly #effects: Effects;
  #lastPosition: number;
  #deliveredAtMs: number;
  #isUnstamped: boolean;
  /** Whether the log has an entry that the database refused. */
  #isBehind = false;

  constructor(options: StreamWriterOptions) {
    const { db, now } = options;
    this.#options = options;
    this.#rows = new DetectionRows(db);
    this.#effects = noteEffects(db, LOGGED_TABLES);
    this.#lastPosition = lastPosition(db);
    const row = db.prepare<unknown[], { last: number; has_unstamped: number }>(SELECT_DELIVERED).get();
    // A transaction that a crash left without a time has become visible by now.
    this.#deliveredAtMs = Math.max(row?.last ?? 0, newestWindowEnd(db), now());
    this.#isUnstamped = row?.has_unstamped === 1;
  }

  get db(): Database {
    return this.#options.db;
  }

  get lastPosition(): number {
    return this.#lastPosition;
  }

  /** Without rows of exports. @throws as {@link commit} */
  write(operation: Operation, work: () => void): void {
    this.commit(this.begin(), operation, work);
  }

  /**
   * Begins a transaction; when the one before it was delivered is written first.
   * @param epoch the transaction begins a version epoch; null: it does not
   */
  begin(licensed: ReadonlySet<number> = new Set(), epoch: Epoch | null = null): Applier {
    this.applyPending();
    const { db, log, now } = this.#options;
    db.exec('BEGIN IMMEDIATE');
    try {
      if (this.#isUnstamped) db.prepare(STAMP_DELIVERY).run({ delivered_at: this.#deliveredAtMs });
      const position = epoch === null ? this.#lastPosition : this.#beginEpoch(epoch);
      const rows = this.#rows;
      const parts = { db, rows, log, lastPosition: position, nowMs: now(), licensed };
      const applier = new Applier({ ...parts, epochsMs: epochTimes(db) });
      if (epoch !== null) applier.reissue(epoch);
      return applier;
    } catch (error) {
      this.rollback();
      throw error;
    }
  }

  /**
   * @param operation what the log says of it
   * @param inTransaction what belongs to it besides: the file's record, its window
   * @returns the first position that it added to the stream; 0: none
   * @throws when it was rolled back, or is decided and not applied yet
   */
  commit(applier: Applier, operation: Operation, inTransaction: () => void = () => {}): number {
    const { db, log, now, decisions, onDelivered } = this.#options;
    let first: number;
    const before = log.last;
    try {
      first = applier.finish();
      inTransaction();
      const lines = this.#effects.take();
      if (lines !== '' || log.isPending) {
        const entry = log.commit(lines, operation, now());
        decisions?.decide(entry, db);
        setLogMark(db, entry);
      }
      db.exec('COMMIT');
    } catch (error) {
      // Also where something failed behind its commit line.
      this.#isBehind = log.last !== before;
      this.rollback();
      throw error;
    }
    this.#isUnstamped = false;
    this.#lastPosition = lastPosition(db);
    if (first > 0) {
      this.#becomeVisible();
      onDelivered(first, this.#deliveredAtMs);
    }
    return first;
  }

  /** @returns the position beyond which they go on */
  #beginEpoch({ reason, orphans, position, number: known, parted }: Epoch): number {
    const { db, log, now } = this.#options;
    // What was detected before it gets raised versions: also where the clock is behind.
    const at = Math.max(now(), this.#deliveredAtMs);
    const number = Math.max(known, epochTimes(db).length) + 1;
    const beyond = positionBeyond(Math.max(this.#lastPosition, position), at, number);
    const announced_after = Number.isFinite(parted) ? parted : null;
    db.prepare(INSERT_EPOCH).run({ number, at, reason, position: beyond, announced_after, orphans });
    // Before the rows of the same transaction, whose versions rely on it.
    log.append(this.#effects.take());
    return beyond;
  }

  rollback(): void {
    const { db, log } = this.#options;
    // SQLite may have rolled back by itself, as it does when the disk is full.
    if (db.inTransaction) db.exec('ROLLBACK');
    this.#effects.take();
    log.rollback();
  }

  /** Applies from the log what the database refused. @throws while there is still no room, or it is not decided */
  applyPending(): void {
    if (!this.#isBehind) return;
    const { db, log, folder, decisions } = this.#options;
    if (log.last !== null) decisions?.decide(log.last, db);
    try {
      applyPending(db, folder);
    } finally {
      // The log already has these changes.
      this.#effects.take();
    }
    this.#isBehind = false;
    this.#lastPosition = lastPosition(db);
    this.#becomeVisible();
  }

  flush(): void {
    this.applyPending();
    if (this.#isUnstamped) this.write({ kind: 'delivery time' }, () => {});
  }

  closeSegment(): void {
    this.#options.log.closeSegment();
  }

  #becomeVisible(): void {
    const { db, now } = this.#options;
    // If the clock was set back: no earlier than the last one, and than the end of the newest finished window.
    this.#deliveredAtMs = Math.max(this.#deliveredAtMs, newestWindowEnd(db), now());
    this.#isUnstamped = true;
  }
}
