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
import { applyPending, LOGGED_TABLES } from '../../log/apply-log.ts';
import { detectionRows } from '../../log/detection-rows.ts';
import { noteEffects } from '../../log/effects.ts';
import type { Operation } from '../../log/format.ts';
import type { LogWriter } from '../../log/log-writer.ts';
import type { Decisions } from '../../log/recover.ts';
import { epochTimes, positionBeyond } from '../../log/version-epoch.ts';
import type { Database } from '../../store/database.ts';
import { setLogMark } from '../../store/log-mark.ts';
import type { Now } from '../../time.ts';
import { newestWindowEnd } from '../../windows/ledger.ts';
import { type Applier, lastPosition, rowApplier } from './apply-rows.ts';

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
  /** What changed after this position is announced again: the last one that clients surely saw as it is here; infinite: all. */
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

export type StreamWriter = ReturnType<typeof streamWriter>;

/** The writer of a database and its log: of each, one at a time. */
export function streamWriter({ db, log, folder, now, decisions, onDelivered }: StreamWriterOptions) {
  const rows = detectionRows(db);
  const takeEffects = noteEffects(db, LOGGED_TABLES);
  let last = lastPosition(db);
  const delivered = db.prepare<unknown[], { last: number; has_unstamped: number }>(SELECT_DELIVERED).get();
  // A transaction that a crash left without a time has become visible by now.
  let deliveredAtMs = Math.max(delivered?.last ?? 0, newestWindowEnd(db), now());
  let isUnstamped = delivered?.has_unstamped === 1;
  /** Whether the log has an entry that the database refused. */
  let isBehind = false;

  function becomeVisible(): void {
    // If the clock was set back: no earlier than the last one, and than the end of the newest finished window.
    deliveredAtMs = Math.max(deliveredAtMs, newestWindowEnd(db), now());
    isUnstamped = true;
  }

  function rollback(): void {
    // SQLite may have rolled back by itself, as it does when the disk is full.
    if (db.inTransaction) db.exec('ROLLBACK');
    takeEffects();
    log.rollback();
  }

  /** Applies from the log what the database refused. @throws while there is still no room, or it is not decided */
  function applyRefused(): void {
    if (!isBehind) return;
    if (log.last !== null) decisions?.decide(log.last, db);
    try {
      applyPending(db, folder);
    } finally {
      // The log already has these changes.
      takeEffects();
    }
    isBehind = false;
    last = lastPosition(db);
    becomeVisible();
  }

  /** @returns the position beyond which they go on */
  function beginEpoch({ reason, orphans, position, number: known, parted }: Epoch): number {
    // What was detected before it gets raised versions: also where the clock is behind.
    const at = Math.max(now(), deliveredAtMs);
    const number = Math.max(known, epochTimes(db).length) + 1;
    const beyond = positionBeyond(Math.max(last, position), at, number);
    const announced_after = Number.isFinite(parted) ? parted : null;
    db.prepare(INSERT_EPOCH).run({ number, at, reason, position: beyond, announced_after, orphans });
    // Before the rows of the same transaction, whose versions rely on it.
    log.append(takeEffects());
    return beyond;
  }

  /** Begins a transaction, and first writes when the one before was delivered. @param epoch that it begins; null: none */
  function begin(licensed: ReadonlySet<number> = new Set(), epoch: Epoch | null = null): Applier {
    applyRefused();
    db.exec('BEGIN IMMEDIATE');
    try {
      if (isUnstamped) db.prepare(STAMP_DELIVERY).run({ delivered_at: deliveredAtMs });
      const position = epoch === null ? last : beginEpoch(epoch);
      const applier = rowApplier({ db, rows, log, lastPosition: position, nowMs: now(), licensed });
      if (epoch !== null) applier.reissue(epoch);
      return applier;
    } catch (error) {
      rollback();
      throw error;
    }
  }

  /**
   * @param operation what the log says of it
   * @param inTransaction what belongs to it besides: the file's record, its window
   * @returns the first position that it added to the stream; 0: none
   * @throws when it was rolled back, or is decided and not applied yet
   */
  function commit(applier: Applier, operation: Operation, inTransaction: () => void = () => {}): number {
    let first: number;
    const before = log.last;
    try {
      first = applier.finish();
      inTransaction();
      const lines = takeEffects();
      if (lines !== '' || log.isPending()) {
        const entry = log.commit(lines, operation, now());
        decisions?.decide(entry, db);
        setLogMark(db, entry);
      }
      db.exec('COMMIT');
    } catch (error) {
      // Also where something failed behind its commit line.
      isBehind = log.last !== before;
      rollback();
      throw error;
    }
    isUnstamped = false;
    last = lastPosition(db);
    if (first > 0) {
      becomeVisible();
      onDelivered(first, deliveredAtMs);
    }
    return first;
  }

  /** Without rows of exports. @throws as {@link commit} */
  const write = (operation: Operation, work: () => void) => void commit(begin(), operation, work);

  return {
    ...{ db, begin, commit, write, rollback, applyPending: applyRefused },
    get lastPosition(): number {
      return last;
    },
    flush(): void {
      applyRefused();
      if (isUnstamped) write({ kind: 'delivery time' }, () => {});
    },
    closeSegment: () => log.close(),
  };
}
