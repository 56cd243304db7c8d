/**
 * The transactions that add to the stream: positions, the journal before the commit, delivery times after it.
 *
 * An operation stands in the journal before it is committed, and the transaction notes where: so an operation
 * behind that mark is one that the database lacks, be it that a crash came before the commit or that an older
 * database was put back. Either way it is done again. `after` in its line names the operation that it follows on:
 * one whose commit failed is followed by none.
 *
 * A change is delivered when its commit is visible. That is later than anything the transaction itself could
 * write, so the time is taken after the commit, told to the readers of this process at once, and written by the
 * next transaction. Until it is written it counts as later than any time that is asked for.
 */
import type { Database } from '../store/database.ts';
import { appendEntry, appendPosition, readJournalEnd } from '../store/journal.ts';
import type { JournalMark } from '../store/journal-lines.ts';
import { readMark, setMark } from '../store/journal-mark.ts';
import type { Now } from '../time.ts';
import { newestWindowEnd } from '../windows/ledger.ts';
import { type Added, Applier, type ApplyStatements, lastPosition, prepareApply } from './apply.ts';
import { readRaises } from './raises.ts';

/** What the journal is to know of a transaction. */
export type Journaling =
  /** Nothing: it changes nothing that a start could not find out again. */
  | { readonly kind: 'nothing' }
  /** An operation, written before the commit; null where the transaction came to nothing. */
  | { readonly kind: 'operation'; readonly line: (added: Added) => object | null }
  /** It stands there already, and ends at the mark. */
  | { readonly kind: 'again'; readonly mark: JournalMark };

const NOTHING: Journaling = { kind: 'nothing' };

const STAMP_DELIVERY = 'UPDATE delivery SET delivered_at = :delivered_at WHERE delivered_at IS NULL';
const SELECT_LAST_DELIVERED = 'SELECT max(delivered_at) AS delivered_at FROM delivery';

export class StreamWriter {
  readonly #db: Database;
  readonly #journal: string;
  readonly #now: Now;
  readonly #onDelivered: (firstPosition: number, deliveredAtMs: number) => void;
  readonly #statements: ApplyStatements;
  #lastPosition: number;
  #journalPosition: number;
  #deliveredAtMs: number;
  #isUnstamped = true;
  #mark: JournalMark | null;
  #notes: (() => void)[] = [];

  /** @param onDelivered told at once of each transaction that became visible */
  constructor(
    db: Database,
    journal: string,
    now: Now,
    onDelivered: (firstPosition: number, deliveredAtMs: number) => void,
  ) {
    this.#db = db;
    this.#journal = journal;
    this.#now = now;
    this.#onDelivered = onDelivered;
    this.#statements = prepareApply(db);
    this.#journalPosition = readJournalEnd(journal).position;
    this.#lastPosition = Math.max(lastPosition(db), this.#journalPosition);
    this.#mark = readMark(db);
    const last = db.prepare<unknown[], { delivered_at: number | null }>(SELECT_LAST_DELIVERED).get();
    // What a crash left without a time became visible before now at the latest.
    this.#deliveredAtMs = Math.max(last?.delivered_at ?? 0, newestWindowEnd(db), now());
  }

  get lastPosition(): number {
    return this.#lastPosition;
  }

  /** Begins a transaction; what was noted since the last one is written first. */
  begin(licensed: ReadonlySet<number>): Applier {
    this.#db.exec('BEGIN IMMEDIATE');
    try {
      this.#writeNotes();
    } catch (error) {
      this.rollback();
      throw error;
    }
    // What the journal names may have been given out, whether its transaction held or not.
    const floor = Math.max(this.#lastPosition, this.#journalPosition);
    return new Applier(this.#statements, floor, this.#now(), licensed, readRaises(this.#db));
  }

  /**
   * @param inTransaction what belongs to it besides: the file's record, its window
   * @throws when the transaction failed, and was rolled back
   */
  commit(applier: Applier, inTransaction: (added: Added) => void, journaling: Journaling = NOTHING): Added {
    let added: Added;
    let mark: JournalMark | null;
    try {
      added = applier.finish();
      inTransaction(added);
      mark = this.#journalize(added, journaling);
      if (mark !== null) setMark(this.#db, mark);
      this.#db.exec('COMMIT');
    } catch (error) {
      this.rollback();
      throw error;
    }
    this.#mark = mark ?? this.#mark;
    this.#notes = [];
    this.#isUnstamped = false;
    if (added.last_position > 0) {
      this.#lastPosition = added.last_position;
      // Though the clock was set back, no earlier than the last one, and not before a window that is told as
      // complete ended: as_of said so.
      this.#deliveredAtMs = Math.max(this.#deliveredAtMs, newestWindowEnd(this.#db), this.#now());
      this.#isUnstamped = true;
      this.#onDelivered(added.first_position, this.#deliveredAtMs);
    }
    return added;
  }

  rollback(): void {
    // SQLite may have rolled back by itself, as it does when the disk is full.
    if (this.#db.inTransaction) this.#db.exec('ROLLBACK');
  }

  /** Keeps a small write for the next transaction: one that may be lost, because a start can find out again. */
  note(write: () => void): void {
    this.#notes.push(write);
  }

  /** Writes what is noted, when nothing else gives occasion to. */
  flush(): void {
    if (this.#notes.length === 0 && !this.#isUnstamped) return;
    const applier = this.begin(new Set());
    this.commit(applier, () => {});
  }

  /** @returns where the transaction's state ends in the journal; null when it is where the last one's did */
  #journalize(added: Added, journaling: Journaling): JournalMark | null {
    const position = Math.max(this.#lastPosition, this.#journalPosition, added.last_position);
    const line = journaling.kind === 'operation' ? journaling.line(added) : null;
    if (line !== null) {
      const mark = appendEntry(this.#journal, { ...line, position, after: this.#mark?.bytes ?? 0 });
      this.#journalPosition = position;
      return mark;
    }
    if (added.last_position > this.#journalPosition) {
      appendPosition(this.#journal, added.last_position);
      this.#journalPosition = added.last_position;
    }
    return journaling.kind === 'again' ? journaling.mark : null;
  }

  #writeNotes(): void {
    if (this.#isUnstamped) this.#db.prepare(STAMP_DELIVERY).run({ delivered_at: this.#deliveredAtMs });
    for (const write of this.#notes) write();
  }
}
