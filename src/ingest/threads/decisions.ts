/**
 * Transactions that wait for the copy: the ingest thread stands still, with its transaction open, until the main thread has
 * written the entry there. An entry of the log that the copy lacks is a proposal: it is neither applied nor shown.
 */
import type { Mark } from '../../log/format.ts';
import { misconfigured } from '../../refused.ts';
import type { Database } from '../../store/database.ts';
import { setWaitsForCopy, waitsForCopy } from '../../store/log-mark.ts';
import type { StreamWriter } from '../apply/stream-writer.ts';

/** Shared by both threads: the number of the last entry that the copy has, or {@link ENDED}. */
export type DecidedEntry = BigInt64Array<SharedArrayBuffer>;

/** The thread is to end. */
const ENDED = -1n;

export const createDecidedEntry = (): DecidedEntry =>
  new BigInt64Array(new SharedArrayBuffer(BigInt64Array.BYTES_PER_ELEMENT));

export function noteDecided(shared: DecidedEntry, { entry }: Mark): void {
  if (Atomics.load(shared, 0) !== ENDED) Atomics.store(shared, 0, BigInt(entry));
  Atomics.notify(shared, 0);
}

export function endDecisions(shared: DecidedEntry): void {
  Atomics.store(shared, 0, ENDED);
  Atomics.notify(shared, 0);
}

export interface DecisionOptions {
  readonly shared: DecidedEntry;
  /** The settings of `[copy]`; null: no copy is kept. */
  readonly copy: { readonly wait: boolean } | null;
  /** Asks the main thread to write the copy up to this entry. */
  readonly propose: (entry: Mark) => void;
  /** Makes the error by which the thread ends. */
  readonly stopping: () => Error;
}

export type CopyDecisions = ReturnType<typeof copyDecisions>;

export function copyDecisions({ shared, copy, propose, stopping }: DecisionOptions) {
  /** Whether the log says that transactions wait; null: it was not read. */
  let waits: boolean | null = null;

  function areAwaited(db: Database): boolean {
    const isWaiting = waits ?? waitsForCopy(db);
    if (isWaiting && copy === null)
      throw misconfigured(
        'transactions of this installation wait for its copy, but [copy] to is not set. Set it to where the copy is, or where a new one shall be; to stop waiting, also set [copy] wait = false and start Wirewatch once before you remove it.',
      );
    return isWaiting;
  }

  return {
    areAwaited,
    /** Returns once the entry is decided. @throws the error of `stopping` when the thread is to end before */
    decide(entry: Mark, db: Database): void {
      if (!areAwaited(db)) return;
      for (let isProposed = false; ; isProposed = true) {
        const last = Atomics.load(shared, 0);
        if (last >= entry.entry) return;
        if (last === ENDED) throw stopping();
        if (!isProposed) propose(entry);
        Atomics.wait(shared, 0, last);
      }
    },
    /**
     * Writes to the log what the configuration says now. To wait no more is itself a transaction that waits; to begin to
     * wait need not be, since the copy has it before the first that does.
     */
    begin(writer: StreamWriter): void {
      const wait = copy?.wait === true;
      waits = waitsForCopy(writer.db);
      if (waits === wait) return;
      // Where it may not be written, before it is.
      areAwaited(writer.db);
      writer.write({ kind: 'copy mode', wait }, () => setWaitsForCopy(writer.db, wait));
      waits = wait;
    },
  };
}
